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

// TestHugePages: memory of any size and place stays what it is.
func TestHugePages(t *testing.T) {
	b := make([]byte, 5<<20)
	for _, part := range [][]byte{nil, b[:1], b[1:4095], b[1:], b} {
		HugePages(part)
	}
	for i := range b {
		if b[i] != 0 {
			t.Fatalf("byte %d is %d, want 0", i, b[i])
		}
		b[i] = 1
	}
}
