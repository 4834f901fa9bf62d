//go:build unix

package fileio

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lock takes the file for this process until it is closed, and reports false where another holds it.
// File systems without locks let everybody have it.
func lock(f *os.File) bool {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	return !errors.Is(err, unix.EWOULDBLOCK)
}

// abandoned reports whether a temporary file may be one that nobody holds; its lock says so for certain.
func abandoned(fs.FileInfo) bool { return true }

// removeOpen removes a file that is locked.
func removeOpen(f *os.File) { _ = os.Remove(f.Name()) }

// rename gives a file that is locked its name, and sees to it that the disk has both. The lock is held until then, or another
// writer would remove the file as one that nobody holds.
func rename(f *os.File, path string) error {
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil // a folder that may be written and not read
	}
	defer dir.Close()
	if err := dir.Sync(); !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) { // what some file systems answer
		return err
	}
	return nil
}
