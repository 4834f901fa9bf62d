package resident

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"grove/internal/engine"
	"grove/internal/engine/adapters"
	"grove/internal/gopher"
	"grove/internal/par"
	"grove/internal/verify"
	"grove/internal/weights/gguf"
	"grove/internal/weights/quantize"
	"grove/method"
	"grove/method/datastore"
)

// start reads what is beside a model that was read, decides how large drafting is, and makes the engines.
func (m *Model) start(o Options) (err error) {
	if err := m.readBeside(o); err != nil {
		return err
	}
	draftRoom, err := m.fit(o)
	if err != nil {
		return err
	}
	if o.Context == 0 {
		o.Context = m.context(o)
		m.options.Context = o.Context
	}
	if err := m.run(o, m.drafting, draftRoom); err != nil {
		return err
	}
	o.Prefixes = engine.Prefixes{} // texts of models beside the model are not shared
	m.Adapters.Base = adapters.Base{File: m.File, Info: m.Model.Info(), Pool: m.Pool}
	m.Adapters.Room = func(n int) error {
		_, err := room(o.Memory, m.Model.Info().Bytes+m.Engine.CacheBytes()+n)
		return err
	}
	for _, path := range m.File.Adapters {
		if _, err := m.LoadAdapter(adapters.File{Path: path, Scale: 1}); err != nil {
			return fmt.Errorf("grove: the model's own adapter, a layer of ollama's manifest: %w", err)
		}
	}
	for _, a := range o.Adapters {
		if _, err := m.LoadAdapter(a); err != nil {
			return err
		}
	}
	m.methods.eager, m.methods.forget = o.Eager, o.Forget
	m.draftVocab = o.DraftVocab
	if err = m.runBeside(o); err == nil {
		err = m.runGuides(o)
	}
	if err == nil {
		m.Datastore, err = datastore.For(m.Tokenizer, o.Datastore)
	}
	return err
}

// checkFiles refuses a path at which no file is, by the flag that names it: before any model is read.
func (o Options) checkFiles() error {
	type named struct{ flag, path string }
	all := []named{{"draft", o.Draft}, {"draft-head", o.DraftHead}, {"middle", o.Middle}, {"skip-adapters", o.SkipAdapters}, {"judge", o.Judge}}
	if o.Heads != NoHeads {
		all = append(all, named{"heads", o.Heads})
	}
	for _, path := range o.Guides {
		all = append(all, named{"guide", path})
	}
	for _, f := range all {
		isModel := f.flag == "draft" || f.flag == "middle" || f.flag == "guide"
		if f.path == "" || isModel && (gopher.Named(f.path) != nil || quantize.Known(f.path) == nil || strings.EqualFold(f.path, quantize.Keep)) {
			continue // a name stands for a model
		}
		if _, err := os.Stat(f.path); err != nil {
			return fmt.Errorf("grove: --%s: %w", f.flag, err)
		}
	}
	return nil
}

// flagged says which flag named the file of an error.
func flagged(flag string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("grove: --%s: %w", flag, err)
}

// readBeside reads the files beside the model, small ones first: the first that cannot be read ends it, and the models behind it stay unread.
func (m *Model) readBeside(o Options) (err error) {
	if m.Judge, err = verify.ReadHead(o.Judge, m.Model.Info().Width); err != nil {
		return flagged("judge", err)
	}
	if err := m.readSubstitutes(o); err != nil {
		return flagged("skip-adapters", err)
	}
	if err := m.readModules(o); err != nil {
		return err // which names its flag
	}
	if o.Draft != "" {
		threads := m.Pool
		if o.DraftThreads > 0 {
			threads = par.New(o.DraftThreads)
		}
		if m.Draft, err = m.readModel(o, o.Draft, "draft", threads); err != nil {
			return err
		}
		if m.acceptHead, err = method.ReadAcceptance(o.DraftHead, m.Draft.Model.Info().Width); err != nil {
			return err
		}
	}
	if o.Middle != "" {
		if m.Middle, err = m.readModel(o, o.Middle, beMiddle, m.Pool); err != nil {
			return err
		}
	}
	return flagged("guide", m.readGuides(o))
}

