package learned

import (
	"encoding/json"
	"fmt"

	"grove/internal/cachefile"
	"grove/method"
)

// kept is what a method has learned, as the file keeps it.
type kept struct {
	Rates []method.ClassRate `json:"rates,omitempty"`
	State []byte             `json:"state,omitempty"` // of a method.Saver
}

// maxFile bounds the file that is read, and so the file that is written by the next save.
const maxFile = 16 << 20

// Load takes over what an earlier store saved: how often drafts were accepted, and what a method keeps
// itself ([method.Saver]). What makes no sense counts as nothing. Methods whose learning does not last
// ([method.Info]) begin anew.
func (s *Store) Load() {
	saved, t := read(s.path), s.shared
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, info := range s.infos {
		l, ok := saved[info.Name]
		if !ok || !info.Lasting {
			continue
		}
		t.rates.Restore(i, l.Rates)
		if m, ok := t.Methods[i].(method.Saver); ok && len(l.State) > 0 {
			_ = m.UnmarshalBinary(l.State) // it has changed nothing, and learns anew
		}
	}
}

// Save writes what the methods have learned of texts without a salt beside what others of the file have, if there is anything new;
// readers find the old file or all of the new. Of two processes that save at once the later one counts.
func (s *Store) Save() error {
	t := s.shared
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.taught || s.path == "" {
		return nil
	}
	saved := map[string]kept{}
	for name, l := range read(s.path) {
		if _, err := method.Find(name); err == nil {
			saved[name] = l
		}
	}
	for i, info := range s.infos {
		if !info.Lasting {
			continue
		}
		l := kept{Rates: t.rates.Known(i)}
		if m, ok := t.Methods[i].(method.Saver); ok {
			var err error
			if l.State, err = m.MarshalBinary(); err != nil {
				return fmt.Errorf("engine: method %s: %w", info.Name, err)
			}
		}
		saved[info.Name] = l
	}
	text, err := json.Marshal(saved)
	if err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	if err := cachefile.Write(s.path, text); err != nil {
		return err
	}
	t.taught = false
	return nil
}

func read(path string) (saved map[string]kept) {
	if path == "" || json.Unmarshal(cachefile.Read(path, maxFile), &saved) != nil {
		return nil
	}
	return saved
}
