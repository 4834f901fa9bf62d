//go:build !unix

package fileio

import (
	"io/fs"
	"os"
	"time"
)

// lock does nothing: these systems do not remove a file that is open.
func lock(*os.File) bool { return true }

// restTime is how long a temporary file is left alone after its last change: these systems rename no file that is open, so that for
// a moment nothing shows that a process is at work on it.
const restTime = time.Hour

// abandoned reports whether a temporary file may be one that nobody holds.
func abandoned(info fs.FileInfo) bool { return time.Since(info.ModTime()) > restTime }

// removeOpen closes and removes a file.
func removeOpen(f *os.File) {
	f.Close()
	_ = os.Remove(f.Name())
}

// rename closes a file and gives it its name.
func rename(f *os.File, path string) error {
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
