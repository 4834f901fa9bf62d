package resident

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"grove/internal/compute"
	"grove/internal/engine/adapters"
	"grove/internal/model"
	"grove/internal/weights/gguf"
	"grove/internal/weights/heads"
	"grove/method"
)

// NoHeads is the value of [Options.Heads] by which heads beside the model's file are not used.
const NoHeads = "off"

// readModules reads the draft modules of the model: those of the file of heads, and the predictors of its own file.
func (m *Model) readModules(o Options) error {
	path, found := o.Heads, false
	if path == "" {
		path, found = m.headsBeside()
	}
	if path != "" && path != NoHeads {
		if err := m.readHeads(o, path); err != nil && !found {
			return flagged("heads", err)
		} else if err != nil {
			return &OptionError{Err: fmt.Errorf("%w; it was found beside the model: --heads %s leaves it out", err, NoHeads)}
		}
	}
	for i := range m.Model.Info().Predictors {
		if p, ok := model.OpenPredictor(m.Model, i); ok && o.Heads != NoHeads { // the model gives the same text without
			m.Modules = append(m.Modules, &Model{Pool: m.Pool, Model: p})
		}
	}
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
		return &OptionError{Err: gguf.InFile(path, err)}
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
		return &OptionError{Err: gguf.InFile(path, err)}
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
		if a := d.Model.Info().Adds; a != nil {
			d.accelerates = m.Engine.Accelerate(&adapters.Set{Name: a.Name, List: []compute.Adapted{{Adapter: a.Adapter, Scale: 1}}})
		}
	}
	return nil
}

// modules returns the draft modules as methods see them: the predictors of the model's file are one, the first, which has the others.
func (m *Model) modules() (all []*method.Module) {
	for _, d := range m.Modules {
		of := &method.Module{Model: d.Engine.Model(), Module: *d.Model.Info().Module}
		if a := d.Model.Info().Adds; a != nil {
			of.Accelerated = method.Accelerated{Layers: a.Layers, Adapter: d.accelerates}
		}
		if n := len(all) - 1; d.File == nil && n >= 0 && all[n].Family == of.Family {
			all[n].Next = append(all[n].Next, of)
			continue
		}
		all = append(all, of)
	}
	return all
}

// Heads returns the families of the draft modules, each with its name, and which predictor is left out.
func (m *Model) Heads() (all []string) {
	own := 0
	for _, d := range m.Modules {
		if d.File == nil {
			own++
		} else {
			all = append(all, fmt.Sprintf("%s (%s)", d.Model.Info().Module.Family, d.Name()))
		}
	}
	switch {
	case own == 1:
		all = append(all, "mtp (in the model's file)")
	case own > 1:
		all = append(all, fmt.Sprintf("mtp (%d predictors in the model's file)", own))
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
