// Package session reads and writes sessions: files of a text and of the pages that a cache has of it.
package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"grove/internal/atomicfile"
	"grove/internal/regular"
	"grove/kv"
)

// ErrSession reports a session's file that the file system does not give or take.
var ErrSession = errors.New("a session cannot be read or written")

// Write writes pages that are held to a file: all of it or nothing. Errors: [ErrSession].
func Write(path string, held *kv.Held) error {
	if err := atomicfile.Write(path, func(w io.Writer) error { return held.Write(w) }); err != nil {
		return fmt.Errorf("engine: %w: %w", ErrSession, err)
	}
	return nil
}

// File is a session that is open for reading.
type File struct {
	*kv.Reader
	ctx  context.Context
	file *os.File
}

// Open opens a session that is a regular file and reads its text, until ctx ends. It returns nil where there is no file. The other
// arguments are those of [kv.Cache.NewAdaptedReader]. Errors: [kv.ErrFile], [ErrSession], ctx's.
func Open(ctx context.Context, path string, cache *kv.Cache, salt string, adapted kv.Adapted, vocabulary int) (*File, error) {
	file, err := regular.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	f := &File{ctx: ctx, file: file}
	if err != nil {
		return nil, f.fault(err)
	}
	info, err := file.Stat()
	if err == nil {
		f.Reader, err = cache.NewAdaptedReader(f, info.Size(), salt, adapted, vocabulary)
	}
	if err != nil {
		return nil, errors.Join(f.fault(err), file.Close())
	}
	return f, nil
}

// Read reads the file, until the context ends.
func (f *File) Read(p []byte) (int, error) {
	if err := f.ctx.Err(); err != nil {
		return 0, err
	}
	return f.file.Read(p)
}

// Fill reads the pages, as [kv.Reader.Fill] does. Errors are those of [Open].
func (f *File) Fill() error { return f.fault(f.Reader.Fill()) }

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// fault is an error with its kind: the context's, the file's own, or else the file system's.
func (f *File) fault(err error) error {
	switch {
	case err == nil || f.ctx.Err() != nil:
		return f.ctx.Err()
	case errors.Is(err, kv.ErrFile):
		return fmt.Errorf("engine: %s: %w", f.file.Name(), err)
	}
	return fmt.Errorf("engine: %w: %w", ErrSession, err)
}
