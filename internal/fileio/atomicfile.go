// Package fileio writes files that readers find whole or not at all, keeps files of a cache, and reads regular files alone.
package fileio

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// WriteAtomic writes a file with what fill writes, under a temporary name beside path that is synced and then
// renamed: path holds what it held before, or all of the new file. On error nothing new is left. A process
// that is killed leaves its temporary file, which the next Write to the same path removes; that of a
// process still at work stays. Any number of goroutines and processes may write one path: each writes a whole file, and
// the one that is renamed last stays. A symbolic link stays, and the file that it names is replaced. A device or a pipe is
// written as it is. The writer that fill is given is an [*os.File], which may be written at any place; a pipe may not. Errors are fill's own or the system's, without a package prefix.
func WriteAtomic(path string, fill func(io.Writer) error) (err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return writeDevice(path, fill)
	}
	path = target(path)
	sweep(path)
	tmp, err := create(path)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			removeOpen(tmp)
		}
		_ = tmp.Close() // it is synced; and on some systems closed
	}()
	for _, step := range []func() error{
		func() error { return fill(tmp) },
		func() error { return tmp.Chmod(0o644) },
		tmp.Sync,
		func() error { return rename(tmp, path) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// writeDevice writes a file that no other can replace.
func writeDevice(path string, fill func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	err = fill(f)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// target returns the name behind symbolic links; that of a link to nothing is its own.
func target(path string) string {
	if at, err := filepath.EvalSymlinks(path); err == nil {
		return at
	}
	return path
}

// Check returns an error where [WriteAtomic] could not write path, or would overwrite a file that is read: a file of reads by
// whatever name, or one in a folder of reads. It is for the time before the work whose result is written. It leaves
// nothing behind. The errors are those of [fs.PathError].
func Check(path string, reads ...string) error {
	refuse := func(format string, args ...any) error {
		return &fs.PathError{Op: "write", Path: path, Err: fmt.Errorf(format, args...)}
	}
	if path == "" {
		return refuse("the name is empty; name a file")
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return try(path)
	case err != nil:
		return err
	case info.IsDir():
		return refuse("it is a directory; name a file")
	}
	for _, r := range reads {
		if same, name := holds(r, info); same {
			return refuse("it is the file %s, which is read; name another", name)
		}
	}
	if !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return try(target(path))
}

// holds reports whether a file is the one that is read, or one in the folder that is read, and returns its name.
func holds(read string, file fs.FileInfo) (same bool, name string) {
	info, err := os.Stat(read)
	if err != nil {
		return false, "" // it is not there, and cannot be overwritten
	}
	if !info.IsDir() {
		return os.SameFile(info, file), read
	}
	entries, _ := os.ReadDir(read) // a folder that cannot be read has no files that are
	for _, e := range entries {
		name := filepath.Join(read, e.Name())
		if info, err := os.Stat(name); err == nil && os.SameFile(info, file) {
			return true, name
		}
	}
	return false, ""
}

// try makes a temporary file for path, and removes it.
func try(path string) error {
	tmp, err := create(path)
	if err != nil {
		return err
	}
	removeOpen(tmp)
	_ = tmp.Close() // on some systems it is closed
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
		if own(tmp) {
			return tmp, nil
		}
		tmp.Close()
	}
}

// own locks a temporary file, and reports false where another holds it, or where its name has become another's or nobody's
// before it was locked. Who owns a temporary file may remove or rename it, and nobody else does.
func own(f *os.File) bool {
	if !lock(f) {
		return false
	}
	mine, err := f.Stat()
	named, err2 := os.Stat(f.Name())
	return err == nil && err2 == nil && os.SameFile(mine, named)
}

// sweep removes the temporary files of path that nobody holds. It is tidiness: errors are left to what
// comes next.
func sweep(path string) { sweepAll(filepath.Dir(path), filepath.Base(path), 0) }

// Sweep removes the temporary files in a folder that nobody holds and that have not changed for an age: what writers have left that were killed.
// The age is for file systems whose locks other machines do not see. Errors are left.
func Sweep(dir string, age time.Duration) { sweepAll(dir, "", age) }

// sweepAll removes the temporary files of a name, or of all names where it is "".
func sweepAll(dir, base string, age time.Duration) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		of, digits, ok := cutLast(e.Name(), infix)
		if !ok || base != "" && of != base || digits == "" || strings.Trim(digits, "0123456789") != "" || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); err != nil || !abandoned(info) || time.Since(info.ModTime()) < age {
			continue
		}
		f, err := os.OpenFile(filepath.Join(dir, e.Name()), os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if own(f) {
			removeOpen(f)
		}
		f.Close()
	}
}

// cutLast cuts s around the last sep.
func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
