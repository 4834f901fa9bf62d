package grove

import (
	"errors"
	"fmt"
	"strings"

	"grove/internal/par"
	"grove/method"
	"grove/weights/gguf"
	"grove/weights/quantize"
)

// openSeconds opens the models beside the model that o names.
func (m *Model) openSeconds(o Options) (err error) {
	if o.Draft != "" {
		threads := m.pool
		if o.DraftThreads > 0 {
			threads = par.New(o.DraftThreads)
		}
		if m.draft, m.words, err = m.openSecond(o, o.Draft, "draft", threads); err != nil {
			return err
		}
	}
	if o.Middle == "" {
		return nil
	}
	words := (*method.VocabMap)(nil)
	if m.middle, words, err = m.openSecond(o, o.Middle, "be the middle model", m.pool); err == nil && words.Way() != method.SameVocabulary {
		err = &OptionError{fmt.Errorf("grove: %s cannot be the middle model for %s: it needs the same vocabulary (this one's: %v)", m.middle.name(), m.name(), words)}
	}
	return err
}

// openSecond opens a model that drafts, on threads that it owns where they are not m's. What it returns beside an error is m's to close.
func (m *Model) openSecond(o Options, path, does string, threads *par.Pool) (d *Model, words *method.VocabMap, err error) {
	if o.Memory > 0 {
		used := m.bytes()
		o.Memory = max(1, o.Memory-min(o.Memory, used)) // the cache was made to fit
	}
	f, err := m.secondFile(path, does, o.Memory)
	if err == nil {
		d = &Model{file: f, pool: threads}
		o.Draft, o.Datastore, o.Judge, o.DraftVocab, o.DraftThreads, o.Middle, o.Context, o.Adapters = "", "", "", 0, 0, "", 0, nil
		if err = d.load(o); err != nil {
			_ = f.Close() // its error would only hide the cause
		}
	}
	if err != nil {
		if threads != m.pool {
			threads.Close()
		}
		return nil, nil, gguf.InFile(path, err)
	}
	if err = errors.Join(d.engine.Generates(), d.engine.Reads("a draft's text has none")); err == nil {
		words, err = method.NewVocabMap(m.tokenizer, d.tokenizer)
	}
	if err != nil {
		err = &OptionError{fmt.Errorf("grove: %s cannot %s for %s: %w", d.name(), does, m.name(), err)}
	}
	return d, words, err
}

// secondFile opens the file of a second model; the name of a type of [quantize.Names] stands for the model's own weights in that type, in memory.
func (m *Model) secondFile(path, does string, limit uint64) (*gguf.File, error) {
	if does == "draft" || quantize.Known(path) != nil || strings.EqualFold(path, quantize.Keep) {
		return OpenFile(path)
	}
	if _, err := room(limit, m.file.LayerBytes()/4); err != nil { // a quarter of the weights at least
		return nil, &OptionError{err}
	}
	return quantize.InMemory(m.file, path, m.pool)
}

// seconds returns the models beside the model.
func (m *Model) seconds() (all []*Model) {
	for _, d := range []*Model{m.draft, m.middle} {
		if d != nil {
			all = append(all, d)
		}
	}
	return all
}

// bytes returns the memory that the weights and caches of the model and of those beside it may take.
func (m *Model) bytes() uint64 {
	n := uint64(m.model.Info().Bytes + m.engine.CacheBytes())
	for _, d := range m.seconds() {
		n += d.bytes()
	}
	return n
}

// closeSeconds closes the models beside the model.
func (m *Model) closeSeconds() (err error) {
	for _, d := range m.seconds() {
		d.engine.Close()
		if d.pool != m.pool {
			d.pool.Close()
		}
		err = errors.Join(err, d.file.Close())
	}
	return err
}
