package machine

import (
	"runtime"
	"testing"
	"time"
)

func TestMachine(t *testing.T) {
	if CPU() == "" {
		t.Error("the processor has no name")
	}
	if n := Memory(); runtime.GOOS == "linux" && n < 16<<20 {
		t.Errorf("the machine has %d bytes of memory", n)
	}
}

func TestUsage(t *testing.T) {
	if PeakMemory() < 1<<20 {
		t.Errorf("the process has had at most %d bytes", PeakMemory())
	}
	if runtime.GOOS == "windows" {
		t.Skip("the processors' time is not known on Windows")
	}
	before := CPUTime()
	for end := time.Now().Add(20 * time.Millisecond); time.Now().Before(end); {
	}
	if spent := CPUTime() - before; spent <= 0 || spent > 20*time.Second {
		t.Errorf("20 ms of work took %v of processors", spent)
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
