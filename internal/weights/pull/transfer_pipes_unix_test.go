//go:build unix

package pull

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPipes puts a named pipe in the places of files of a cache: none is waited for.
func TestPipes(t *testing.T) {
	dir := t.TempDir()
	c, err := OpenCache(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := c.Lock(t.Context(), "pipe", func() {}); err == nil || !strings.Contains(err.Error(), "pipe is not a regular file; remove it") {
		t.Errorf("a lock: %v", err)
	}
	if _, err := c.Read("pipe", 100); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a file: %v", err)
	}
}
