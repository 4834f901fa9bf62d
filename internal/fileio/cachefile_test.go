package fileio

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCachefileRead reads files of the cache: what is none, or too large, or no file, counts as missing.
func TestCachefileRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "grove", "a.json")
	if err := WriteCache(path, []byte("text")); err != nil {
		t.Fatal(err)
	}
	if got := ReadCache(path, 4); string(got) != "text" {
		t.Errorf("got %q", got)
	}
	for name, got := range map[string][]byte{
		"too large": ReadCache(path, 3), "missing": ReadCache(filepath.Join(dir, "b"), 4), "a directory": ReadCache(dir, 4), "a device": ReadCache(os.DevNull, 4),
	} {
		if got != nil {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
