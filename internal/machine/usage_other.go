//go:build !unix

package machine

import (
	"runtime"
	"time"
)

// PeakMemory returns the bytes of memory that Go has from the system; mapped files are not among them.
func PeakMemory() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys)
}

// CPUTime returns 0: how long the process has kept processors busy is not known.
func CPUTime() time.Duration { return 0 }
