package engine

import (
	"encoding/json"
	"fmt"

	"grove/compute"
	"grove/internal/cachefile"
	"grove/method"
)

// learned is what a method has learned, as the file of it keeps it.
type learned struct {
	Rates []method.ClassRate `json:"rates,omitempty"`
	State []byte             `json:"state,omitempty"` // of a method.Saver
}

// maxLearned bounds the file that is read, and so the file that is written by the next save.
const maxLearned = 16 << 20

// LearnedPath names the file in the user's cache directory that keeps what methods have learned of this engine's model:
// by its form and a sample of its weights.
func (e *Engine) LearnedPath() (string, error) {
	return cachefile.Path("drafting", e.model.Info().Sample, compute.NumericsVersion)
}

// Load takes over what an earlier engine of this model saved: how often drafts were accepted, and what a method keeps
// itself ([method.Saver]). What makes no sense counts as nothing. Methods whose learning does not last
// ([method.Info]) begin anew.
func (d *Drafting) Load() {
	saved := readLearned(d.path)
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, info := range d.infos {
		l, ok := saved[info.Name]
		if !ok || !info.Lasting {
			continue
		}
		d.rates.Restore(i, l.Rates)
		if m, ok := d.methods[i].(method.Saver); ok && len(l.State) > 0 {
			_ = m.UnmarshalBinary(l.State) // it has changed nothing, and learns anew
		}
	}
}

// Save writes what the methods have learned beside what others of the model have, if there is anything new; readers
// find the old file or all of the new. Of two processes that save at once the later one counts.
func (d *Drafting) Save() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.taught || d.path == "" {
		return nil
	}
	saved := map[string]learned{}
	for name, l := range readLearned(d.path) {
		if _, err := method.Find(name); err == nil {
			saved[name] = l
		}
	}
	for i, info := range d.infos {
		if !info.Lasting {
			continue
		}
		l := learned{Rates: d.rates.Known(i)}
		if m, ok := d.methods[i].(method.Saver); ok {
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
	if err := cachefile.Write(d.path, text); err != nil {
		return err
	}
	d.taught = false
	return nil
}

func readLearned(path string) (saved map[string]learned) {
	if path == "" || json.Unmarshal(cachefile.Read(path, maxLearned), &saved) != nil {
		return nil
	}
	return saved
}
