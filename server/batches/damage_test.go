package batches

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// TestDamagedStore: a store that was cut or changed is opened with its records as they were, or refused by its name as damaged, with the way out; nothing ends the process.
func TestDamagedStore(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Config{Dir: dir}, &host{identity: "m"})
	for range 60 {
		s.keep(t, "ann", lines(3))
	}
	s.until(t, "ann", s.begin(t, "ann", lines(5)), completed)
	s.close(t)
	good, err := os.ReadFile(filepath.Join(dir, storeFile))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	damages := map[string]func(b []byte) []byte{
		"empty":   func([]byte) []byte { return nil },
		"a text":  func([]byte) []byte { return []byte("hello") },
		"a model": func(b []byte) []byte { return append([]byte("GGUF"), b[4:]...) },
	}
	for i := range 16 {
		damages["cut at "+strings.Repeat("i", i)] = func(b []byte) []byte { return b[:len(b)*i/16] }
	}
	for n := range 150 {
		damages["changed "+strings.Repeat("i", n)] = func(b []byte) []byte {
			from := rng.IntN(len(b))
			for i := range 1 << rng.IntN(13) {
				if from+i < len(b) {
					b[from+i] = byte(rng.UintN(256))
				}
			}
			return b
		}
	}
	opened, refused := 0, 0
	for name, damage := range damages {
		dir := t.TempDir()
		path := filepath.Join(dir, storeFile)
		if err := os.WriteFile(path, damage(append([]byte(nil), good...)), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(Config{Dir: dir})
		if err != nil {
			refused++
			if text := err.Error(); !errors.Is(err, ErrDamaged) && !strings.Contains(text, "it is no state of grove's") && !strings.Contains(text, "has version") ||
				!strings.Contains(text, path) || !strings.Contains(text, "another --state-dir") || strings.Contains(text, "\n") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		opened++
		if err := s.store.view(func(tx *bolt.Tx) error {
			_, err := list[fileRecord](tx, nil)
			return err
		}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if opened == 0 || refused < 20 {
		t.Errorf("%d were opened, %d refused", opened, refused)
	}
}
