// Package gguf reads and writes GGUF files, versions 2 and 3 in little-endian byte order: metadata
// and named tensors. Tensors are views of the mapped file; nothing is copied and nothing computed.
//
// Files may be hostile: every count, length and offset is checked before it is used, and memory
// stays within a small multiple of the bytes that describe keys and tensors.
package gguf

import (
	"fmt"
	"strings"
	"time"

	"grove/internal/weights/tensor"
)

const (
	magic            = "GGUF"
	defaultAlignment = 32
	minAlignment     = 8       // as the specification says
	maxAlignment     = 1 << 16 // ours: beyond any page size
	maxKey           = 1<<16 - 1
	maxName          = 64
	maxDims          = 4
	keyAlignment     = "general.alignment"
)

// FormatError is a fault of a file: bytes that break the format, or a metadata value of another kind or range than
// the caller needs.
type FormatError struct {
	Path   string // empty for bytes in memory
	Offset int64  // of the field at fault; negative where the field was not read from bytes
	Msg    string // names the field and the fault, on one line
}

// Error returns the fault on one line, with the file, the field and the offset.
func (e *FormatError) Error() string {
	text := "gguf: "
	if e.Path != "" {
		text += e.Path + ": "
	}
	text += e.Msg
	if e.Offset >= 0 {
		text += fmt.Sprintf(" (at byte %d)", e.Offset)
	}
	return text
}

// File is a parsed file, all parts of a split file, or a file that [New] makes of parts. It does not
// change until Close, so any number of goroutines may read it.
type File struct {
	Version  uint32
	Metadata []KV          // in file order; of the first part of a split file
	Tensors  []tensor.View // in file order; they must not be used after Close; see Load for their bytes
	Adapters []string      // LoRA files that belong to the model, which others name: a manifest of ollama's

	keys   map[string]int
	names  map[string]int
	parts  []part
	stores []Storage
	load   func(i int) ([]byte, error) // makes the bytes of a tensor without Data
	digest *digest
}

// Storage owns bytes that tensors are views of: a mapped file, mostly.
type Storage interface {
	Close() error
	Check() error     // an error if a file has become shorter since it was opened
	Release(b []byte) // a hint: these bytes are not needed soon; bytes of other storages are ignored
	// Stamp returns a text that tells the versions of what is stored apart without reading it, and when it last changed.
	Stamp() (stamp string, changed time.Time, err error)
}

// part is one file and the place of its tensors.
type part struct {
	path      string // empty for bytes in memory
	size      int
	alignment int
	offsets   []int64 // where each tensor's bytes start in the file
}

// Close releases the files. The tensors, the values of Metadata and every slice of their bytes must
// not be used afterwards. It ends what [File.Prepare] began, and calls of [File.Digest].
func (f *File) Close() error {
	f.digest.end()
	var first error
	for _, s := range f.stores {
		if err := s.Close(); err != nil && first == nil {
			first = fmt.Errorf("gguf: %w", err)
		}
	}
	return first
}

// Check returns an error if a file has become shorter since it was opened.
func (f *File) Check() error {
	for _, s := range f.stores {
		if err := s.Check(); err != nil {
			return err
		}
	}
	return nil
}

