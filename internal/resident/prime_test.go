package resident

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"grove/internal/gopher"
	_ "grove/internal/model/all"
	_ "grove/method/all"
)

// TestPrime: the successors come out the same twice, with hits, and numbers of tokens out of range are refused.
func TestPrime(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	f, err := OpenFile(gopher.NanoName)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Open(f, Options{Threads: 1, Parallel: 1, CacheType: "f16"})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var files [2][]byte
	for i := range files {
		left := -1
		p, err := m.Prime(t.Context(), 300, func(done, all int) { left = all - done })
		if err != nil || p.Tokens != 300 || p.Layers < 1 || p.Hits <= 0 || left != 0 {
			t.Fatalf("%+v, %v", p, err)
		}
		if files[i], err = os.ReadFile(p.Path); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(files[0], files[1]) || !bytes.Contains(files[0], []byte(`"recycle":{"primed":`)) {
		t.Errorf("the second file is another, or has nothing of recycle: %.60s", files[0])
	}
	for _, n := range []int{0, 1 << 20} {
		if _, err := m.Prime(t.Context(), n, func(int, int) {}); !errors.As(err, new(*OptionError)) {
			t.Errorf("%d tokens: %v", n, err)
		}
	}
}
