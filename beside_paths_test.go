package grove_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"grove"
)

// TestMissingBeside: a path at which no file is fails before any model is read, and the error names its flag.
func TestMissingBeside(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.gguf")
	for flag, o := range map[string]grove.Options{
		"skip-adapters": {SkipAdapters: missing}, "judge": {Judge: missing}, "guide": {Guides: []string{"gopher-nano", missing}},
		"heads": {Heads: missing}, "draft": {Draft: missing}, "middle": {Draft: "gopher-nano", Middle: missing},
	} {
		t.Run(flag, func(t *testing.T) {
			o.Progress = func(done, all int64) { t.Errorf("%d of %d bytes of a model were read", done, all) }
			m, err := grove.Open(goldenModel, o)
			if err == nil {
				_ = m.Close()
			}
			if invalid := (*grove.OptionError)(nil); !errors.As(err, &invalid) || !strings.Contains(err.Error(), "--"+flag+": ") || !strings.Contains(err.Error(), missing) {
				t.Errorf("%v, want an OptionError with --%s and the path", err, flag)
			}
		})
	}
}
