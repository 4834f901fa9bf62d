// Package safetensors reads safetensors files, alone or sharded under an index, as named tensors. The
// tensors are views of the mapped files; nothing is copied.
//
// Files may be hostile: header, shapes and offsets are checked before they are used, and memory
// stays within a small multiple of the header.
package safetensors

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"grove/internal/mmap"
	"grove/internal/weights/tensor"
)

// DType is the type of a tensor's elements as files spell it, such as BF16.
type DType string

// sizes gives the bytes of an element of every type that can be laid out.
var sizes = map[DType]int{
	"BOOL": 1, "U8": 1, "I8": 1, "F8_E5M2": 1, "F8_E4M3": 1, "F8_E8M0": 1,
	"U16": 2, "I16": 2, "F16": 2, "BF16": 2,
	"U32": 4, "I32": 4, "F32": 4,
	"U64": 8, "I64": 8, "F64": 8, "C64": 8,
}

// Tensor is a tensor of a file.
type Tensor struct {
	Name  string
	Type  DType
	Shape []int  // outermost first; empty for a scalar
	Data  []byte // row-major, little endian, at any alignment; valid until Close
}

// FormatError is a fault of a file: bytes that break the format.
type FormatError struct {
	Path   string
	Offset int64  // of the fault in the file; negative where it is the file's size
	Msg    string // names the fault, on one line
}

// Error returns the fault on one line, with the file and the offset.
func (e *FormatError) Error() string {
	path := ""
	if e.Path != "" {
		path = e.Path + ": "
	}
	if e.Offset < 0 {
		return "safetensors: " + path + e.Msg
	}
	return fmt.Sprintf("safetensors: %s%s (at byte %d)", path, e.Msg, e.Offset)
}

// File is an open file, or the shards of an index together. It does not change until Close, so any
// number of goroutines may read it.
type File struct {
	Tensors  []Tensor          // by their place, shard by shard
	Metadata map[string]string // the free text of the files' headers by name; of two shards with a name, the first's

	names map[string]int
	maps  []*mmap.Map
}

// indexSuffix ends the name of the file that lists the shards.
const indexSuffix = ".index.json"

// Open maps the file at path. A name that ends in .index.json is an index; its shards are in the same directory.
// The result must be closed. Faults of the bytes are [*FormatError] values; a missing file is an error
// of the system.
func Open(path string) (*File, error) {
	f := &File{Metadata: map[string]string{}, names: map[string]int{}}
	var err error
	if strings.HasSuffix(path, indexSuffix) {
		err = f.openShards(path)
	} else {
		_, err = f.add(path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// openShards opens the shards that an index lists.
func (f *File) openShards(path string) error {
	shards, err := readIndex(path)
	if err != nil {
		return err
	}
	for _, s := range shards {
		names, err := f.add(filepath.Join(filepath.Dir(path), s.file))
		if err != nil {
			return fmt.Errorf("%w: a shard that %s lists", err, filepath.Base(path))
		}
		for _, name := range s.names {
			if !names[name] {
				return fmt.Errorf("safetensors: %s: %s: it is not in %s, where the index places it", path, tensor.Label(name), s.file)
			}
		}
	}
	return nil
}

// add maps a file, adds its tensors and returns their names.
func (f *File) add(path string) (map[string]bool, error) {
	m, err := mmap.Open(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	f.maps = append(f.maps, m)
	if len(m.Data()) == 0 {
		return nil, &FormatError{path, -1, "the file is empty; download it again"}
	}
	var tensors []Tensor
	var text map[string]string
	err = mmap.Catch(func() (err error) {
		tensors, text, err = parse(m.Data())
		return err
	})
	var bad *FormatError
	var fault *mmap.FaultError
	switch {
	case errors.As(err, &bad):
		bad.Path = path
		return nil, bad
	case errors.As(err, &fault):
		return nil, &FormatError{path, fault.Offset, "the file shrank while mapped, or cannot be read"}
	}
	for name, value := range text {
		if _, twice := f.Metadata[name]; !twice {
			f.Metadata[name] = value
		}
	}
	names := make(map[string]bool, len(tensors))
	for _, t := range tensors {
		if _, twice := f.names[t.Name]; twice {
			return nil, fmt.Errorf("safetensors: %s: %s: an earlier shard has a tensor of this name", path, tensor.Label(t.Name))
		}
		f.names[t.Name] = len(f.Tensors)
		f.Tensors = append(f.Tensors, t)
		names[t.Name] = true
	}
	return names, nil
}

// Tensor returns the tensor of that name.
func (f *File) Tensor(name string) (Tensor, bool) {
	i, ok := f.names[name]
	if !ok {
		return Tensor{}, false
	}
	return f.Tensors[i], true
}

// Close releases the files; the tensors must not be used afterwards.
func (f *File) Close() error {
	var first error
	for _, m := range f.maps {
		if err := m.Close(); err != nil && first == nil {
			first = fmt.Errorf("safetensors: %w", err)
		}
	}
	return first
}

// Check returns an error where a file has become shorter since it was opened; see [mmap.Map.Check].
func (f *File) Check() error {
	for _, m := range f.maps {
		if err := m.Check(); err != nil {
			return err
		}
	}
	return nil
}

// Unchanged returns an error where a file was written since it was opened; see [mmap.Map.Unchanged].
func (f *File) Unchanged() error {
	for _, m := range f.maps {
		if err := m.Unchanged(); err != nil {
			return err
		}
	}
	return nil
}

// Stamp returns a text that tells the versions of the files apart, and when they last changed; see [mmap.Map.Stamp].
func (f *File) Stamp() (stamp string, changed time.Time, err error) {
	for _, m := range f.maps {
		one, at, err := m.Stamp()
		if err != nil {
			return "", changed, err
		}
		stamp += one + "\n"
		if at.After(changed) {
			changed = at
		}
	}
	return stamp, changed, nil
}

// Release tells the system that the bytes b, of a tensor of this file, are not needed soon: they
// stop counting as memory and are read again when touched.
func (f *File) Release(b []byte) {
	for _, m := range f.maps {
		m.Release(b)
	}
}
