//go:build unix

package machine

import (
	"syscall"
	"time"
)

// CPUTime returns how long the process has kept processors busy, 0 where that is not known.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
