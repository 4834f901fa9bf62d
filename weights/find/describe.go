package find

import (
	"grove/internal/mmap"
	"grove/weights/gguf"
	"grove/weights/tensor"
)

// Description describes a model by the header of its file.
type Description struct {
	Arch    string
	Params  int
	Bytes   int64       // of the file, of all parts where it is split
	Type    tensor.Type // of most weights
	Context int         // tokens that the model was trained for; 0: the file does not say
}

// Describe reads the header of the model. open opens its path. It returns an error for a file that open refuses or that shrinks
// while it is read.
func (m Model) Describe(open func(path string) (*gguf.File, error)) (d Description, err error) {
	f, err := open(m.Path)
	if err != nil {
		return d, err
	}
	defer f.Close()
	err = mmap.Catch(func() error { return d.read(f) })
	return d, err
}

func (d *Description) read(f *gguf.File) (err error) {
	d.Bytes = f.Size()
	byType := map[tensor.Type]int{}
	for _, t := range f.Tensors {
		d.Params += t.Elems()
		byType[t.Type] += t.Elems()
		if n := byType[t.Type]; n > byType[d.Type] || n == byType[d.Type] && t.Type < d.Type {
			d.Type = t.Type
		}
	}
	if d.Arch, _, err = f.String("general.architecture"); err != nil {
		return err
	}
	d.Context, _, err = f.Uint(d.Arch + ".context_length")
	return err
}
