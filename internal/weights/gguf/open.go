package gguf

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"grove/internal/mmap"
	"grove/internal/weights/tensor"
)

const (
	keySplitNo      = "split.no"
	keySplitCount   = "split.count"
	keySplitTensors = "split.tensors.count"
)

// Open maps the file at path and parses it. Any part of a split file, named as in
// NAME-00002-of-00003.gguf, opens the whole: the metadata of the first part and the tensors of all.
// The result must be closed. Faults of the file's bytes are [*FormatError] values; a missing file or
// part is an error of the system.
func Open(path string) (*File, error) {
	f, err := openPart(path)
	if err != nil {
		return nil, err
	}
	no, count, err := f.split()
	if err != nil || count <= 1 {
		return closeOn(err, f)
	}
	prefix, named := strings.CutSuffix(path, splitSuffix(no, count))
	if !named {
		err := fmt.Errorf("gguf: %s: part %d of %d must be named NAME%s", path, no+1, count, splitSuffix(no, count))
		return closeOn(err, f)
	}
	if no != 0 {
		if err := f.Close(); err != nil {
			return nil, err
		}
		if f, err = openPart(prefix + splitSuffix(0, count)); err != nil {
			return nil, fmt.Errorf("%w: the first of %d parts, needed by %s", err, count, filepath.Base(path))
		}
	}
	return closeOn(f.join(prefix, count), f)
}

// closeOn returns f, or err after closing f.
func closeOn(err error, f *File) (*File, error) {
	if err != nil {
		_ = f.Close() // its error would only hide the cause
		return nil, err
	}
	return f, nil
}

// splitSuffix returns the end of the name of part no, counted from 0.
func splitSuffix(no, count int) string {
	return fmt.Sprintf("-%05d-of-%05d.gguf", no+1, count)
}

// openPart maps and parses one file.
func openPart(path string) (*File, error) {
	m, err := mmap.Open(path)
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	f, err := parseMap(m, path)
	if err != nil {
		_ = m.Close()
	}
	return f, err
}

// parseMap parses a mapped file, which may shrink while it is read.
func parseMap(m *mmap.Map, path string) (f *File, err error) {
	if len(m.Data()) == 0 {
		return nil, &FormatError{path, -1, "the file is empty; download it again"}
	}
	err = mmap.Catch(func() (err error) {
		f, err = Parse(m.Data())
		return err
	})
	var bad *FormatError
	var fault *mmap.FaultError
	switch {
	case errors.As(err, &bad):
		if bad.Path = path; strings.HasSuffix(bad.Msg, " are left") {
			bad.Msg += "; the file is cut off or broken: download it again"
		}
		return nil, bad
	case errors.As(err, &fault):
		return nil, &FormatError{path, fault.Offset, "the file shrank while mapped, or cannot be read"}
	}
	f.parts[0].path, f.stores = path, []Storage{m}
	return f, nil
}

// split returns the number of this part and the count of parts, 0 for a file that is not split.
func (f *File) split() (no, count int, err error) {
	count, _, err = f.Uint(keySplitCount)
	if err != nil || count <= 1 {
		return 0, count, err
	}
	no, _, err = f.Uint(keySplitNo)
	if err == nil && no >= count {
		v, _ := f.Lookup(keySplitNo)
		err = f.fail(v, "key %q: %d is not below the count of parts, %d", keySplitNo, no, count)
	}
	return no, count, err
}

// join opens parts 1 and up and adds their tensors to f, which is part 0.
func (f *File) join(prefix string, count int) error {
	if err := f.checkPart(f, 0, count); err != nil {
		return err
	}
	for no := 1; no < count; no++ {
		p, err := openPart(prefix + splitSuffix(no, count))
		if err != nil {
			return fmt.Errorf("%w: part %d of %d of %s", err, no+1, count, filepath.Base(f.parts[0].path))
		}
		if err := f.checkPart(p, no, count); err != nil {
			_ = p.Close()
			return err
		}
		f.parts, f.stores = append(f.parts, p.parts...), append(f.stores, p.stores...)
		for _, t := range p.Tensors {
			f.names[t.Name] = len(f.Tensors)
			f.Tensors = append(f.Tensors, t)
		}
	}
	want, ok, err := f.Uint(keySplitTensors)
	if err == nil && ok && want != len(f.Tensors) {
		v, _ := f.Lookup(keySplitTensors)
		err = f.fail(v, "key %q: %d tensors were promised, the parts hold %d", keySplitTensors, want, len(f.Tensors))
	}
	return err
}

// checkPart checks that the keys of p agree with its file name and that f has none of its tensors.
func (f *File) checkPart(p *File, no, count int) error {
	gotNo, gotCount, err := p.split()
	if err != nil {
		return err
	}
	if gotNo != no || gotCount != count {
		v, _ := p.Lookup(keySplitNo)
		return p.fail(v, "the file says it is part %d of %d, its name %d of %d", gotNo+1, gotCount, no+1, count)
	}
	if p == f {
		return nil
	}
	for i, t := range p.Tensors {
		if _, twice := f.names[t.Name]; twice {
			return &FormatError{p.parts[0].path, p.parts[0].offsets[i], tensor.Label(t.Name) + ": an earlier part has a tensor of this name"}
		}
	}
	return nil
}
