package resident

import (
	"errors"

	"grove/internal/compute"
	"grove/internal/model"
	"grove/internal/weights/gguf"
	"grove/internal/weights/heads"
)

// substitutes is what stands for layers that texts substitute, with its file; the zero value is nothing.
type substitutes struct {
	file   *gguf.File
	layers compute.SubstituteLayers
}

// readSubstitutes reads the file of what stands for layers that texts substitute.
func (m *Model) readSubstitutes(o Options) error {
	if o.SkipAdapters == "" {
		return nil
	}
	f, err := heads.OpenFor(o.SkipAdapters, m.File, nil)
	if err != nil {
		return &OptionError{Err: gguf.InFile(o.SkipAdapters, err)}
	}
	if _, err = room(m.left(o), f.LayerBytes()); err == nil {
		err = errors.Join(heads.SizeFits(f.Size(), m.File), heads.Finite(f))
	}
	var layers compute.SubstituteLayers
	var bytes int
	if err == nil {
		layers, bytes, err = model.OpenSubstitutes(f, m.Pool, m.Model.Info())
	}
	if err != nil {
		_ = f.Close() // its error would only hide the cause
		return &OptionError{Err: gguf.InFile(o.SkipAdapters, err)}
	}
	m.substitutes = substitutes{f, layers}
	m.Model.Info().Bytes += bytes
	return nil
}
