package speculate

import (
	"encoding/json"
	"fmt"
	"strings"

	"grove/internal/fileio"
	"grove/method"
)

// kept is what a method has learned, as the file keeps it.
type kept struct {
	Rates []method.ClassRate `json:"rates,omitempty"`
	State []byte             `json:"state,omitempty"` // of a method.Saver

	Primed []byte `json:"primed,omitempty"` // state of a method.Primer before any text
}

// maxFile bounds the file that is read, and so the file that is written by the next save.
const maxFile = 16 << 20

// Load takes over what an earlier store saved: how often drafts were accepted, and what a method keeps
// itself ([method.Saver]); texts of every salt begin with what [Prime] saved. What makes no sense counts as nothing. Methods whose
// learning does not last ([method.Info]) begin anew. It is called before any text.
func (s *LearnedStore) Load() {
	saved, t := read(s.path), s.shared
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, info := range s.infos {
		if !info.Lasting {
			continue
		}
		l := saved[info.Name]
		bare, _, _ := strings.Cut(info.Name, ":") // options change nothing of what was computed before any text
		t.rates.Restore(i, l.Rates)
		s.primed[i] = saved[bare].Primed
		begin(t.Methods[i], s.primed[i])
		if m, ok := t.Methods[i].(method.Saver); ok && len(l.State) > 0 {
			_ = m.UnmarshalBinary(l.State) // it has changed nothing, and learns anew
		}
	}
}

// Save writes what the methods have learned of texts without a salt beside what others of the file have, if there is anything new;
// readers find the old file or all of the new. Of two processes that save at once the later one counts.
func (s *LearnedStore) Save() error {
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
		l := kept{Rates: t.rates.Known(i), Primed: saved[info.Name].Primed}
		if m, ok := t.Methods[i].(method.Saver); ok {
			var err error
			if l.State, err = m.MarshalBinary(); err != nil {
				return fmt.Errorf("engine: method %s: %w", info.Name, err)
			}
		}
		saved[info.Name] = l
	}
	err := write(s.path, saved)
	t.taught = t.taught && err != nil
	return err
}

// begin gives a method what was computed before any text.
func begin(m method.Method, primed []byte) {
	if p, ok := m.(method.Primer); ok && len(primed) > 0 {
		_ = p.Prime(primed) // it has changed nothing, and begins with nothing
	}
}

// Prime saves the state with which those of the methods begin that are [method.Primer] and last, in the file of a path. What else the
// file has stays.
func Prime(path string, infos []method.Info, env method.Env, state []byte) error {
	saved := read(path)
	if saved == nil {
		saved = map[string]kept{}
	}
	for _, info := range infos {
		if !info.Lasting {
			continue
		}
		m, err := info.Open(env)
		if err != nil {
			return fmt.Errorf("engine: method %s: %w", info.Name, err)
		}
		if _, ok := m.(method.Primer); ok {
			l := saved[info.Name]
			l.Primed = state
			saved[info.Name] = l
		}
	}
	return write(path, saved)
}

func write(path string, saved map[string]kept) error {
	text, err := json.Marshal(saved)
	if err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	return fileio.WriteCache(path, text)
}

func read(path string) (saved map[string]kept) {
	if path == "" || json.Unmarshal(fileio.ReadCache(path, maxFile), &saved) != nil {
		return nil
	}
	return saved
}
