package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// file makes the bytes of a file of a header and data.
func file(header, data string) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header+data...)
}

const two = `{"__metadata__":{"format":"pt"},` +
	`"b":{"dtype":"BF16","shape":[2,1],"data_offsets":[4,8]},` +
	`"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}   `

var wantTwo = []Tensor{
	{Name: "a", Type: "F32", Shape: []int{}, Data: []byte("aaaa")},
	{Name: "b", Type: "BF16", Shape: []int{2, 1}, Data: []byte("bbbb")},
}

func TestParse(t *testing.T) {
	got, err := Parse(file(two, "aaaabbbb"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(wantTwo, got); d != "" {
		t.Error(d)
	}
	if got, err := Parse(file(`{}`, "")); err != nil || len(got) != 0 {
		t.Errorf("no tensors: %v, %v", got, err)
	}
	got, err = Parse(file(`{"z":{"dtype":"F32","shape":[0,9],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, "x"))
	if err != nil || len(got) != 2 || len(got[0].Data) != 0 || string(got[1].Data) != "x" {
		t.Errorf("an empty tensor: %v, %v", got, err)
	}
}

// entry is a header with one tensor.
func entry(dtype, shape, offsets string) string {
	return fmt.Sprintf(`{"t":{"dtype":%s,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
}

func TestParseErrors(t *testing.T) {
	length := func(n uint64, rest string) []byte { return append(binary.LittleEndian.AppendUint64(nil, n), rest...) }
	tests := []struct {
		name string
		data []byte
		want string
	}{
		{"nothing", nil, "safetensors: 0 bytes are too few for the header's length; the file is cut off: download it again (at byte 0)"},
		{"seven bytes", []byte("1234567"), "safetensors: 7 bytes are too few for the header's length; the file is cut off: download it again (at byte 0)"},
		{"header beyond the file", length(9, "{}"), "safetensors: the file is cut off: its header takes 9 bytes, 2 are left; download it again (at byte 0)"},
		{"header of 2^63", length(1<<63, "{}"), "safetensors: header of 9223372036854775808 bytes is longer than 104857600 (at byte 0)"},
		{"header above 100 MB", length(100<<20+1, "{}"), "safetensors: header of 104857601 bytes is longer than 104857600 (at byte 0)"},
		{"empty header", file("", ""), "safetensors: the JSON text ends too early; the file is cut off or broken: download it again (at byte 8)"},
		{"not UTF-8", file("{\"\xff\":1}", ""), "safetensors: header is not UTF-8 (at byte 8)"},
		{"no object", file(`[1]`, ""), `safetensors: want an object, found "[" (at byte 9)`},
		{"cut off", file(`{"t":{"dtype":"F32"`, ""), "safetensors: the JSON text ends too early; the file is cut off or broken: download it again (at byte 27)"},
		{"more behind", file(`{} {}`, ""), "safetensors: there is more behind the object (at byte 11)"},
		{"duplicate tensor", file(`{"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"t":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, "ab"),
			`safetensors: t: two tensors have this name (at byte 64)`},
		{"duplicate key", file(`{"t":{"dtype":"U8","dtype":"U8"}}`, ""), `safetensors: t: dtype is there twice (at byte 34)`},
		{"unknown key", file(`{"t":{"strides":[1]}}`, ""), `safetensors: t: unknown key "strides" (at byte 23)`},
		{"empty name", file(`{"":{}}`, ""), "safetensors: a tensor has an empty name (at byte 11)"},
		{"deep", file(`{"t":`+strings.Repeat("[", 1<<20), ""), `safetensors: want an object, found "[" (at byte 14)`},
		{"deep shape", file(`{"t":{"shape":`+strings.Repeat("[", 1<<20), ""), `safetensors: t: shape: "[" is not a count (at byte 24)`},
		{"metadata that nests", file(`{"__metadata__":{"a":{"b":1}}}`, ""), `safetensors: __metadata__: want a string, found "{" (at byte 30)`},
		{"no entry", file(`{"t":null}`, ""), `safetensors: want an object, found null (at byte 17)`},
		{"unknown dtype", file(entry(`"F4"`, `[1]`, `[0,1]`), "a"), `safetensors: t: dtype "F4" is not known (at byte 26)`},
		{"dtype a number", file(entry(`4`, `[1]`, `[0,1]`), "a"), `safetensors: t: dtype: want a string, found 4 (at byte 23)`},
		{"no dtype", file(`{"t":{"shape":[1],"data_offsets":[0,1]}}`, "a"), `safetensors: t: dtype is missing (at byte 47)`},
		{"no offsets", file(`{"t":{"dtype":"U8","shape":[1]}}`, "a"), `safetensors: t: data_offsets is missing (at byte 39)`},
		{"negative dimension", file(entry(`"U8"`, `[-1]`, `[0,1]`), "a"), `safetensors: t: shape: -1 is not a count (at byte 38)`},
		{"fraction", file(entry(`"U8"`, `[1.5]`, `[0,1]`), "a"), `safetensors: t: shape: 1.5 is not a count (at byte 39)`},
		{"shape overflows", file(entry(`"F64"`, `[4294967296,4294967296]`, `[0,1]`), "a"), `safetensors: t: shape [4294967296 4294967296] overflows the size (at byte 12)`},
		{"dimension beyond int64", file(entry(`"U8"`, `[9223372036854775808]`, `[0,1]`), "a"), `safetensors: t: shape: 9223372036854775808 is not a count (at byte 55)`},
		{"many dimensions", file(entry(`"U8"`, `[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]`, `[0,1]`), "a"), `safetensors: t: shape has more than 16 numbers (at byte 69)`},
		{"one offset", file(entry(`"U8"`, `[1]`, `[0]`), "a"), `safetensors: t: data_offsets holds 1 of 2 numbers (at byte 58)`},
		{"three offsets", file(entry(`"U8"`, `[1]`, `[0,1,2]`), "a"), `safetensors: t: data_offsets has more than 2 numbers (at byte 60)`},
		{"reversed", file(entry(`"U8"`, `[1]`, `[1,0]`), "a"), `safetensors: t: data_offsets are 1 and 0; the first must not be the larger one (at byte 60)`},
		{"past the end", file(entry(`"U8"`, `[2]`, `[0,2]`), "a"), `safetensors: the file is cut off at 62 of 63 bytes; download it again`},
		{"too few", file(entry(`"F32"`, `[2]`, `[0,4]`), "aaaa"), `safetensors: t: bytes 0 to 4 are 4, shape [2] of F32 takes 8 (at byte 12)`},
		{"hole", file(entry(`"U8"`, `[1]`, `[1,2]`), "ab"), `safetensors: t: data begins at 1, which leaves a hole from 0 (at byte 12)`},
		{"overlap", file(`{"s":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"t":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, "abc"),
			`safetensors: t: data overlaps that of s (at byte 64)`},
		{"rest", file(`{}`, "abc"), "safetensors: 3 bytes at the end belong to no tensor (at byte 10)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse(tt.data)
			var format *FormatError
			if got != nil || !errors.As(err, &format) || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestIndex(t *testing.T) {
	tests := []struct {
		name, text, want string
	}{
		{"path upwards", `{"weight_map":{"t":"../x.safetensors"}}`, `t: "../x.safetensors" is not the name of a file beside the index (at byte 37)`},
		{"absolute", `{"weight_map":{"t":"/etc/passwd"}}`, `t: "/etc/passwd" is not the name of a file beside the index (at byte 32)`},
		{"folder", `{"weight_map":{"t":"a/x.safetensors"}}`, `t: "a/x.safetensors" is not the name of a file beside the index (at byte 36)`},
		{"backslash", `{"weight_map":{"t":"..\\x"}}`, `t: "..\\x" is not the name of a file beside the index (at byte 26)`},
		{"drive", `{"weight_map":{"t":"C:x"}}`, `t: "C:x" is not the name of a file beside the index (at byte 24)`},
		{"dots", `{"weight_map":{"t":".."}}`, `t: ".." is not the name of a file beside the index (at byte 23)`},
		{"here", `{"weight_map":{"t":"."}}`, `t: "." is not the name of a file beside the index (at byte 22)`},
		{"nothing", `{"weight_map":{"t":""}}`, `t: "" is not the name of a file beside the index (at byte 21)`},
		{"a number", `{"weight_map":{"t":1}}`, `t: want a string, found 1 (at byte 20)`},
		{"duplicate", `{"weight_map":{"t":"a","t":"b"}}`, `t: two tensors have this name (at byte 30)`},
		{"two maps", `{"weight_map":{"t":"a"},"weight_map":{}}`, `duplicate key "weight_map" (at byte 36)`},
		{"no map", `{"metadata":{}}`, `weight_map is missing or empty (at byte 15)`},
		{"empty map", `{"weight_map":{}}`, `weight_map is missing or empty (at byte 17)`},
		{"deep", `{"metadata":` + strings.Repeat("[", 1<<15), `JSON: invalid character '[' exceeded max depth (at byte 12)`},
		{"not UTF-8", "{\"\xff\":1}", `index is not UTF-8 (at byte 0)`},
		{"too many shards", manyShards(), `4097 shards are more than 4096 (at byte 63348)`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			shards, err := parseIndex([]byte(tt.text))
			if shards != nil || err == nil || err.Error() != "safetensors: "+tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func manyShards() string {
	files := map[string]string{}
	for i := range maxShards + 1 {
		files[fmt.Sprintf("t%d", i)] = fmt.Sprintf("f%d", i)
	}
	text, err := json.Marshal(map[string]any{"weight_map": files})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func write(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func one(name string) []byte {
	return file(`{"`+name+`":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, name)
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	f, err := Open(write(t, dir, "model.safetensors", file(two, "aaaabbbb")))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(wantTwo, f.Tensors); d != "" {
		t.Error(d)
	}
	if b, ok := f.Tensor("b"); !ok || string(b.Data) != "bbbb" {
		t.Errorf("tensor b: %v, %v", b, ok)
	}
	if _, ok := f.Tensor("c"); ok {
		t.Error("there is a tensor c")
	}
	if err := f.Check(); err != nil {
		t.Error(err)
	}
	if err := os.Truncate(filepath.Join(dir, "model.safetensors"), 9); err != nil {
		t.Fatal(err)
	}
	if err := f.Check(); err == nil {
		t.Error("the file shrank unnoticed")
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func TestOpenShards(t *testing.T) {
	dir := t.TempDir()
	texted := func(name, text string) []byte {
		return file(`{"__metadata__":`+text+`,"`+name+`":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, name)
	}
	write(t, dir, "1.safetensors", texted("a", `{"format":"pt","of":"first"}`))
	write(t, dir, "2.safetensors", texted("b", `{"of":"second","more":""}`))
	write(t, dir, "3.safetensors", one("a"))
	write(t, dir, "bad.safetensors", []byte("short"))
	index := func(text string) string { return write(t, dir, "model.safetensors.index.json", []byte(text)) }

	f, err := Open(index(`{"metadata":{"total_size":2},"weight_map":{"b":"2.safetensors","a":"1.safetensors"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if a, ok := f.Tensor("a"); len(f.Tensors) != 2 || !ok || string(a.Data) != "a" {
		t.Errorf("%v", f.Tensors)
	}
	if diff := cmp.Diff(map[string]string{"format": "pt", "of": "first", "more": ""}, f.Metadata); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	tests := []struct{ name, text, want string }{
		{"in another shard", `{"weight_map":{"a":"2.safetensors"}}`, `a: it is not in 2.safetensors, where the index places it`},
		{"in two shards", `{"weight_map":{"a":"1.safetensors","x":"3.safetensors"}}`, `a: an earlier shard has a tensor of this name: a shard that model.safetensors.index.json lists`},
		{"missing shard", `{"weight_map":{"a":"none.safetensors"}}`, `no such file or directory: a shard that model.safetensors.index.json lists`},
		{"broken shard", `{"weight_map":{"a":"bad.safetensors"}}`, `5 bytes are too few for the header's length; the file is cut off: download it again (at byte 0): a shard that model.safetensors.index.json lists`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Open(index(tt.text)); err == nil || !strings.HasSuffix(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant …%s", err, tt.want)
			}
		})
	}
	if _, err := Open(filepath.Join(dir, "none.index.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing index gives %v", err)
	}
}

// FuzzParse: any bytes parse or are refused, and tensors lie inside the bytes, without gaps.
func FuzzParse(f *testing.F) {
	f.Add(file(two, "aaaabbbb"))
	f.Add(file(entry(`"U8"`, `[1]`, `[0,1]`), "a"))
	f.Add(file(`{"t":{"shape":[9223372036854775807,2],"dtype":"F64","data_offsets":[0,16]}}`, ""))
	f.Fuzz(func(t *testing.T, data []byte) {
		tensors, err := Parse(data)
		if err != nil {
			return
		}
		n := lengthBytes + int(binary.LittleEndian.Uint64(data))
		for _, x := range tensors {
			if want, ok := x.bytes(); !ok || want != len(x.Data) {
				t.Fatalf("%+v", x)
			}
			n += len(x.Data)
		}
		if n != len(data) {
			t.Fatalf("%d bytes of %d", n, len(data))
		}
	})
}

// FuzzIndex: any text is refused or names files beside the index.
func FuzzIndex(f *testing.F) {
	f.Add(`{"weight_map":{"a":"1.safetensors"}}`)
	f.Add(`{"weight_map":{"a":"../1.safetensors"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		shards, err := parseIndex([]byte(text))
		for _, s := range shards {
			if err != nil || filepath.Base(s.file) != s.file || s.file == ".." || len(s.names) == 0 {
				t.Fatalf("%q, %v", s.file, err)
			}
		}
	})
}
