package fileio

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

const (
	writers = 6  // goroutines of a process
	writes  = 25 // of a goroutine
)

// version is a file that shows where it is not whole: a number, and lines of it.
func version(n int) []byte {
	line := fmt.Appendf(nil, "%d\n", n)
	return append(fmt.Appendf(nil, "%d lines of %s", 200+n, line), bytes.Repeat(line, 200+n)...)
}

// whole returns an error where a file is not one that version made.
func whole(text []byte) error {
	var lines, n int
	if _, err := fmt.Sscanf(string(text), "%d lines of %d\n", &lines, &n); err != nil || !bytes.Equal(text, version(n)) {
		return fmt.Errorf("%d bytes are no whole version: %w", len(text), err)
	}
	return nil
}

// TestConcurrentWriters has goroutines of several processes write and read one path: no write fails, the file is a whole version at
// any time, and nothing else is left.
func TestConcurrentWriters(t *testing.T) {
	if path := os.Getenv("GROVE_TEST_WRITE"); path != "" {
		writeMany(t, path)
		return
	}
	if runtime.GOOS == "windows" {
		t.Skip("no file that somebody reads can be replaced here")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestConcurrentWriters$")
			cmd.Env = append(os.Environ(), "GROVE_TEST_WRITE="+path)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	writeMany(t, path)
	all.Wait()
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("the folder holds %v, %v", names, err)
	}
}

func writeMany(t *testing.T, path string) {
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range writes {
				if err := WriteAtomic(path, func(out io.Writer) error {
					_, err := out.Write(version(w*writes + i))
					return err
				}); err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
				text, err := os.ReadFile(path)
				if err == nil {
					err = whole(text)
				}
				if err != nil {
					t.Errorf("reader %d: %v", w, err)
					return
				}
			}
		})
	}
	all.Wait()
}
