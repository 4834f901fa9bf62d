package driver

import (
	"slices"

	"grove"
	"grove/server/serving"
	"grove/weights/find"
)

// Capabilities returns what a model can do: completion, chat, tools, thinking, insert, or embedding. Of a model that is not open it is
// what the header of its file says; nil: that is not known. Headers are read once.
func (s *Server) Capabilities(m serving.State) (all []string) {
	if known, ok := s.capabilities.Load(m.Path); ok {
		all = slices.Clone(known.([]string))
	} else if d, err := (find.Model{Name: m.Name, Path: m.Path}).Describe(grove.OpenFile); m.Path != "" && err == nil {
		s.capabilities.Store(m.Path, d.Capabilities)
		all = slices.Clone(d.Capabilities)
	}
	if m.Host == nil {
		return all
	}
	switch {
	case all == nil && m.Host.Info.Encoder:
		return []string{"embedding"}
	case all == nil:
		all = []string{"completion"}
	}
	if m.Host.HasTemplate() && !slices.Contains(all, "chat") && !slices.Contains(all, "embedding") { // a template of the server's
		all = slices.Insert(all, 1, "chat")
	}
	return all
}
