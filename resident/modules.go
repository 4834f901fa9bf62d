package resident

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"grove/method"
	"grove/model"
	"grove/text/token"
	"grove/weights/gguf"
	"grove/weights/heads"
)

// NoHeads is the value of [Options.Heads] by which heads beside the model's file are not used.
const NoHeads = "off"

// readModules reads the draft modules of the model: those of the file of heads, and the first predictor of its own file.
func (m *Model) readModules(o Options) error {
	path, found := o.Heads, false
	if path == "" {
		path, found = m.headsBeside()
	}
	if path != "" && path != NoHeads {
		if err := m.readHeads(o, path); err != nil && !found {
			return err
		} else if err != nil {
			return &OptionError{fmt.Errorf("%w; it was found beside the model: --heads %s leaves it out", err, NoHeads)}
		}
	}
	info := m.Model.Info()
	if len(info.Predictors) == 0 || o.Heads == NoHeads {
		return nil
	}
	p, ok := model.OpenPredictor(m.Model, 0)
	if !ok {
		return nil // the model gives the same text without
	}
	m.Modules = append(m.Modules, &Model{Pool: m.Pool, Model: p})
	return nil
}

// headsBeside returns the file of heads that lies beside the model's: MODEL.heads.gguf beside MODEL.gguf, or heads.gguf in the model's folder.
func (m *Model) headsBeside() (string, bool) {
	for _, path := range m.File.Paths() {
		place := strings.TrimSuffix(path, ".gguf") + ".heads.gguf"
		if i, err := os.Stat(path); err == nil && i.IsDir() {
			place = filepath.Join(path, "heads.gguf")
		}
		if i, err := os.Stat(place); err == nil && i.Mode().IsRegular() {
			return place, true
		}
	}
	return "", false
}

// readHeads opens a file or a folder of heads as a module.
func (m *Model) readHeads(o Options, path string) error {
	f, err := heads.OpenFor(path, m.File, nil)
	if err != nil {
		return &OptionError{gguf.InFile(path, err)}
	}
	d := &Model{File: f, Pool: m.Pool}
	if _, err = room(m.left(o), f.LayerBytes()); err == nil {
		err = heads.SizeFits(f.Size(), m.File)
	}
	if err == nil {
		err = heads.Finite(f) // a value that is none would fail every text that drafts
	}
	if err == nil {
		d.Model, err = model.OpenModule(f, m.Pool, m.Model, model.Options{NoRepack: o.NoRepack || crowds(f), Progress: o.Progress})
	}
	if err != nil {
		_ = f.Close() // its error would only hide the cause
		return &OptionError{gguf.InFile(path, err)}
	}
	m.Modules = append(m.Modules, d)
	return nil
}

// runModules makes the engines of the draft modules.
func (m *Model) runModules(o Options) error {
	for _, d := range m.Modules {
		if o.Memory > 0 {
			o.Memory = m.left(o) + uint64(d.Model.Info().Bytes) // which are among those of m
		}
		if err := d.run(o.forDrafts(d, m.drafting), m.drafting, 0); err != nil {
			return err
		}
	}
	return nil
}

// modules returns the draft modules as methods see them.
func (m *Model) modules() (all []*method.Module) {
	for _, d := range m.Modules {
		i := d.Model.Info().Module
		of := &method.Module{Model: d.Engine.Model(), Family: i.Family, Taps: i.Taps, Heads: i.Heads, Prefix: i.Prefix, FeedsState: i.FeedsState, LayerCost: i.LayerCost, Rows: i.Rows, Block: (*method.Block)(i.Block)}
		for _, id := range i.Vocabulary {
			of.Vocabulary = append(of.Vocabulary, token.ID(id))
		}
		all = append(all, of)
	}
	return all
}

// Heads returns the families of the draft modules, each with its name, and which predictor is left out.
func (m *Model) Heads() (all []string) {
	for _, d := range m.Modules {
		i := d.Model.Info()
		if d.File == nil {
			all = append(all, i.Module.Family+" (in the model's file)")
		} else {
			all = append(all, fmt.Sprintf("%s (%s)", i.Module.Family, d.Name()))
		}
	}
	if why := m.Model.Info().LeftOut; why != "" {
		all = append(all, "mtp is left out: "+why)
	}
	return all
}

// closeFile closes the file of a model beside the model, which a module of the model's own file does not have.
func (m *Model) closeFile() error {
	if m.File == nil {
		return nil
	}
	return m.File.Close()
}
