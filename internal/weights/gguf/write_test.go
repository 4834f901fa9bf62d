package gguf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"grove/internal/weights/tensor"
)

// tester is what *testing.T, *testing.F and *rapid.T share.
type tester interface {
	Helper()
	Fatal(...any)
	Errorf(string, ...any)
}

// written returns the bytes of a file.
func written(t tester, metadata []KV, tensors []tensor.View) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := Write(&buf, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// compare checks that f holds what was written.
func compare(t tester, f *File, metadata []KV, tensors []tensor.View) {
	t.Helper()
	if d := cmp.Diff(metadata, f.Metadata, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("metadata (-want +got):\n%s", d)
	}
	if d := cmp.Diff(tensors, f.Tensors, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("tensors (-want +got):\n%s", d)
	}
	for _, v := range tensors {
		if got, ok := f.Tensor(v.Name); !ok || !bytes.Equal(got.Data, v.Data) {
			t.Errorf("tensor %q not found by name", v.Name)
		}
	}
	for _, kv := range metadata {
		if got, ok := f.Lookup(kv.Key); !ok || !got.Equal(kv.Value) {
			t.Errorf("key %q not found by name", kv.Key)
		}
	}
}

func TestWrite(t *testing.T) {
	metadata, tensors := goodFile()
	data := written(t, metadata, tensors)
	if !bytes.Equal(data, written(t, metadata, tensors)) {
		t.Error("two writes differ")
	}
	if len(data)%64 != 0 {
		t.Errorf("%d bytes, not a multiple of the alignment", len(data))
	}
	f, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, f, metadata, tensors)
	for i, at := range f.parts[0].offsets {
		if at%64 != 0 {
			t.Errorf("tensor %d starts at %d", i, at)
		}
	}
}

func TestWriteBytes(t *testing.T) {
	got := written(t, []KV{{"k", Of(uint16(0x0102))}},
		[]tensor.View{{Name: "w", Type: tensor.F16, Shape: []int{1, 2}, Data: []byte{1, 2, 3, 4}}})
	head := file(1, 1, "k", Uint16, uint16(0x0102), "w", u32(2), u64(2), u64(1), tensor.F16, u64(0))
	want := append(head, make([]byte, alignUp(len(head), 32)-len(head))...)
	want = append(append(want, 1, 2, 3, 4), make([]byte, 28)...)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func values() *rapid.Generator[Value] {
	return rapid.OneOf(
		basic(rapid.Uint8()), basic(rapid.Int8()), basic(rapid.Uint16()), basic(rapid.Int16()),
		basic(rapid.Uint32()), basic(rapid.Int32()), basic(rapid.Uint64()), basic(rapid.Int64()),
		basic(rapid.Float32()), basic(rapid.Float64()), basic(rapid.Bool()), basic(rapid.String()))
}

// basic generates a value of T, or an array of T.
func basic[T Basic](g *rapid.Generator[T]) *rapid.Generator[Value] {
	return rapid.OneOf(
		rapid.Map(g, Of[T]),
		rapid.Map(rapid.SliceOfN(g, 0, 5), ArrayOf[T]))
}

// TestRoundTrip writes random files and reads them back.
func TestRoundTrip(t *testing.T) {
	types := []tensor.Type{tensor.F32, tensor.F16, tensor.BF16, tensor.Q8_0, tensor.Q4_0, tensor.Q4_K, tensor.Q6_K, tensor.I8, tensor.F64}
	name := rapid.StringMatching(`[a-zé]{1,20}`)
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfNDistinct(name, 0, 6, rapid.ID[string]).Draw(t, "keys")
		var metadata []KV
		for _, k := range keys {
			metadata = append(metadata, KV{k, values().Draw(t, "value")})
		}
		if rapid.Bool().Draw(t, "aligned") {
			a := uint32(8) << rapid.IntRange(0, 6).Draw(t, "alignment")
			metadata = append(metadata, KV{keyAlignment, Of(a)})
		}
		var tensors []tensor.View
		for _, n := range rapid.SliceOfNDistinct(name, 0, 5, rapid.ID[string]).Draw(t, "names") {
			v := tensor.View{Name: n, Type: rapid.SampledFrom(types).Draw(t, "type")}
			elems, _, _ := v.Type.Block()
			v.Shape = rapid.SliceOfN(rapid.IntRange(1, 3), 1, 4).Draw(t, "shape")
			v.Shape[len(v.Shape)-1] *= elems
			size, _ := v.Type.RowBytes(v.Elems())
			v.Data = pattern(size)
			tensors = append(tensors, v)
		}
		data := written(t, metadata, tensors)
		f, err := Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, f, metadata, tensors)
		if !bytes.Equal(data, written(t, f.Metadata, f.Tensors)) {
			t.Errorf("writing what was read gives other bytes")
		}
	})
}

