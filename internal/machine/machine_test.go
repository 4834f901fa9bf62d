package machine

import (
	"runtime"
	"testing"
)

func TestMachine(t *testing.T) {
	if CPU() == "" {
		t.Error("the processor has no name")
	}
	if n := Memory(); runtime.GOOS == "linux" && n < 16<<20 {
		t.Errorf("the machine has %d bytes of memory", n)
	}
}

// TestHugePages gives the hint for memory of all sizes; it must not change what is there.
func TestHugePages(t *testing.T) {
	for _, n := range []int{0, 1, 4 << 10, 2 << 20, 5<<20 + 3} {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i % 251)
		}
		HugePages(b)
		HugePages(b[n/3:])
		for i := range b {
			if b[i] != byte(i%251) {
				t.Fatalf("%d bytes: byte %d has changed", n, i)
			}
		}
	}
}
