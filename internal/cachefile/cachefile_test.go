package cachefile

import (
	"os"
	"path/filepath"
	"testing"
)

// TestRead reads files of the cache: what is none, or too large, or no file, counts as missing.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "grove", "a.json")
	if err := Write(path, []byte("text")); err != nil {
		t.Fatal(err)
	}
	if got := Read(path, 4); string(got) != "text" {
		t.Errorf("got %q", got)
	}
	for name, got := range map[string][]byte{
		"too large": Read(path, 3), "missing": Read(filepath.Join(dir, "b"), 4), "a directory": Read(dir, 4), "a device": Read(os.DevNull, 4),
	} {
		if got != nil {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
