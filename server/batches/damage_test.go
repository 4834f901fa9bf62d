package batches

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
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

// TestDamagedFiles: a file of which a byte has changed is not given out, and no batch takes its requests; a start names files that are gone.
func TestDamagedFiles(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Config{Dir: dir}, &host{identity: "m"})
	input := s.keep(t, "ann", lines(5))
	b := s.until(t, "ann", s.begin(t, "ann", lines(5)), completed)
	output := b["output_file_id"].(string)
	for _, id := range []string{input, output} {
		path := s.store.path(id)
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, damage := range []func(b []byte) []byte{
			func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
			func(b []byte) []byte { return b[:len(b)-1] },
			func(b []byte) []byte { return append(b, '\n') },
		} {
			if err := os.WriteFile(path, damage(append([]byte(nil), good...)), 0o600); err != nil {
				t.Fatal(err)
			}
			if status, text := s.ask("ann", "GET", "/v1/files/"+id+"/content", "", ""); status != 500 || !strings.Contains(text, "file_damaged") || strings.Contains(text, dir) {
				t.Errorf("%s: %d %s", id, status, text)
			}
		}
		if id == input {
			made := s.get(t, "ann", "POST", "/v1/batches", `{"input_file_id":"`+input+`","endpoint":"/v1/embeddings","completion_window":"24h"}`)
			if b := s.until(t, "ann", made["id"].(string), failed); !strings.Contains(fmt.Sprint(b["errors"]), "file_damaged") {
				t.Errorf("%v", b)
			}
		}
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
		if text := s.text(t, "ann", id); text != string(good) {
			t.Errorf("%q", text)
		}
	}
	s.close(t)
	if err := os.Remove(filepath.Join(dir, filesDir, output)); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	again, err := Open(Config{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil || !strings.Contains(log.String(), output) {
		t.Errorf("%v; %s", err, log.String())
	}
}
