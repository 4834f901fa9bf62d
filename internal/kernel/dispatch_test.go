package kernel

import "testing"

func TestUseRefuses(t *testing.T) {
	defer func() {
		if got, want := recover(), "kernel: this machine has no implementation abacus"; got != want {
			t.Errorf("panic %q, want %q", got, want)
		}
	}()
	Use("abacus")
}
