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
