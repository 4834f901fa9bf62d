//go:build !unix

package atomicfile

import "os"

// lock does nothing: these systems do not remove a file that is open.
func lock(*os.File) bool { return true }

// removeOpen closes and removes a file.
func removeOpen(f *os.File) {
	f.Close()
	_ = os.Remove(f.Name())
}
