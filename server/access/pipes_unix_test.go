//go:build unix

package access

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPipes reads keys from a named pipe without a writer: it is refused, and nothing waits.
func TestPipes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := ReadKeys(path); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "it is a named pipe; a regular file is needed") {
		t.Errorf("got %v", err)
	}
}
