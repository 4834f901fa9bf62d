//go:build unix

package atomicfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock takes the file for this process until it is closed, and reports false where another holds it.
// File systems without locks let everybody have it.
func lock(f *os.File) bool {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	return !errors.Is(err, unix.EWOULDBLOCK)
}

// removeOpen removes a file that is locked.
func removeOpen(f *os.File) { _ = os.Remove(f.Name()) }
