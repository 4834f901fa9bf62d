package safetensors

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// memory is a file in memory that holds so many bytes.
type memory struct {
	b     []byte
	holds int
}

var errFull = errors.New("the disk is full")

func (m *memory) WriteAt(b []byte, off int64) (int, error) {
	if int(off)+len(b) > m.holds {
		return 0, errFull
	}
	if n := int(off) + len(b) - len(m.b); n > 0 {
		m.b = append(m.b, make([]byte, n)...)
	}
	return copy(m.b[off:], b), nil
}

// TestWriter writes tensors side by side and reads them back: small ones, and one of several buffers.
func TestWriter(t *testing.T) {
	large := make([]byte, 3*partBuffer+10)
	for i := range large {
		large[i] = byte(i * 7 / 5)
	}
	want := []Tensor{
		{Name: "a\"\n☃", Type: "I32", Shape: []int{2}, Data: []byte("aaaaAAAA")},
		{Name: "large", Type: "U8", Shape: []int{1, len(large)}, Data: large},
		{Name: "empty", Type: "F32", Shape: []int{0, 5}, Data: []byte{}},
		{Name: "scalar", Type: "F64", Shape: []int{}, Data: []byte("12345678")},
	}
	path := filepath.Join(t.TempDir(), "x.safetensors")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := NewWriter(f, map[string]string{"b": "1\xff", "a": "<&>"}, want...)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(large); at += 1000 {
		for i, p := range want {
			if err := w.Append(i, p.Data[min(at, len(p.Data)):min(at+1000, len(p.Data))]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if d := cmp.Diff(want, got.Tensors); d != "" {
		t.Error(d)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	header, err := headerOf(b)
	if err != nil || len(header)%8 != 0 || !bytes.HasPrefix(header, []byte("{\"__metadata__\":{\"a\":\"\\u003c\\u0026\\u003e\",\"b\":\"1\\ufffd\"},\"a\\\"\\n☃\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[0,8]},")) {
		t.Errorf("%v: %s", err, header)
	}
}

// TestWriterErrors goes through what cannot be written.
func TestWriterErrors(t *testing.T) {
	one := Tensor{Name: "t", Type: "U8", Shape: []int{4}}
	for _, c := range []struct {
		name, want string
		holds      int
		tensors    []Tensor
	}{
		{"two of one name", `safetensors: a tensor cannot have the name "t": it is empty, or another's`, 1 << 20, []Tensor{one, one}},
		{"no name", `safetensors: a tensor cannot have the name "": it is empty, or another's`, 1 << 20, []Tensor{{Type: "U8"}}},
		{"the name of metadata", `safetensors: a tensor cannot have the name "__metadata__": it is empty, or another's`, 1 << 20, []Tensor{{Name: metadataKey, Type: "U8"}}},
		{"a name that is no text", `safetensors: the name "t\xff" is not UTF-8`, 1 << 20, []Tensor{{Name: "t\xff", Type: "U8"}}},
		{"a type", `safetensors: t: dtype "Q4" is not known`, 1 << 20, []Tensor{{Name: "t", Type: "Q4"}}},
		{"a size", `safetensors: t: shape [4294967296 4294967296] cannot be laid out`, 1 << 20, []Tensor{{Name: "t", Type: "U8", Shape: []int{1 << 32, 1 << 32}}}},
		{"a negative size", `safetensors: t: shape [-1 -1] cannot be laid out`, 1 << 20, []Tensor{{Name: "t", Type: "U8", Shape: []int{-1, -1}}}},
		{"many dimensions", `safetensors: t: shape [0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0] cannot be laid out`, 1 << 20, []Tensor{{Name: "t", Type: "U8", Shape: make([]int, 17)}}},
		{"no room for the header", errFull.Error(), 10, []Tensor{one}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := NewWriter(&memory{holds: c.holds}, nil, c.tensors...); err == nil || err.Error() != c.want {
				t.Errorf("%v; want %s", err, c.want)
			}
		})
	}
	to := &memory{holds: 1 << 20}
	w, err := NewWriter(to, nil, one)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Append(0, []byte("123")); err != nil {
		t.Fatal(err)
	}
	if err := w.Append(0, []byte("45")); err == nil || err.Error() != `safetensors: t: 2 bytes are too many behind 3 of 4` {
		t.Error(err)
	}
	if err := w.Close(); err == nil || err.Error() != `safetensors: t: 3 bytes of 4 were given` {
		t.Error(err)
	}
	to.holds = 0
	if err := w.Append(0, []byte("4")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); !errors.Is(err, errFull) {
		t.Error(err)
	}
	if _, err := Parse(to.b); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("a file without its last byte: %v", err)
	}
}
