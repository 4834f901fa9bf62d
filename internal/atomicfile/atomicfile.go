// Package atomicfile writes files that readers find whole or not at all.
package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Write writes a file with what fill writes, under a temporary name beside path that is synced and then
// renamed: path holds what it held before, or all of the new file. On error nothing new is left. A process
// that is killed leaves its temporary file, which the next Write to the same path removes; that of a
// process still at work stays. Errors are fill's own or the system's, without a package prefix.
func Write(path string, fill func(io.Writer) error) (err error) {
	sweep(path)
	tmp, err := create(path)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tmp.Close()
			_ = os.Remove(tmp.Name())
		}
	}()
	for _, step := range []func() error{
		func() error { return fill(tmp) },
		func() error { return tmp.Chmod(0o644) },
		tmp.Sync,
		tmp.Close,
		func() error { return os.Rename(tmp.Name(), path) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// infix stands between the name of a file and the digits that make its temporary name.
const infix = ".tmp-"

// create makes a temporary file and locks it. Another process may have swept it away before it was
// locked; then the name is gone, and another is tried.
func create(path string) (*os.File, error) {
	for {
		tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+infix+"*")
		if at := new(fs.PathError); errors.As(err, &at) {
			at.Path = path // whose temporary name means nothing to anybody
		}
		if err != nil {
			return nil, err
		}
		if lock(tmp) {
			mine, err := tmp.Stat()
			named, err2 := os.Stat(tmp.Name())
			if err == nil && err2 == nil && os.SameFile(mine, named) {
				return tmp, nil
			}
		}
		tmp.Close()
	}
}

// sweep removes the temporary files of path that nobody holds. It is tidiness: errors are left to what
// comes next.
func sweep(path string) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return
	}
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), filepath.Base(path)+infix)
		if !ok || digits == "" || strings.Trim(digits, "0123456789") != "" || !e.Type().IsRegular() {
			continue
		}
		name := filepath.Join(filepath.Dir(path), e.Name())
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if lock(f) {
			removeOpen(f)
		}
		f.Close()
	}
}