func TestWriteErrors(t *testing.T) {
	one := func(name string, typ tensor.Type, n int, shape ...int) []tensor.View {
		return []tensor.View{{Name: name, Type: typ, Shape: shape, Data: make([]byte, n)}}
	}
	long := string(bytes.Repeat([]byte("n"), 65))
	cases := []struct {
		name     string
		metadata []KV
		tensors  []tensor.View
		want     string
	}{
		{"empty key", []KV{{"", Of(true)}}, nil, `gguf: key "": it must have 1 to 65535 bytes of UTF-8`},
		{"key not UTF-8", []KV{{"\xff", Of(true)}}, nil, `gguf: key "\xff": it must have 1 to 65535 bytes of UTF-8`},
		{"key twice", []KV{{"k", Of(true)}, {"k", Of(true)}}, nil, `gguf: key "k": it is there twice`},
		{"no value", []KV{{"k", Value{}}}, nil, `gguf: key "k": it has no value`},
		{"alignment 48", []KV{{"general.alignment", Of(uint32(48))}}, nil, `gguf: key "general.alignment": value is 48; it must be a uint32 power of two from 8 to 65536`},
		{"alignment a string", []KV{{"general.alignment", Of("32")}}, nil, `gguf: key "general.alignment": value is 32; it must be a uint32 power of two from 8 to 65536`},
		{"long name", nil, one(long, tensor.F32, 4, 1), "gguf: " + long + ": the name must have 1 to 64 bytes of UTF-8"},
		{"name twice", nil, append(one("w", tensor.F32, 4, 1), one("w", tensor.F32, 4, 1)...), `gguf: w: two tensors have this name`},
		{"no shape", nil, one("w", tensor.F32, 4), `gguf: w: shape is []; it must have 1 to 4 positive dimensions`},
		{"five dimensions", nil, one("w", tensor.F32, 4, 1, 1, 1, 1, 1), `gguf: w: shape is [1 1 1 1 1]; it must have 1 to 4 positive dimensions`},
		{"dimension 0", nil, one("w", tensor.F32, 0, 0, 1), `gguf: w: shape is [0 1]; it must have 1 to 4 positive dimensions`},
		{"ragged row", nil, one("w", tensor.Q8_0, 34, 33), `gguf: w: a row has 33 elements, which type Q8_0 cannot hold; they must be whole blocks`},
		{"unknown type", nil, one("w", 99, 34, 32), `gguf: w: a row has 32 elements, which type type 99 cannot hold; they must be whole blocks`},
		{"too few bytes", nil, one("w", tensor.F32, 4, 1<<62, 1), `gguf: w: shape [4611686018427387904 1] takes more than the 140737488355327 bytes that a tensor may have`},
		{"too many bytes", nil, one("w", tensor.F32, 9, 2, 1), `gguf: w: there are 9 bytes of data; shape [2 1] takes 8`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var buf bytes.Buffer
			err := Write(&buf, c.metadata, c.tensors)
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if buf.Len() != 0 {
				t.Errorf("%d bytes were written", buf.Len())
			}
		})
	}
	full := errors.New("disk full")
	metadata, tensors := goodFile()
	if err := Write(failing{full}, metadata, tensors); !errors.Is(err, full) {
		t.Errorf("failing writer: %v", err)
	}
}

type failing struct{ err error }

func (w failing) Write([]byte) (int, error) { return 0, w.err }