// beMiddle is what a middle model does.
const beMiddle = "be the middle model"

// readModel reads a model that drafts, on threads that it owns where they are not m's.
func (m *Model) readModel(o Options, path, does string, threads *par.Pool) (d *Model, err error) {
	o.Memory = m.left(o)
	f, err := m.besideFile(path, does, o.Memory)
	if err == nil && len(f.Adapters) > 0 && does != "draft" {
		_ = f.Close()
		err = &OptionError{Err: fmt.Errorf("grove: the model has an adapter of its own, a layer of ollama's manifest, and cannot %s with it; merge both into one file", does)}
	}
	if err == nil {
		d, o.Context = &Model{File: f, Pool: threads}, 0
		if err = d.read(o); err != nil {
			_ = f.Close() // its error would only hide the cause
		}
	}
	if err != nil {
		if threads != m.Pool {
			threads.Close()
		}
		return nil, gguf.InFile(path, err)
	}
	return d, nil
}

// left returns what the bound of memory leaves beside the models that are read or run.
func (m *Model) left(o Options) uint64 {
	if o.Memory == 0 {
		return 0
	}
	return max(1, o.Memory-min(o.Memory, m.bytes()))
}

// runBeside makes the engines of the models beside the model, and relates their tokens to the model's.
func (m *Model) runBeside(o Options) (err error) {
	if m.Draft != nil {
		if m.VocabMap, err = m.runModel(o, m.Draft, o.Draft, "draft"); err != nil {
			return err
		}
	}
	if err := m.runModules(o); err != nil || m.Middle == nil {
		return err
	}
	words, err := m.runModel(o, m.Middle, o.Middle, beMiddle)
	if err == nil && words.Mapping() != method.SameVocabulary {
		err = &OptionError{Err: fmt.Errorf("grove: %s cannot be the middle model for %s: it needs the same vocabulary (this one's: %v)", m.Middle.Name(), m.Name(), words)}
	}
	return err
}

// runModel makes the engine of a model that drafts.
func (m *Model) runModel(o Options, d *Model, path, does string) (words *method.VocabMap, err error) {
	if o.Memory > 0 {
		o.Memory = m.left(o) + uint64(d.Model.Info().Bytes) // which are among those of m
	}
	if err := d.run(o.forDrafts(d, m.drafting), m.drafting, 0); err != nil {
		return nil, gguf.InFile(path, err)
	}
	if err = errors.Join(d.Engine.CheckGenerates(), d.Engine.CheckSource("a draft's text has none"), d.Engine.CheckDraft()); err == nil {
		words, err = method.NewVocabMap(m.Tokenizer, d.Tokenizer)
	}
	if err != nil {
		err = &OptionError{Err: fmt.Errorf("grove: %s cannot %s for %s: %w", d.Name(), does, m.Name(), err)}
	}
	return words, err
}

// besideFile opens the file of a model beside the model; the name of a type of [quantize.Names] stands for the model's own weights in that type, in memory.
func (m *Model) besideFile(path, does string, limit uint64) (*gguf.File, error) {
	if does == "draft" || quantize.Known(path) != nil || strings.EqualFold(path, quantize.Keep) {
		return OpenFile(path)
	}
	if _, err := room(limit, m.File.LayerBytes()/4); err != nil { // a quarter of the weights at least
		return nil, &OptionError{Err: err}
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
	return append(all, m.Modules...)
}

// closeBeside closes the models beside the model.
func (m *Model) closeBeside() (err error) {
	if m.substitutes.file != nil {
		err = m.substitutes.file.Close()
	}
	for _, d := range m.others() {
		if d.Engine != nil {
			d.Engine.Close()
		}
		if d.Pool != m.Pool {
			d.Pool.Close()
		}
		err = errors.Join(err, d.closeFile())
	}
	return err
}
