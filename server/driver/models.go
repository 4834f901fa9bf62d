package driver

import (
	"os"
	"slices"
	"time"

	"grove"
	"grove/internal/weights/find"
	"grove/server/serving"
)

// Described has the values of the header of a model's file.
type Described struct {
	find.Description
	Modified time.Time // zero: the model is inside the program
	size     int64     // of the path when the header was read
}

// Describe returns what the header of a model's file says; nothing where the path of the file is not known. A header is read again when the
// time or the size of its file changes.
func (s *Server) Describe(m serving.State) (Described, error) {
	if m.Path == "" {
		return Described{}, nil
	}
	var now Described
	if info, err := os.Stat(m.Path); err == nil { // a model inside the program is no file
		now.Modified, now.size = info.ModTime().UTC(), info.Size()
	}
	if known, ok := s.described.Load(m.Path); ok {
		if d := known.(Described); d.Modified.Equal(now.Modified) && d.size == now.size {
			return d, nil
		}
	}
	var err error
	if now.Description, err = (find.Model{Name: m.Name, Path: m.Path}).Describe(grove.OpenFile); err != nil {
		return Described{}, err
	}
	s.described.Store(m.Path, now)
	return now, nil
}

// Capabilities returns what a model can do: completion, chat, tools, thinking, insert, or embedding. Of a model that is not open it is
// what the header of its file says; nil: that is not known.
func (s *Server) Capabilities(m serving.State) []string {
	d, _ := s.Describe(m) // of a file that cannot be read, nothing is known
	all := slices.Clone(d.Capabilities)
	if m.Model == nil {
		return all
	}
	switch {
	case all == nil && m.Model.Info.Encoder:
		return []string{"embedding"}
	case all == nil:
		all = []string{"completion"}
	}
	if t := m.Model.Template(); t != nil && !slices.Contains(all, "embedding") { // it may be one of the server's
		all = slices.DeleteFunc(all, func(c string) bool { return slices.Contains([]string{"chat", "tools", "thinking"}, c) })
		all = slices.Insert(all, 1, find.OfTemplate(t.Source())...)
	}
	return all
}
