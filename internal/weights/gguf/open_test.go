package gguf

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"grove/internal/mmap"
	"grove/internal/weights/tensor"
)

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.gguf")
	metadata, tensors := goodFile()
	if err := WriteFile(path, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range f.Tensors {
		f.Release(v.Data)
	}
	f.Release([]byte("not of this file"))
	compare(t, f, metadata, tensors)
	names, _, err := f.Strings("b.string")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if names[3] != "grüße" { // copies outlive the mapping
		t.Errorf("got %q", names[3])
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(filepath.Join(dir, "none.gguf")); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "gguf: open ") {
		t.Errorf("missing file: %v", err)
	}
	path := filepath.Join(dir, "bad.gguf")
	for name, c := range map[string]struct {
		data string
		want string
	}{
		"empty": {"", "the file is empty; download it again"},
		"text":  {"hello, world", `magic is "hell", want "GGUF" (at byte 0)`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(c.data), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Open(path)
			var bad *FormatError
			if want := "gguf: " + path + ": " + c.want; !errors.As(err, &bad) || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

// TestOpenShrunk parses a mapped file that has shrunk meanwhile.
func TestOpenShrunk(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files are read whole, and cannot shrink")
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, file(0, 1, "k", String, strings.Repeat("x", 1<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := mmap.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	_, err = parseMap(m, path)
	var bad *FormatError
	want := "gguf: " + path + ": the file shrank while mapped, or cannot be read (at byte 0)"
	if !errors.As(err, &bad) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// parts writes a split file of three parts with two tensors each and returns their paths. edit may
// change what part no holds.
func parts(t *testing.T, edit func(no int, metadata []KV, tensors []tensor.View) ([]KV, []tensor.View)) []string {
	t.Helper()
	dir := t.TempDir()
	paths := make([]string, 3)
	for no := range paths {
		paths[no] = filepath.Join(dir, fmt.Sprintf("m-%05d-of-00003.gguf", no+1))
		var metadata []KV
		if no == 0 {
			metadata = append(metadata, KV{"general.name", Of("split")})
		}
		metadata = append(metadata,
			KV{"split.no", Of(uint16(no))}, KV{"split.count", Of(uint16(3))}, KV{"split.tensors.count", Of(int32(6))})
		var tensors []tensor.View
		for i := range 2 {
			tensors = append(tensors, tensor.View{Name: fmt.Sprint("t", 2*no+i), Type: tensor.F32, Shape: []int{4 + no}, Data: pattern(16 + 4*no)})
		}
		if edit != nil {
			metadata, tensors = edit(no, metadata, tensors)
		}
		if err := WriteFile(paths[no], metadata, tensors); err != nil {
			t.Fatal(err)
		}
	}
	return paths
}

func TestOpenSplit(t *testing.T) {
	paths := parts(t, nil)
	for _, path := range paths {
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Paths(); !slices.Equal(got, paths) {
			t.Errorf("the files are %q, want %q", got, paths)
		}
		if name, _, _ := f.String("general.name"); name != "split" || len(f.Tensors) != 6 {
			t.Errorf("%s: name %q, %d tensors", filepath.Base(path), name, len(f.Tensors))
		}
		for i, v := range f.Tensors {
			got, ok := f.Tensor(fmt.Sprint("t", i))
			if !ok || got.Name != v.Name || !bytes.Equal(got.Data, pattern(16+4*(i/2))) {
				t.Errorf("tensor %d is %q, found %q", i, v.Name, got.Name)
			}
			f.Release(v.Data)
		}
		var size int64
		for _, p := range paths {
			info, err := os.Stat(p)
			if err != nil {
				t.Fatal(err)
			}
			size += info.Size()
		}
		if f.Size() != size {
			t.Errorf("size %d, want %d", f.Size(), size)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOpenSplitErrors(t *testing.T) {
	set := func(at int, key string, v Value) func(int, []KV, []tensor.View) ([]KV, []tensor.View) {
		return func(no int, metadata []KV, tensors []tensor.View) ([]KV, []tensor.View) {
			for i := range metadata {
				if no == at && metadata[i].Key == key {
					metadata[i].Value = v
				}
			}
			return metadata, tensors
		}
	}
	cases := []struct {
		name string
		edit func(int, []KV, []tensor.View) ([]KV, []tensor.View)
		prep func(t *testing.T, paths []string)
		open int
		want string // after the folder is cut out
	}{
		{"second part missing", nil, func(t *testing.T, p []string) { remove(t, p[1]) }, 0,
			"gguf: open m-00002-of-00003.gguf: no such file or directory: part 2 of 3 of m-00001-of-00003.gguf"},
		{"first part missing", nil, func(t *testing.T, p []string) { remove(t, p[0]) }, 2,
			"gguf: open m-00001-of-00003.gguf: no such file or directory: the first of 3 parts, needed by m-00003-of-00003.gguf"},
		{"renamed", nil, func(t *testing.T, p []string) { rename(t, p[0], filepath.Join(filepath.Dir(p[0]), "x.gguf"), &p[0]) }, 0,
			"gguf: x.gguf: part 1 of 3 must be named NAME-00001-of-00003.gguf"},
		{"number beyond the count", set(0, "split.no", Of(uint16(3))), nil, 0,
			`gguf: m-00001-of-00003.gguf: key "split.no": 3 is not below the count of parts, 3 (at byte 81)`},
		{"number of another type", set(0, "split.no", Of("0")), nil, 0,
			`gguf: m-00001-of-00003.gguf: key "split.no": want an integer, found string (at byte 81)`},
		{"part says another number", set(1, "split.no", Of(uint16(2))), nil, 0,
			"gguf: m-00002-of-00003.gguf: the file says it is part 3 of 3, its name 2 of 3 (at byte 44)"},
		{"part says another count", set(2, "split.count", Of(uint16(7))), nil, 0,
			"gguf: m-00003-of-00003.gguf: the file says it is part 3 of 7, its name 3 of 3 (at byte 44)"},
		{"first part says another number", nil, func(t *testing.T, p []string) { rename(t, p[1], p[0], nil) }, 2,
			"gguf: m-00001-of-00003.gguf: the file says it is part 2 of 3, its name 1 of 3 (at byte 44)"},
		{"tensor twice", func(no int, metadata []KV, tensors []tensor.View) ([]KV, []tensor.View) {
			tensors[0].Name = "same"
			return metadata, tensors
		}, nil, 0, `gguf: m-00002-of-00003.gguf: same: an earlier part has a tensor of this name (at byte 192)`},
		{"tensor count", set(0, "split.tensors.count", Of(int32(9))), nil, 0,
			`gguf: m-00001-of-00003.gguf: key "split.tensors.count": 9 tensors were promised, the parts hold 6 (at byte 139)`},
		{"part not a file of this format", nil, func(t *testing.T, p []string) {
			if err := os.WriteFile(p[1], []byte("text"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, 0, `gguf: m-00002-of-00003.gguf: magic is "text", want "GGUF" (at byte 0): part 2 of 3 of m-00001-of-00003.gguf`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			paths := parts(t, c.edit)
			if c.prep != nil {
				c.prep(t, paths)
			}
			f, err := Open(paths[c.open])
			if err == nil {
				t.Fatal("opened", f.Close())
			}
			dir := filepath.Dir(paths[0]) + string(filepath.Separator)
			if got := strings.ReplaceAll(err.Error(), dir, ""); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// rename moves a file and, where at is given, sets it to the new path.
func rename(t *testing.T, from, to string, at *string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
	if at != nil {
		*at = to
	}
}

// TestOpenShared opens every file of the shared data, vocabularies without tensors among them.
func TestOpenShared(t *testing.T) {
	for _, folder := range []string{"models", "golden/models", "golden/tokenizers"} {
		t.Run(folder, func(t *testing.T) {
			paths, err := filepath.Glob(filepath.Join("../../../../shared", folder, "*.gguf"))
			if err != nil {
				t.Fatal(err)
			}
			if len(paths) == 0 {
				if _, err := os.Stat("../../../../shared"); err == nil && os.Getenv("CI") != "" {
					t.Fatalf("../shared is there without files of %s", folder)
				}
				t.Skipf("needs ../shared/%s/*.gguf", folder)
			}
			for _, path := range paths {
				start := time.Now()
				f, err := Open(path)
				if err != nil {
					t.Error(err)
					continue
				}
				took := time.Since(start)
				var size int64
				for _, v := range f.Tensors {
					size += int64(len(v.Data))
				}
				if err := Inspect(discard{t}, f, true); err != nil {
					t.Error(err)
				}
				t.Logf("%s: %d keys, %d tensors of %d bytes, opened in %v", filepath.Base(path), len(f.Metadata), len(f.Tensors), size, took)
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// BenchmarkParse opens a vocabulary of 256 k tokens.
func BenchmarkParse(b *testing.B) {
	tokens := make([]string, 256<<10)
	for i := range tokens {
		tokens[i] = fmt.Sprintf("token%d", i)
	}
	var buf bytes.Buffer
	if err := Write(&buf, []KV{{"tokenizer.ggml.tokens", ArrayOf(tokens)}}, nil); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(buf.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(buf.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
}