// TestWriteFile: a file is replaced as a whole, and a failure leaves the old one and nothing else.
func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model.gguf")
	metadata, tensors := goodFile()
	for range 2 {
		if err := WriteFile(path, metadata, tensors); err != nil {
			t.Fatal(err)
		}
	}
	want := written(t, metadata, tensors)
	if err := WriteFile(path, []KV{{"", Of(true)}}, nil); err == nil {
		t.Error("a bad key was written")
	}
	if err := WriteFile(filepath.Join(dir, "none", "x.gguf"), nil, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing folder: %v", err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("the file is not what was written")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// store stands in for mapped files.
type store struct {
	closed int
	stamp  string
}

func (s *store) Close() error   { s.closed++; return nil }
func (s *store) Check() error   { return nil }
func (s *store) Release([]byte) {}
func (s *store) Stamp() (string, time.Time, error) {
	return s.stamp, time.Unix(0, 0), nil
}

// TestNew makes a file of parts, one of whose tensors is made when asked for: it reads and prints like
// the file that Write writes of them.
func TestNew(t *testing.T) {
	metadata := []KV{{"general.architecture", Of("x")}, {"x.n", Of(uint32(7))}}
	here, later := []byte{1, 2, 3, 4}, []byte{5, 6, 7, 8, 9, 10, 11, 12}
	tensors := []tensor.View{
		{Name: "here", Type: tensor.F32, Shape: []int{1}, Data: here},
		{Name: "later", Type: tensor.F32, Shape: []int{2, 1}},
	}
	var s store
	f, err := New("dir", metadata, tensors, &s, func(i int) ([]byte, error) {
		if i != 1 {
			return nil, fmt.Errorf("tensor %d is there already", i)
		}
		return later, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]byte{here, later} {
		v, err := f.Load(f.Tensors[i])
		if err != nil || !bytes.Equal(v.Data, want) {
			t.Errorf("tensor %d: %v, %v", i, v.Data, err)
		}
	}
	if n, ok, err := f.Uint("x.n"); n != 7 || !ok || err != nil {
		t.Errorf("x.n: %d, %v, %v", n, ok, err)
	}
	if _, _, err := f.String("x.n"); err == nil || err.Error() != `gguf: dir: key "x.n": want a string, found uint32` {
		t.Errorf("got %v", err)
	}

	var written, got, want bytes.Buffer
	err = Stream(&written, metadata, f.Tensors, func(w io.Writer, i int) error {
		v, err := f.Load(f.Tensors[i])
		w.Write(v.Data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(written.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := again.Tensor("later"); !bytes.Equal(v.Data, later) {
		t.Errorf("written: %v", v.Data)
	}
	again.parts[0].path = "dir"
	if err := errors.Join(Inspect(&got, f, true), Inspect(&want, again, true)); err != nil || got.String() != want.String() {
		t.Errorf("got %s\nwant %s, %v", got.String(), want.String(), err)
	}
	if err := f.Close(); err != nil || s.closed != 1 {
		t.Errorf("closed %d times, %v", s.closed, err)
	}
}

// TestStreamErrors expects a refusal where a tensor's bytes are not as many as its shape takes.
func TestStreamErrors(t *testing.T) {
	tensors := []tensor.View{{Name: "w", Type: tensor.F32, Shape: []int{2}}}
	err := Stream(io.Discard, nil, tensors, func(w io.Writer, i int) error {
		_, err := w.Write(make([]byte, 9))
		return err
	})
	if want := `gguf: w: there are 9 bytes of data; shape [2] takes 8`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	broken := errors.New("broken")
	if err := Stream(io.Discard, nil, tensors, func(io.Writer, int) error { return broken }); err != broken {
		t.Errorf("got %v, want %v", err, broken)
	}
	var s store
	f, err := New("dir", nil, []tensor.View{{Name: "w", Type: tensor.Q8_0, Shape: []int{33}}}, &s, nil)
	if f != nil || err == nil || s.closed != 1 {
		t.Errorf("a broken shape: %v, %v, closed %d times", f, err, s.closed)
	}
	f, err = New("dir", nil, tensors, &s, func(int) ([]byte, error) { return make([]byte, 7), nil })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Load(f.Tensors[0]); err == nil || err.Error() != `gguf: w: there are 7 bytes of data; shape [2] takes 8` {
		t.Errorf("got %v", err)
	}
}
