//go:build unix && !linux

package machine

import (
	"runtime"
	"syscall"
)

// PeakMemory returns the most bytes of memory that the process has had, 0 where that is not known.
func PeakMemory() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return int64(u.Maxrss)
	}
	return int64(u.Maxrss) << 10 // elsewhere in kB
}
