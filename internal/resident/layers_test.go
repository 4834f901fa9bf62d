package resident

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"grove/internal/gopher"
)

// TestSearchLayers: a set is found and kept for the method, whose texts then draft with it; trials out of range are refused.
func TestSearchLayers(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	f, err := OpenFile(gopher.Name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Open(f, Options{Threads: 1, Parallel: 1, CacheType: "f16"})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	left := -1
	s, err := m.SearchLayers(t.Context(), 2, func(done, all int) { left = all - done })
	if err != nil || left != 0 || s.Layers != "1" && s.Layers != "2" && s.Layers != "1-2" || !(s.Share > 0 && s.Share <= 1) || s.Depth < 1 || s.Speed <= 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	text, err := os.ReadFile(s.Path)
	if err != nil || !bytes.Contains(text, []byte(`"draft-verify":{"primed":`)) {
		t.Errorf("%.80s, %v", text, err)
	}
	for _, n := range []int{0, mostTrials + 1} {
		if _, err := m.SearchLayers(t.Context(), n, func(int, int) {}); !errors.As(err, new(*OptionError)) {
			t.Errorf("%d trials: %v", n, err)
		}
	}
}
