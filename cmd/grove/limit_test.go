package main

import (
	"math"
	"runtime/debug"
	"testing"

	"grove/internal/command/flags"
	"grove/internal/machine"
)

// TestMemoryLimit: garbage is collected in time for --memory-limit, or for the machine's memory; GOMEMLIMIT comes first.
func TestMemoryLimit(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	whole := int64(machine.Memory())
	for _, tt := range []struct{ before, flag, least, most int64 }{
		{math.MaxInt64, 16 << 30, 16<<30 - 32<<20, 16<<30 - 1},
		{1 << 30, 16 << 30, 1 << 30, 1 << 30},
		{math.MaxInt64, 0, whole / 8 * 7, max(whole, 1)},
	} {
		if tt.flag == 0 && whole == 0 {
			continue // the system does not say
		}
		debug.SetMemoryLimit(tt.before)
		c := serveCommand{}
		c.MemoryLimit = flags.Bytes(tt.flag)
		c.limitMemory()
		if n := debug.SetMemoryLimit(-1); n < tt.least || n > tt.most {
			t.Errorf("%+v: the limit is %d", tt, n)
		}
	}
}
