package pages

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestShrink: a disk that is full makes a tenth of the bytes go, the files that were used longest ago; where nothing is left, nothing goes.
func TestShrink(t *testing.T) {
	f := folder{dir: t.TempDir()}
	now := time.Now()
	var paths []string
	for i := range 40 {
		path := f.path(sha256.Sum256(fmt.Append(nil, i)))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, 100), 0o600); err != nil {
			t.Fatal(err)
		}
		f.stamp(path, i, now) // the later the page, the older
		paths = append(paths, path)
	}
	if n := f.shrink(); n != 5 || f.bytes != 3500 {
		t.Errorf("%d files are removed, %d bytes are left", n, f.bytes)
	}
	for i, path := range paths {
		if _, err := os.Stat(path); (err == nil) != (i < 35) {
			t.Errorf("file %d: %v", i, err)
		}
	}
	for f.bytes > 0 {
		if n := f.shrink(); n == 0 {
			t.Fatalf("%d bytes stay", f.bytes)
		}
	}
	if n := f.shrink(); n != 0 {
		t.Errorf("%d files of none are removed", n)
	}
}
