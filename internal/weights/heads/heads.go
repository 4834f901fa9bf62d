// Package heads reads drafting heads as their authors publish them (safetensors files with config.json or adapter_config.json) and presents them as
// GGUF: a small model of its own, whose architecture is the family of the head. docs/models.md lists the families and the keys and tensors of
// such a file.
//
// Files may be hostile: names, shapes and settings are checked before they are used. A pickle of PyTorch is refused by its name and never
// read.
package heads

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"grove/internal/mmap"
	"grove/internal/weights/gguf"
	"grove/internal/weights/hf"
	"grove/internal/weights/tensor"
)

// presented are the families that can be read, and how each presents its tensors.
var presented = map[string]func(*builder){"chimera": chimera, "clover": clover, "dflash": dflash, "medusa": medusa, "hydra": hydra, "eagle": eagle, "eagle3": eagle3, "falcon-draft": falcon, "kangaroo": kangaroo, "lora-drop": loraDrop, "m2r2": m2r2, "ppd": ppd, "transfer": transfer}

// native are families that grove drafts with from files of GGUF, and whose published layouts it does not read.
var native = map[string]bool{"dflash-draft": true}

// Families returns the names of the families, which are architectures of GGUF, sorted.
func Families() []string { return slices.Sorted(maps.Keys(presented)) }

// Open opens the head at path: a file of GGUF whose architecture is a family, a folder as its authors publish it, or a safetensors file, of
// which the config.json beside it (PPD: adapter_config.json) says the settings. The result must be closed. A head of another family, a tensor that is missing or has
// no place, shapes that contradict each other, and settings that grove does not know are refused by name.
func Open(path string) (*gguf.File, error) { return OpenFor(path, nil, nil) }

// OpenFor is [Open] for a target: settings that the authors leave to it, such as the attention of Hydra++'s prefix layer, are taken from its
// metadata, and what [Fits] refuses is refused. Note, if it is not nil, is called with what the head file leaves out or what was assumed, in
// a sentence each. A target that is nil is not known.
func OpenFor(path string, target *gguf.File, note func(text string)) (*gguf.File, error) {
	form, err := formOf(path)
	if err != nil {
		return nil, err
	}
	var f *gguf.File
	if form.gguf {
		f, err = openGGUF(path)
	} else {
		f, err = present(form, target, note)
	}
	if err != nil || target == nil {
		return f, err
	}
	if err := fits(f, target); err != nil {
		return nil, errors.Join(fmt.Errorf("heads: %s: %w", path, err), f.Close())
	}
	return f, nil
}

// openGGUF opens a file of GGUF that must be a head.
func openGGUF(path string) (*gguf.File, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	arch, _, err := f.String("general.architecture")
	switch {
	case err != nil:
	case native[arch]:
		return f, nil
	case refused[arch] != "":
		err = noDrafter(path, arch)
	case presented[arch] == nil:
		err = fmt.Errorf("heads: %s: architecture %.40q is no drafting head's; those are %s", path, arch, strings.Join(Families(), ", "))
	default:
		return f, nil
	}
	return nil, errors.Join(err, f.Close())
}

// present presents a published head.
func present(form form, target *gguf.File, note func(string)) (*gguf.File, error) {
	if note == nil {
		note = func(string) {}
	}
	b, err := newBuilder(form, target, note)
	if err != nil {
		return nil, err
	}
	err = mmap.Catch(func() error {
		family := b.family()
		if err := b.FirstError(); err != nil {
			return err
		}
		b.describe(family)
		presented[family](b)
		b.leftOver()
		b.texts()
		return b.FirstError()
	})
	if err != nil {
		return nil, errors.Join(err, b.Storage().Close())
	}
	return gguf.New(form.path, b.Metadata, b.Tensors, b.Storage(), b.Load)
}

// Finite returns an error that names the first value of a head that is no finite number. It reads all of the file.
func Finite(f *gguf.File) error {
	return mmap.Catch(func() error {
		for _, t := range f.Tensors {
			v, err := f.Load(t)
			if err != nil {
				return err
			}
			if err := finite(v); err != nil {
				return fmt.Errorf("heads: %s: %w", tensor.Label(t.Name), err)
			}
			f.Release(v.Data)
		}
		return f.Check()
	})
}

// finite looks at the values of a tensor, some rows at a time.
func finite(v tensor.View) error {
	n := v.Shape[len(v.Shape)-1]
	row, ok := v.Type.RowBytes(n)
	if !ok {
		return fmt.Errorf("type is %v; rows of %d values are not known of it", v.Type, n)
	}
	step := max(1, (1<<14)/n)
	values := make([]float32, step*n)
	for at := 0; at < len(v.Data); at += step * row {
		part := v.Data[at:min(at+step*row, len(v.Data))]
		x := values[:len(part)/row*n]
		if err := tensor.Unpack(v.Type, x, part); err != nil {
			return err
		}
		for i, value := range x {
			if value-value != 0 {
				return fmt.Errorf("row %d: element %d is %v; weights must be finite", at/row+i/n, i%n, value)
			}
		}
	}
	return nil
}

// describe adds the keys that all families have but for the width.
func (b *builder) describe(family string) {
	b.Describe(family)
	name := b.Config.TextOr("base_model_name_or_path", "")
	if name == "" {
		name = b.Config.Sub("speculators_config").Sub("verifier").TextOr("name_or_path", "")
	}
	if name != "" {
		hf.FolderSet(b.FolderBuilder, "heads.target.name", strings.ToValidUTF8(name[:min(len(name), maxText)], "?"))
	}
	if b.target == nil {
		return
	}
	sum, err := checksum(b.target)
	if err != nil {
		b.Fail("%w", err)
	} else if sum != "" {
		hf.FolderSet(b.FolderBuilder, checksumKey, sum)
	}
}

// bounds of the texts that a safetensors file may carry into the metadata.
const (
	maxTexts = 64
	maxText  = 4 << 10
	maxName  = 128
)

// texts adds the free text of the safetensors file, by its names.
func (b *builder) texts() {
	var names []string
	for name, value := range b.Weights.Metadata {
		if name != "" && len(name) <= maxName && len(value) <= maxText {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = names[:min(len(names), maxTexts)]
	for _, name := range names {
		hf.FolderSet(b.FolderBuilder, "heads.metadata."+name, b.Weights.Metadata[name])
	}
	if left := len(b.Weights.Metadata) - len(names); left > 0 {
		b.note(fmt.Sprintf("%d texts of the safetensors header are left out: at most %d of %d bytes are kept", left, maxTexts, maxText))
	}
}
