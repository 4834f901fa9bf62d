package mmap

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// sample writes n bytes to a new file and maps it.
func sample(t *testing.T, n int) (*Map, string, []byte) {
	t.Helper()
	want := make([]byte, n)
	for i := range want {
		want[i] = byte(i * 31)
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m, path, want
}

func TestOpen(t *testing.T) {
	page := os.Getpagesize()
	for _, n := range []int{0, 1, page - 1, page, page + 1, 3 * page} {
		m, _, want := sample(t, n)
		if !bytes.Equal(m.Data(), want) {
			t.Errorf("%d bytes: wrong data", n)
		}
		for range 2 {
			if err := m.Close(); err != nil {
				t.Errorf("%d bytes: close: %v", n, err)
			}
		}
		if m.Data() != nil {
			t.Errorf("%d bytes: data after close", n)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := Open(t.TempDir()); err == nil || !strings.HasSuffix(err.Error(), "it is a directory; a regular file is needed") {
		t.Errorf("directory: %v", err)
	}
}

func TestRelease(t *testing.T) {
	page := os.Getpagesize()
	m, _, want := sample(t, 5*page+100)
	data := m.Data()
	for _, b := range [][]byte{
		nil, data, data[:1], data[1:], data[1 : 2*page], data[page : 2*page], data[len(data)-1:],
		data[len(data):], make([]byte, 4*page),
	} {
		m.Release(b)
		if !bytes.Equal(data, want) {
			t.Fatalf("data changed after releasing %d bytes", len(b))
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m.Release(want)
}

func TestCatchShrunkFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files are read whole, and cannot shrink")
	}
	page := os.Getpagesize()
	m, path, _ := sample(t, 4*page)
	if err := os.Truncate(path, int64(page)); err != nil {
		t.Fatal(err)
	}
	var sum byte
	err := Catch(func() error {
		for _, b := range m.Data() {
			sum += b
		}
		return nil
	})
	var fault *FaultError
	if !errors.As(err, &fault) {
		t.Fatalf("got %v, want a FaultError", err)
	}
	if fault.Path != path || fault.Offset != int64(page) {
		t.Errorf("got %s at %d, want %s at %d", fault.Path, fault.Offset, path, page)
	}
	if !strings.Contains(err.Error(), "shrank while mapped") {
		t.Errorf("message %q", err)
	}
}

func TestCatchPasses(t *testing.T) {
	want := errors.New("own error")
	if err := Catch(func() error { return want }); err != want {
		t.Errorf("error: got %v", err)
	}
	if err := Catch(func() error { return nil }); err != nil {
		t.Errorf("success: got %v", err)
	}
	var none *Map
	empty := []int{}
	for name, fn := range map[string]func() error{
		"value": func() error { panic("text") },
		"error": func() error { panic(want) },
		"index": func() error { empty[len(empty)]++; return nil },
		"nil":   func() error { none.path = ""; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			t.Errorf("returned %v", Catch(fn))
		})
	}
}

// TestCheck finds a file that has shrunk within its last page, where reading does not fault.
func TestCheck(t *testing.T) {
	m, path, _ := sample(t, 100)
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 40); err != nil {
		t.Fatal(err)
	}
	var fault *FaultError
	if err := m.Check(); runtime.GOOS != "windows" && (!errors.As(err, &fault) || fault.Offset != 40) {
		t.Errorf("got %v, want a fault at byte 40", err)
	}
}