// Unchanged returns an error if a file was written since it was opened.
func (f *File) Unchanged() error {
	for _, s := range f.stores {
		if file, ok := s.(interface{ Unchanged() error }); ok {
			if err := file.Unchanged(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Release tells the system that the bytes b, of a tensor of this file, are not needed soon: they
// stop counting as memory and are read again when touched.
func (f *File) Release(b []byte) {
	for _, s := range f.stores {
		s.Release(b)
	}
}

// Size returns the bytes of the file, of all parts of a split file.
func (f *File) Size() int64 {
	var n int64
	for _, p := range f.parts {
		n += int64(p.size)
	}
	return n
}

// LayerBytes returns the bytes of the layers in the file: the weights take as many or more.
func (f *File) LayerBytes() (n int) {
	for _, t := range f.Tensors {
		if strings.HasPrefix(t.Name, "blk.") || strings.Contains(t.Name, ".blk.") {
			n += len(t.Data)
		}
	}
	return n
}

// Paths returns the names of the files that f was opened from: the parts of a split file, or the folder of a file that
// [New] made; none for bytes in memory.
func (f *File) Paths() []string {
	var all []string
	for _, p := range f.parts {
		if p.path != "" {
			all = append(all, p.path)
		}
	}
	return all
}

// Tensor returns the tensor of that name, which may need [File.Load].
func (f *File) Tensor(name string) (tensor.View, bool) {
	i, ok := f.names[name]
	if !ok {
		return tensor.View{}, false
	}
	return f.Tensors[i], true
}

// Load returns a tensor of this file with its bytes. Bytes of a mapped file are a view and cost
// nothing. Other bytes are made by each call and belong to the caller.
func (f *File) Load(t tensor.View) (tensor.View, error) {
	if t.Data != nil || f.load == nil {
		return t, nil
	}
	data, err := f.load(f.names[t.Name])
	if err != nil {
		return t, err
	}
	t.Data = data
	return t, checkTensor(t, len(data))
}

// Lookup returns the metadata value of a key.
func (f *File) Lookup(key string) (Value, bool) {
	i, ok := f.keys[key]
	if !ok {
		return Value{}, false
	}
	return f.Metadata[i].Value, true
}

// Set gives a key a value: its own in place of another, or a new key at the end. Only who opens a file for others may call it.
func (f *File) Set(key string, v Value) {
	i, ok := f.keys[key]
	if !ok {
		i = len(f.Metadata)
		f.keys[key] = i
		f.Metadata = append(f.Metadata, KV{})
	}
	f.Metadata[i] = KV{key, v}
}

// The accessors below return the value of a key as a Go type. If the key is missing, ok is false and there is no
// error. A value of another kind is a [FormatError] that names the key, the wanted kind and the kind found.

// Uint returns an integer of any width that is not negative.
func (f *File) Uint(key string) (n int, ok bool, err error) {
	v, ok := f.Lookup(key)
	if !ok {
		return 0, false, nil
	}
	if !v.kind.integer() {
		return 0, false, f.mistyped(key, v, "an integer")
	}
	i, fits := v.integerAt(0)
	if !fits || i < 0 || int64(int(i)) != i {
		return 0, false, f.fail(v, "key %q: %v is out of range", key, v.Any())
	}
	return int(i), true, nil
}

// Float returns a float32 or float64.
func (f *File) Float(key string) (x float64, ok bool, err error) {
	v, ok := f.Lookup(key)
	if !ok {
		return 0, false, nil
	}
	if v.kind != Float32 && v.kind != Float64 {
		return 0, false, f.mistyped(key, v, "a float")
	}
	return v.floatAt(0), true, nil
}

// Bool returns a bool.
func (f *File) Bool(key string) (b, ok bool, err error) {
	v, ok := f.Lookup(key)
	if !ok {
		return false, false, nil
	}
	if v.kind != Bool {
		return false, false, f.mistyped(key, v, "a bool")
	}
	return v.raw[0] != 0, true, nil
}

// String returns a string, any bytes.
func (f *File) String(key string) (s string, ok bool, err error) {
	v, ok := f.Lookup(key)
	if !ok {
		return "", false, nil
	}
	if v.kind != String {
		return "", false, f.mistyped(key, v, "a string")
	}
	return v.strings(1)[0], true, nil
}

// Strings returns an array of strings, each any bytes.
func (f *File) Strings(key string) (s []string, ok bool, err error) {
	v, ok, err := f.array(key, "strings", func(k Kind) bool { return k == String })
	if !ok {
		return nil, false, err
	}
	return v.strings(v.n), true, nil
}

// Ints returns an array of integers of any width.
func (f *File) Ints(key string) (n []int, ok bool, err error) {
	v, ok, err := f.array(key, "integers", Kind.integer)
	if !ok {
		return nil, false, err
	}
	n = make([]int, v.n)
	for i := range n {
		x, fits := v.integerAt(i)
		if n[i] = int(x); !fits || int64(n[i]) != x {
			return nil, false, f.fail(v, "key %q: element %d is out of range", key, i)
		}
	}
	return n, true, nil
}

// Floats returns an array of float32, or of float64 rounded to float32.
func (f *File) Floats(key string) (x []float32, ok bool, err error) {
	v, ok, err := f.array(key, "floats", func(k Kind) bool { return k == Float32 || k == Float64 })
	if !ok {
		return nil, false, err
	}
	x = make([]float32, v.n)
	for i := range x {
		x[i] = float32(v.floatAt(i))
	}
	return x, true, nil
}

func (f *File) array(key, want string, fits func(Kind) bool) (Value, bool, error) {
	v, ok := f.Lookup(key)
	if !ok {
		return v, false, nil
	}
	if v.kind != Array || !fits(v.elem) {
		return v, false, f.mistyped(key, v, "an array of "+want)
	}
	return v, true, nil
}

func (f *File) mistyped(key string, v Value, want string) error {
	return f.fail(v, "key %q: want %s, found %s", key, want, v.Type())
}

func (f *File) fail(v Value, format string, args ...any) error {
	return &FormatError{Path: f.parts[0].path, Offset: v.at, Msg: fmt.Sprintf(format, args...)}
}
