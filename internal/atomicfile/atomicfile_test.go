package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestWrite replaces a file, and leaves the old one and nothing else where the new one fails midway.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	text := func(s string, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, e := io.WriteString(w, s)
			return errors.Join(e, err)
		}
	}
	for _, s := range []string{"old", "new"} {
		if err := Write(path, text(s, nil)); err != nil {
			t.Fatal(err)
		}
	}
	broken := errors.New("broken")
	if err := Write(path, text("half", broken)); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "new" {
		t.Errorf("the file holds %q, %v", got, err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("the folder holds %v, %v", names, err)
	}
	if err := Write(filepath.Join(dir, "none", "f"), text("", nil)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing folder gives %v", err)
	}
}

// TestSweep expects a write to remove what killed ones left, and nothing else.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, name := range []string{"f.tmp-123", "f.tmp-backup", "f.tmp-", "g.tmp-123", "f.tmp-1a"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := Write(path, func(io.Writer) error {
		return Write(path, func(w io.Writer) error { // the outer file is held and stays
			_, err := io.WriteString(w, "inner")
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if want := []string{"f", "f.tmp-", "f.tmp-1a", "f.tmp-backup", "g.tmp-123"}; !slices.Equal(got, want) {
		t.Errorf("the folder holds %v, want %v", got, want)
	}
}
