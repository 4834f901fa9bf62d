package resident

import (
	"errors"
	"fmt"
	"strings"

	"grove/internal/par"
	"grove/method"
	"grove/method/acceptance"
	"grove/method/datastore"
	"grove/verify"
	"grove/weights/gguf"
	"grove/weights/quantize"
)

// openBeside opens the adapters of the model, and what drafts for it.
func (m *Model) openBeside(o Options) (err error) {
	for _, a := range o.Adapters {
		if _, err := m.LoadAdapter(a); err != nil {
			return err
		}
	}
	m.methods.eager, m.methods.forget = o.Eager, o.Forget
	m.draftVocab = o.DraftVocab
	m.Judge, err = verify.ReadHead(o.Judge, m.Model.Info().Width)
	if err = errors.Join(err, m.openModels(o)); err == nil {
		m.Datastore, err = datastore.For(m.Tokenizer, o.Datastore)
	}
	return err
}

// openModels opens the models beside the model.
func (m *Model) openModels(o Options) (err error) {
	if o.Draft != "" {
		threads := m.Pool
		if o.DraftThreads > 0 {
			threads = par.New(o.DraftThreads)
		}
		if m.Draft, m.Words, err = m.openModel(o, o.Draft, "draft", threads); err != nil {
			return err
		}
		if m.acceptHead, err = acceptance.Read(o.DraftHead, m.Draft.Model.Info().Width); err != nil {
			return err
		}
	}
	if o.Middle == "" {
		return nil
	}
	words := (*method.VocabMap)(nil)
	if m.Middle, words, err = m.openModel(o, o.Middle, "be the middle model", m.Pool); err == nil && words.Way() != method.SameVocabulary {
		err = &OptionError{fmt.Errorf("grove: %s cannot be the middle model for %s: it needs the same vocabulary (this one's: %v)", m.Middle.Name(), m.Name(), words)}
	}
	return err
}

// openModel opens a model that drafts, on threads that it owns where they are not m's. What it returns beside an error is m's to close.
func (m *Model) openModel(o Options, path, does string, threads *par.Pool) (d *Model, words *method.VocabMap, err error) {
	if o.Memory > 0 {
		used := m.bytes()
		o.Memory = max(1, o.Memory-min(o.Memory, used)) // the cache was made to fit
	}
	f, err := m.besideFile(path, does, o.Memory)
	if err == nil {
		d, o.Context = &Model{File: f, Pool: threads}, 0
		if err = d.load(o); err != nil {
			_ = f.Close() // its error would only hide the cause
		}
	}
	if err != nil {
		if threads != m.Pool {
			threads.Close()
		}
		return nil, nil, gguf.InFile(path, err)
	}
	if err = errors.Join(d.Engine.Generates(), d.Engine.Reads("a draft's text has none")); err == nil {
		words, err = method.NewVocabMap(m.Tokenizer, d.Tokenizer)
	}
	if err != nil {
		err = &OptionError{fmt.Errorf("grove: %s cannot %s for %s: %w", d.Name(), does, m.Name(), err)}
	}
	return d, words, err
}

// besideFile opens the file of a model beside the model; the name of a type of [quantize.Names] stands for the model's own weights in that type, in memory.
func (m *Model) besideFile(path, does string, limit uint64) (*gguf.File, error) {
	if does == "draft" || quantize.Known(path) != nil || strings.EqualFold(path, quantize.Keep) {
		return OpenFile(path)
	}
	if _, err := room(limit, m.File.LayerBytes()/4); err != nil { // a quarter of the weights at least
		return nil, &OptionError{err}
	}
	return quantize.InMemory(m.File, path, m.Pool)
}

// beside returns the models beside the model.
func (m *Model) beside() (all []*Model) {
	for _, d := range []*Model{m.Draft, m.Middle} {
		if d != nil {
			all = append(all, d)
		}
	}
	return all
}

// closeBeside closes the models beside the model.
func (m *Model) closeBeside() (err error) {
	for _, d := range m.beside() {
		d.Engine.Close()
		if d.Pool != m.Pool {
			d.Pool.Close()
		}
		err = errors.Join(err, d.File.Close())
	}
	return err
}
