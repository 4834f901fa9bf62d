package machine

import (
	"bytes"
	"os"
	"strconv"
)

// PeakMemory returns the most bytes of memory that the process has had, 0 where that is not known. The
// kernel's rusage would count what the parent had before it started this process.
func PeakMemory() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kB, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil {
		return 0
	}
	return kB << 10
}
