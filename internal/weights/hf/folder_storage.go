package hf

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"time"

	"grove/internal/weights/safetensors"
)

// part is the tensors of a folder inside the model's, of which each name begins with root.
type part struct {
	file *safetensors.File
	root string
}

// Part opens the tensors of a folder inside the model's. Their names begin with root, so that they differ from the model's own.
func (b *FolderBuilder) Part(dir, root string) {
	if !b.OK() || b.Dry {
		return
	}
	f, err := OpenWeights(filepath.Join(b.Dir, dir))
	if err != nil {
		b.Err = err
		return
	}
	b.parts = append(b.parts, part{f, root})
}

// Storage is the files of a folder, whose bytes config.json decides too where they are made. It implements [gguf.Storage].
type Storage struct {
	files  []*safetensors.File
	config [sha256.Size]byte
}

// Storage returns the files that are open.
func (b *FolderBuilder) Storage() Storage {
	s := Storage{files: []*safetensors.File{b.Weights}, config: b.Config.Sum}
	for _, p := range b.parts {
		s.files = append(s.files, p.file)
	}
	return s
}

// Close closes the files.
func (s Storage) Close() (first error) {
	for _, f := range s.files {
		if err := f.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// Check returns an error where a file has become shorter since it was opened.
func (s Storage) Check() error {
	for _, f := range s.files {
		if err := f.Check(); err != nil {
			return err
		}
	}
	return nil
}

// Release tells the system that the bytes of a tensor are not needed soon.
func (s Storage) Release(b []byte) {
	for _, f := range s.files {
		f.Release(b)
	}
}

// Unchanged returns an error where a file was written since it was opened.
func (s Storage) Unchanged() error {
	for _, f := range s.files {
		if err := f.Unchanged(); err != nil {
			return err
		}
	}
	return nil
}

// Stamp returns a text that tells the versions of the files apart, and when they last changed.
func (s Storage) Stamp() (stamp string, changed time.Time, err error) {
	for _, f := range s.files {
		one, at, err := f.Stamp()
		if err != nil {
			return "", changed, err
		}
		stamp += one
		if at.After(changed) {
			changed = at
		}
	}
	return fmt.Sprintf("%x\n%s", s.config, stamp), changed, nil
}
