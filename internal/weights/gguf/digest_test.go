package gguf

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"grove/internal/weights/tensor"
)

// keepDigests makes the cache of digests an empty one that keeps those of all files at once.
func keepDigests(t *testing.T) {
	t.Helper()
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} {
		t.Setenv(name, t.TempDir())
	}
	bytes, since := keptBytes, settled
	keptBytes, settled = 0, 0
	t.Cleanup(func() { keptBytes, settled = bytes, since })
}

// writeModel writes a file of two tensors, the last byte of the second as given.
func writeModel(t *testing.T, path string, last byte) {
	t.Helper()
	tensors := []tensor.View{
		{Name: "a", Type: tensor.F32, Shape: []int{2}, Data: []byte("12345678")},
		{Name: "b", Type: tensor.F32, Shape: []int{1}, Data: []byte{1, 2, 3, last}},
	}
	if err := WriteFile(path, []KV{{"general.architecture", Of("x")}}, tensors); err != nil {
		t.Fatal(err)
	}
}

func digestOf(t *testing.T, path string) [sha256.Size]byte {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sum, err := f.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// plant writes another digest over that of the cache's one entry, so that a digest shows whether the entry was read.
func plant(t *testing.T, path string, digest, planted [sha256.Size]byte) {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	entries, _ := filepath.Glob(filepath.Dir(f.entryPath()) + "/digest-*")
	if len(entries) != 1 || entries[0] != f.entryPath() {
		t.Fatalf("the cache has %v, want %s", entries, f.entryPath())
	}
	text, err := os.ReadFile(entries[0])
	if err == nil {
		err = os.WriteFile(entries[0], bytes.Replace(text, encoded(digest), encoded(planted), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// damageEntry cuts the cache's entry of a file.
func damageEntry(t *testing.T, path string) {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.WriteFile(f.entryPath(), []byte(`{"stamp":`), 0o600); err != nil {
		t.Fatal(err)
	}
}

// setTime sets the time of a file's last change.
func setTime(t *testing.T, path string, at time.Time) {
	t.Helper()
	if err := os.Chtimes(path, time.Time{}, at); err != nil {
		t.Fatal(err)
	}
}

// changeInPlace writes over a file until its stamp is another, and leaves its content and the time of its last change as they were.
func changeInPlace(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for before, now := stampOf(f), ""; now == "" || now == before; now = stampOf(f) { // one tick of the times may pass
		if err := errors.Join(overwrite(path, "g"), overwrite(path, "G")); err != nil {
			t.Fatal(err)
		}
		setTime(t, path, info.ModTime())
	}
}

// TestDigestKept expects the digest of an unchanged file to be read from the cache, and that of a changed one to be
// made anew, by whatever way it was changed.
func TestDigestKept(t *testing.T) {
	tests := []struct {
		name   string
		change func(t *testing.T, path string)
		want   string // the digest: planted, as before, another
	}{
		{"unchanged", func(*testing.T, string) {}, "planted"},
		{"another file of the name", func(t *testing.T, path string) { writeModel(t, path, 4) }, "as before"},
		{"times", func(t *testing.T, path string) { setTime(t, path, time.Unix(1e9, 0)) }, "as before"},
		{"in place, with the time of before", changeInPlace, "as before"},
		{"a damaged entry", damageEntry, "as before"},
		{"another content", func(t *testing.T, path string) { writeModel(t, path, 5) }, "another"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if runtime.GOOS == "windows" && tt.name == "in place, with the time of before" {
				t.Skip("nothing but the time of the change shows it, which this system does not give")
			}
			keepDigests(t)
			path := filepath.Join(t.TempDir(), "m.gguf")
			writeModel(t, path, 4)
			before, planted := digestOf(t, path), [sha256.Size]byte{1, 2, 3}
			plant(t, path, before, planted)
			tt.change(t, path)
			got := "another"
			switch digestOf(t, path) {
			case before:
				got = "as before"
			case planted:
				got = "planted"
			}
			if got != tt.want {
				t.Errorf("the digest is %s, want %s", got, tt.want)
			}
			if tt.want == "as before" { // which is kept again
				plant(t, path, before, planted)
				if digestOf(t, path) != planted {
					t.Error("the digest was not kept again")
				}
			}
		})
	}
}

func stampOf(f *File) string {
	stamp, _ := f.stamp()
	return stamp
}

// overwrite changes the first byte of a file in place.
func overwrite(path, first string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(first), 0)
	return errors.Join(err, f.Close())
}

func encoded(sum [sha256.Size]byte) []byte {
	text, _ := json.Marshal(sum[:])
	return text
}

// TestDigestNotKept expects no entry for files that may change within one tick of their times, and small ones.
func TestDigestNotKept(t *testing.T) {
	for name, set := range map[string]func(){
		"changed just now": func() { settled = time.Hour },
		"small":            func() { keptBytes = 1 << 20 },
	} {
		t.Run(name, func(t *testing.T) {
			keepDigests(t)
			dir := t.TempDir()
			t.Setenv("XDG_CACHE_HOME", dir)
			set()
			path := filepath.Join(t.TempDir(), "m.gguf")
			writeModel(t, path, 4)
			digestOf(t, path)
			if left, _ := filepath.Glob(filepath.Join(dir, "grove", "*")); len(left) > 0 {
				t.Errorf("the cache has %v", left)
			}
		})
	}
}

// made is a file of a tensor in memory and one that load makes.
func made(t *testing.T, load func() ([]byte, error)) *File {
	t.Helper()
	f, err := New("dir", []KV{{"general.architecture", Of("x")}}, []tensor.View{
		{Name: "b", Type: tensor.F32, Shape: []int{1}},
		{Name: "a", Type: tensor.F32, Shape: []int{2}, Data: []byte("12345678")},
	}, &store{}, func(int) ([]byte, error) { return load() })
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestDigest compares the digest of a file with that of one whose tensors have another order and are made when they
// are asked for.
func TestDigest(t *testing.T) {
	keepDigests(t)
	path := filepath.Join(t.TempDir(), "m.gguf")
	writeModel(t, path, 4)
	want := digestOf(t, path)
	for _, c := range []struct {
		name string
		idle func() bool
	}{
		{"not prepared", nil},
		{"prepared while idle", func() bool { return true }},
		{"needed while busy", func() bool { return false }},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := made(t, func() ([]byte, error) { return []byte{1, 2, 3, 4}, nil })
			defer f.Close()
			if c.idle != nil {
				f.Prepare(c.idle)
			}
			for range 2 {
				if got, err := f.Digest(); got != want || err != nil {
					t.Errorf("got %x, %v, want %x", got, err, want)
				}
			}
		})
	}
	failure := errors.New("the disk is gone")
	f := made(t, func() ([]byte, error) { return nil, failure })
	if _, err := f.Digest(); !errors.Is(err, failure) || err.Error() != "gguf: b: the disk is gone" {
		t.Errorf("got %v", err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestDigestClosed closes files before their digest is known: a call ends, and nothing is read afterwards.
func TestDigestClosed(t *testing.T) {
	asked := make(chan bool)
	f := made(t, func() ([]byte, error) { t.Error("a tensor of a closed file is made"); return nil, io.EOF })
	f.Prepare(func() bool { asked <- true; return false })
	<-asked
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Digest(); !errors.Is(err, errClosed) {
		t.Errorf("closed while it was prepared: %v", err)
	}
	f = made(t, func() ([]byte, error) { t.Error("a tensor of a closed file is made"); return nil, io.EOF })
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f.Prepare(func() bool { return true })
	if _, err := f.Digest(); !errors.Is(err, errClosed) {
		t.Errorf("closed before: %v", err)
	}
}

// TestDigestShrunk expects an error where the file loses bytes.
func TestDigestShrunk(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files are read whole, and cannot shrink")
	}
	keepDigests(t)
	path := filepath.Join(t.TempDir(), "m.gguf")
	writeModel(t, path, 4)
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Truncate(path, 20); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Digest(); err == nil {
		t.Error("the digest of a file that shrank has no error")
	}
	if _, err := os.Stat(f.entryPath()); err == nil {
		t.Error("a digest is kept")
	}
}

// TestDigestSplit expects the digest of a split file to be that of its tensors in one file, to cover every part, and
// to be made anew where a part alone has changed.
func TestDigestSplit(t *testing.T) {
	keepDigests(t)
	paths := parts(t, nil)
	split := digestOf(t, paths[1])
	f, err := Open(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	whole := filepath.Join(t.TempDir(), "whole.gguf")
	if err := WriteFile(whole, nil, f.Tensors); err != nil {
		t.Fatal(err)
	}
	if digestOf(t, whole) != split {
		t.Error("the tensors of a split file have another digest in one file")
	}
	for no := range paths {
		changed := parts(t, func(n int, metadata []KV, tensors []tensor.View) ([]KV, []tensor.View) {
			if n == no {
				tensors[1].Data[len(tensors[1].Data)-1] ^= 1
			}
			return metadata, tensors
		})
		if digestOf(t, changed[0]) == split {
			t.Errorf("the last byte of part %d changes nothing", no)
		}
		if err := os.Rename(changed[no], paths[no]); err != nil {
			t.Fatal(err)
		}
		if digestOf(t, paths[0]) == split {
			t.Errorf("a new part %d has the digest that is kept for the old one", no)
		}
	}
}

// FuzzEntry reads hostile files of the cache of digests: a digest is the weights' own, whatever is there.
func FuzzEntry(f *testing.F) {
	f.Setenv("XDG_CACHE_HOME", f.TempDir())
	before := keptBytes
	keptBytes = 0
	f.Cleanup(func() { keptBytes = before })
	f.Add([]byte(`{"stamp":"","sha256":"AAAA"}`))
	f.Add([]byte(`{"stamp":"x","sha256":"` + strings.Repeat("A", 43) + `="}`))
	f.Add([]byte(`[`))
	path := filepath.Join(f.TempDir(), "m.gguf")
	metadata := []KV{{Key: "general.architecture", Value: Of("llama")}}
	if err := WriteFile(path, metadata, []tensor.View{{Name: "a", Type: tensor.F32, Shape: []int{2}, Data: make([]byte, 8)}}); err != nil {
		f.Fatal(err)
	}
	file, err := Open(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { file.Close() })
	idle := func() bool { return true }
	want, err := file.makeDigest(idle)
	if err != nil {
		f.Fatal(err)
	}
	entry := file.entryPath()
	if err := os.MkdirAll(filepath.Dir(entry), 0o755); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(entry, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := file.findDigest(idle); err != nil || got != want {
			t.Errorf("%q gives %x, %v", text, got, err)
		}
	})
}
