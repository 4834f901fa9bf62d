//go:build !unix

package main

import "runtime"

// peakMemory returns the bytes of memory that Go has from the system; mapped files are not among them.
func peakMemory() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys)
}
