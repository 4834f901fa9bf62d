package flags

import (
	"strings"
	"testing"

	"grove"
	"grove/internal/command/exit"
)

// TestChooseKernels: an unknown name is refused with the known ones, and each of these can be chosen.
func TestChooseKernels(t *testing.T) {
	defer func(name string) { _ = grove.UseKernels(name) }(grove.Version().Kernels)
	err := chooseKernels("sse9")
	want := `GROVE_KERNELS: grove: kernels "sse9" are not known; this machine can run ` + strings.Join(grove.Kernels(), ", ")
	if err == nil || err.Error() != want || exit.Code(err) != exit.CodeVariable {
		t.Errorf("got %v, exit code %d, want %s, %d", err, exit.Code(err), want, exit.CodeVariable)
	}
	for _, name := range grove.Kernels() {
		if err := chooseKernels(name); err != nil || grove.Version().Kernels != name {
			t.Errorf("choosing %s: %v, in use is %s", name, err, grove.Version().Kernels)
		}
	}
}
