package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"grove/internal/weights/tensor"
)

// raw builds the bytes of a file: numbers little endian, []byte as they are, strings after
// their length.
func raw(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case []byte:
			b = append(b, p...)
		case string:
			b = appendString(b, p)
		case Kind:
			b = binary.LittleEndian.AppendUint32(b, uint32(p))
		case tensor.Type:
			b = binary.LittleEndian.AppendUint32(b, uint32(p))
		default:
			var err error
			if b, err = binary.Append(b, binary.LittleEndian, p); err != nil {
				panic(err)
			}
		}
	}
	return b
}

type (
	u8  = uint8
	u32 = uint32
	u64 = uint64
)

// file builds a version 3 file.
func file(nTensors, nKeys uint64, parts ...any) []byte {
	return raw([]byte("GGUF"), u32(3), nTensors, nKeys, raw(parts...))
}

// fileWith builds a file of one tensor entry "w" followed by enough data.
func fileWith(entry ...any) []byte {
	return file(1, 0, "w", raw(entry...), make([]byte, 4096))
}

// aligned builds a file whose only key is general.alignment.
func aligned(value ...any) []byte {
	return file(0, 1, "general.alignment", raw(value...))
}

// twoTensors builds a file of two vectors of 8 float32 at these offsets.
func twoTensors(nameA, nameB string, offsetA, offsetB uint64, data int) []byte {
	head := file(2, 0,
		nameA, u32(1), u64(8), tensor.F32, offsetA,
		nameB, u32(1), u64(8), tensor.F32, offsetB)
	return append(head, make([]byte, alignUp(len(head), 32)-len(head)+data)...)
}

// badFiles has every class of fault with the exact message. The fuzz target starts from them too.
var badFiles = []struct {
	name string
	data []byte
	want string
}{
	{"empty", nil, "magic takes 4 bytes, 0 are left (at byte 0)"},
	{"magic cut", []byte("GG"), "magic takes 4 bytes, 2 are left (at byte 0)"},
	{"magic of another format", []byte("GGML\x03\x00\x00\x00"), `magic is "GGML", want "GGUF"; it looks like a format before GGUF: download a newer file (at byte 0)`},
	{"pointer of Git LFS", []byte("version https://git-lfs.github.com/spec/v1\n"), `magic is "vers", want "GGUF"; it looks like a pointer of Git LFS: git lfs pull fetches the file (at byte 0)`},
	{"web page", []byte("<!DOCTYPE html>"), `magic is "<!DO", want "GGUF"; it looks like a web page: download the file itself (at byte 0)`},
	{"magic with escapes", []byte("\x1b[2J\x03\x00\x00\x00"), `magic is "\x1b[2J", want "GGUF" (at byte 0)`},
	{"magic alone", []byte("GGUF"), "version takes 4 bytes, 0 are left (at byte 4)"},
	{"version 0", raw([]byte("GGUF"), u32(0), u64(0), u64(0)), "unsupported version 0 (at byte 4)"},
	{"version 1", raw([]byte("GGUF"), u32(1), u64(0), u64(0)), "unsupported version 1 (at byte 4)"},
	{"version 4", raw([]byte("GGUF"), u32(4), u64(0), u64(0)), "unsupported version 4 (at byte 4)"},
	{"version 2^32-1", raw([]byte("GGUF"), u32(1<<32-1), u64(0), u64(0)), "unsupported version 4294967295 (at byte 4)"},
	{"big endian", raw([]byte("GGUF\x00\x00\x00\x03"), make([]byte, 16)), "unsupported version 3 in big-endian byte order (at byte 4)"},
	{"tensor count cut", raw([]byte("GGUF"), u32(3), u32(1)), "tensor count takes 8 bytes, 4 are left (at byte 8)"},
	{"tensor count 2^62", file(1<<62, 0), "tensor count 4611686018427387904 is too large: each takes at least 33 bytes, 8 are left (at byte 8)"},
	{"tensor count 2^64-1", file(1<<64-1, 0), "tensor count 18446744073709551615 is too large: each takes at least 33 bytes, 8 are left (at byte 8)"},
	{"tensors of zeros", file(4, 0, make([]byte, 33*4)), "tensor 0: name is empty (at byte 24)"},
	{"tensor count beyond the bytes", file(6, 0, make([]byte, 33*5)), "tensor count 6 is too large: each takes at least 33 bytes, 173 are left (at byte 8)"},
	{"key count 2^62", file(0, 1<<62), "key count 4611686018427387904 is too large: each takes at least 14 bytes, 0 are left (at byte 16)"},
	{"160 bytes promise gigabytes", file(0, 1<<33, make([]byte, 136)), "key count 8589934592 is too large: each takes at least 14 bytes, 136 are left (at byte 16)"},
	{"tensors promised, file ends", file(0, 1, "k", Uint8, u8(1))[:30], "key count 1 is too large: each takes at least 14 bytes, 6 are left (at byte 16)"},

	{"key length past the end", file(0, 1, u64(1000), make([]byte, 16)), "key 0: name takes 1000 bytes, 16 are left (at byte 32)"},
	{"key length 2^64-1", file(0, 1, u64(1<<64-1), make([]byte, 16)), "key 0: name length 18446744073709551615 is above 65535 (at byte 24)"},
	{"key length 65536", file(0, 1, u64(65536), make([]byte, 70000)), "key 0: name length 65536 is above 65535 (at byte 24)"},
	{"key empty", file(0, 1, "", Uint8, u8(1), u8(0)), "key 0: name is empty (at byte 24)"},
	{"key not UTF-8", file(0, 1, "a\xff", Uint8, u8(1)), `key 0: name "a\xff" is not UTF-8 (at byte 24)`},
	{"key twice", file(0, 2, "k", Uint8, u8(1), "k", Uint8, u8(2)), `key "k": duplicate of key 0 (at byte 38)`},
	{"value type unknown", file(0, 1, "k", u32(13), u8(1)), `key "k": value type 13 is unknown (at byte 33)`},
	{"value type 2^32-1", file(0, 1, "k", u32(1<<32-1), u8(1)), `key "k": value type 4294967295 is unknown (at byte 33)`},
	{"value type cut", file(0, 1, "keys", u32(0))[:38], `key "keys": value type takes 4 bytes, 2 are left (at byte 36)`},
	{"value cut", file(0, 1, "k", Uint64, u32(1)), `key "k": value takes 8 bytes, 4 are left (at byte 37)`},
	{"bool 2", file(0, 1, "k", Bool, u8(2)), `key "k": bool is 2, want 0 or 1 (at byte 37)`},
	{"bool 255 in an array", file(0, 1, "k", Array, Bool, u64(3), u8(1), u8(0), u8(255)), `key "k": bool is 255, want 0 or 1 (at byte 51)`},
	{"string past the end", file(0, 1, "k", String, u64(9), []byte("12345678")), `key "k": string takes 9 bytes, 8 are left (at byte 45)`},
	{"string length 2^64-1", file(0, 1, "k", String, u64(1<<64-1), u64(0)), `key "k": string takes 18446744073709551615 bytes, 8 are left (at byte 45)`},
	{"string length cut", file(0, 1, "k", String, u32(0)), `key "k": string length takes 8 bytes, 4 are left (at byte 37)`},
	{"array of arrays", file(0, 1, "k", Array, Array, u64(1), Uint8, u64(0)), `key "k": array of arrays is not supported (at byte 37)`},
	{"array type unknown", file(0, 1, "k", Array, u32(77), u64(1), u8(0)), `key "k": array type 77 is unknown (at byte 37)`},
	{"array length overflows", file(0, 1, "k", Array, Uint64, u64(1<<61), u64(0)), `key "k": array length 2305843009213693952 is too large: each takes at least 8 bytes, 8 are left (at byte 41)`},
	{"array length 2^64-1", file(0, 1, "k", Array, Uint8, u64(1<<64-1), u64(0)), `key "k": array length 18446744073709551615 is too large: each takes at least 1 bytes, 8 are left (at byte 41)`},
	{"array of strings too long", file(0, 1, "k", Array, String, u64(1<<40), u64(0)), `key "k": array length 1099511627776 is too large: each takes at least 8 bytes, 8 are left (at byte 41)`},
	{"array string past the end", file(0, 1, "k", Array, String, u64(2), "a", u64(4), u8(0)), `key "k": string takes 4 bytes, 1 are left (at byte 66)`},
	{"array length cut", file(0, 1, "k", Array, Uint8, u32(1)), `key "k": array length takes 8 bytes, 4 are left (at byte 41)`},

	{"alignment 0", aligned(Uint32, u32(0)), `key "general.alignment": value is 0; it must be a power of two from 8 to 65536 (at byte 53)`},
	{"alignment 33", aligned(Uint32, u32(33)), `key "general.alignment": value is 33; it must be a power of two from 8 to 65536 (at byte 53)`},
	{"alignment 2^31", aligned(Uint32, u32(1<<31)), `key "general.alignment": value is 2147483648; it must be a power of two from 8 to 65536 (at byte 53)`},
	{"alignment 2^32-1", aligned(Uint32, u32(1<<32-1)), `key "general.alignment": value is 4294967295; it must be a power of two from 8 to 65536 (at byte 53)`},
	{"alignment of another type", aligned(Uint64, u64(32)), `key "general.alignment": want uint32, found uint64 (at byte 53)`},
	{"alignment an array", aligned(Array, Uint32, u64(1), u32(32)), `key "general.alignment": want uint32, found [1]uint32 (at byte 53)`},

	{"tensor name of 65 bytes", file(1, 0, strings.Repeat("n", 65), make([]byte, 64)), "tensor 0: name length 65 is above 64 (at byte 24)"},
	{"tensor name past the end", file(1, 0, u64(60), make([]byte, 40)), "tensor 0: name takes 60 bytes, 40 are left (at byte 32)"},
	{"tensor name empty", file(1, 0, "", make([]byte, 64)), "tensor 0: name is empty (at byte 24)"},
	{"tensor name not UTF-8", file(1, 0, "\xc0\x80", make([]byte, 64)), `tensor 0: name "\xc0\x80" is not UTF-8 (at byte 24)`},
	{"tensor name twice", twoTensors("w", "w", 0, 32, 64), `w: tensor 0 has this name too (at byte 57)`},
	{"dimension count 0", fileWith(u32(0), tensor.F32, u64(0)), `w: dimension count is 0; it must be 1 to 4 (at byte 33)`},
	{"dimension count 5", fileWith(u32(5), u64(1), u64(1), u64(1), u64(1), u64(1), tensor.F32, u64(0)), `w: dimension count is 5; it must be 1 to 4 (at byte 33)`},
	{"dimension count 2^31", fileWith(u32(1<<31), u64(1)), `w: dimension count is 2147483648; it must be 1 to 4 (at byte 33)`},
	{"dimension 0", fileWith(u32(2), u64(32), u64(0), tensor.F32, u64(0)), `w: dimension 1 is 0; it must be positive (at byte 45)`},
	{"dimension negative", fileWith(u32(1), u64(1<<64-2), tensor.F32, u64(0)), `w: dimension 0 is -2; it must be positive (at byte 37)`},
	{"dimensions overflow", fileWith(u32(2), u64(1<<32), u64(1<<32), tensor.F32, u64(0)), `w: dimension 1 of 4294967296 overflows the number of elements (at byte 45)`},
	{"dimensions overflow to a small product", fileWith(u32(3), u64(1<<22), u64(1<<22), u64(1<<22), tensor.F32, u64(0)), `w: dimension 2 of 4194304 overflows the number of elements (at byte 53)`},
	{"bytes overflow", fileWith(u32(1), u64(1<<62), tensor.F32, u64(0)), `w: 4611686018427387904 elements of F32 overflow the size (at byte 33)`},
	{"row not whole blocks", fileWith(u32(2), u64(33), u64(32), tensor.Q8_0, u64(0)), `w: a row of 33 elements is not a multiple of 32, the block of Q8_0 (at byte 33)`},
	{"row not whole super-blocks", fileWith(u32(1), u64(128), tensor.Q4_K, u64(0)), `w: a row of 128 elements is not a multiple of 256, the block of Q4_K (at byte 33)`},
	{"tensor type unknown", fileWith(u32(1), u64(32), u32(99), u64(0)), `w: type 99 is not supported (at byte 45)`},
	{"tensor type not supported", fileWith(u32(1), u64(256), u32(16), u64(0)), `w: IQ2_XXS is not supported (at byte 45)`},
	{"tensor type removed from the format", fileWith(u32(1), u64(32), u32(4), u64(0)), `w: type 4 is not supported (at byte 45)`},
	{"dimensions cut", file(1, 0, "ww", u32(4), u64(1), u64(1), u32(1)), `ww: dimension takes 8 bytes, 4 are left (at byte 54)`},
	{"tensor type cut", file(1, 0, "wwwwwww", u32(1), u64(1), u8(0), u8(0)), `wwwwwww: type takes 4 bytes, 2 are left (at byte 51)`},
	{"offset cut", file(1, 0, "ww", u32(1), u64(1), tensor.F32, u64(0))[:57], `ww: offset takes 8 bytes, 7 are left (at byte 50)`},

	{"offset not aligned", twoTensors("a", "b", 0, 33, 128), `b: offset is 33; it must be a multiple of the alignment (32) (at byte 82)`},
	{"offset past the end", twoTensors("a", "b", 0, 1<<20, 128), `b: 32 bytes at offset 1048576 reach past the end of the data, 128 bytes (at byte 82)`},
	{"offset 2^64-32", twoTensors("a", "b", 0, 1<<64-32, 128), `b: 32 bytes at offset 18446744073709551584 reach past the end of the data, 128 bytes (at byte 82)`},
	{"same offset", twoTensors("a", "b", 32, 32, 128), `b: data overlaps that of a (at byte 82)`},
	{"overlap out of order", file(2, 0,
		"a", u32(1), u64(8), tensor.F32, u64(32),
		"b", u32(1), u64(9), tensor.F32, u64(0), make([]byte, 6+128)), `a: data overlaps that of b (at byte 49)`},
	{"data cut", twoTensors("a", "b", 0, 32, 63), `the file is cut off at 159 of 160 bytes; download it again`},
	{"no data", file(1, 0, "w", u32(1), u64(8), tensor.F32, u64(0)), `the file is cut off at 57 of 96 bytes; download it again`},
}

func TestParseBad(t *testing.T) {
	for _, c := range badFiles {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Parse(c.data)
			runtime.ReadMemStats(&after)
			var bad *FormatError
			if !errors.As(err, &bad) {
				t.Fatalf("got %v, want a FormatError", err)
			}
			if want := "gguf: " + c.want; err.Error() != want {
				t.Errorf("message\n got %s\nwant %s", err, want)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 64<<10 {
				t.Errorf("allocated %d bytes for a file of %d", n, len(c.data))
			}
		})
	}
}

// goodFile has every kind of value and some types of tensor, one of them not readable by quant.
func goodFile() ([]KV, []tensor.View) {
	return []KV{
			{"general.architecture", Of("llama")},
			{"general.alignment", Of(uint32(64))},
			{"a.uint8", Of(uint8(200))}, {"a.int8", Of(int8(-100))},
			{"a.uint16", Of(uint16(60000))}, {"a.int16", Of(int16(-30000))},
			{"a.uint32", Of(uint32(1<<32 - 1))}, {"a.int32", Of(int32(-1 << 31))},
			{"a.uint64", Of(uint64(1<<64 - 1))}, {"a.int64", Of(int64(-1 << 63))},
			{"a.float32", Of(float32(1e-5))}, {"a.float64", Of(math.Pi)},
			{"a.true", Of(true)}, {"a.false", Of(false)}, {"a.empty", Of("")},
			{"b.uint8", ArrayOf([]uint8{1, 2})}, {"b.int8", ArrayOf([]int8{-1, 2})},
			{"b.uint16", ArrayOf([]uint16{1, 60000})}, {"b.int16", ArrayOf([]int16{-1})},
			{"b.uint32", ArrayOf([]uint32{7})}, {"b.int32", ArrayOf([]int32{-7, 8, 9})},
			{"b.uint64", ArrayOf([]uint64{1 << 63})}, {"b.int64", ArrayOf([]int64{-5})},
			{"b.float32", ArrayOf([]float32{0.5, -1e10})}, {"b.float64", ArrayOf([]float64{0.1})},
			{"b.bool", ArrayOf([]bool{true, false, true})},
			{"b.string", ArrayOf([]string{"<s>", "", "\xff\xfe", "grüße"})},
			{"b.none", ArrayOf([]string{})},
		}, []tensor.View{
			{Name: "token_embd.weight", Type: tensor.F16, Shape: []int{3, 5}, Data: pattern(30)},
			{Name: "scale", Type: tensor.F32, Shape: []int{1}, Data: pattern(4)},
			{Name: "blk.0.ffn_up_exps.weight", Type: tensor.Q8_0, Shape: []int{2, 3, 64}, Data: pattern(2 * 3 * 68)},
			{Name: "unread", Type: tensor.Q5_K, Shape: []int{1, 1, 1, 256}, Data: pattern(176)},
		}
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + n)
	}
	return b
}

// TestParseTruncated cuts a good file at every byte: each prefix that lacks data is a FormatError.
func TestParseTruncated(t *testing.T) {
	metadata, tensors := goodFile()
	data := written(t, metadata, tensors)
	end := len(data) - 16 // the padding after the last tensor, 176 bytes at alignment 64
	if _, err := Parse(data[:end]); err != nil {
		t.Fatal(err)
	}
	for n := range end {
		_, err := Parse(data[:n:n])
		var bad *FormatError
		if !errors.As(err, &bad) {
			t.Fatalf("%d of %d bytes: got %v, want a FormatError", n, end, err)
		}
		if strings.ContainsAny(err.Error(), "\n\x1b") || bad.Offset > int64(n) {
			t.Fatalf("%d bytes: message %q at %d", n, err, bad.Offset)
		}
	}
}

// TestParseMemory: what parsing allocates is a small multiple of the bytes of keys and tensors, for
// the entries that cost most.
func TestParseMemory(t *testing.T) {
	const n = 20000
	keys := file(0, n)
	names := file(n, 0)
	for i := range n {
		keys = append(keys, raw(fmt.Sprintf("%04x", i), Uint8, u8(0))...)
		names = append(names, raw(fmt.Sprintf("%04x", i), u32(1), u64(1), tensor.F32, u64(i)*32)...)
	}
	names = append(names, make([]byte, 32*n+32)...)
	for name, data := range map[string][]byte{
		"keys":    keys,
		"tensors": names,
		"strings": file(0, 1, "k", Array, String, u64(n), make([]byte, 8*n)),
		"bytes":   file(0, 1, "k", Array, Uint8, u64(1<<20), make([]byte, 1<<20)),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			f, err := Parse(data)
			runtime.ReadMemStats(&after)
			if err != nil {
				t.Fatal(err)
			}
			runtime.KeepAlive(f)
			if n := after.TotalAlloc - before.TotalAlloc; n > 32*uint64(len(data)) {
				t.Errorf("allocated %d bytes for a file of %d", n, len(data))
			}
		})
	}
}

func TestParseVersion2(t *testing.T) {
	metadata, tensors := goodFile()
	data := written(t, metadata, tensors)
	data[4] = 2
	f, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if f.Version != 2 {
		t.Errorf("version %d", f.Version)
	}
	compare(t, f, metadata, tensors)
}

// TestParseGaps: tensors may lie in any order with gaps, and a file may hold a vocabulary alone.
func TestParseGaps(t *testing.T) {
	f, err := Parse(twoTensors("a", "b", 96, 32, 128))
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := f.Tensor("b"); !ok || len(v.Data) != 32 || cap(v.Data) != 32 {
		t.Errorf("tensor b: %v", v)
	}
	if _, ok := f.Tensor("c"); ok {
		t.Error("found tensor c")
	}
	if f, err = Parse(file(0, 1, "k", String, "v")); err != nil || len(f.Tensors) != 0 {
		t.Errorf("vocabulary alone: %v", err)
	}
}

// FuzzParse: any bytes parse or give a one-line FormatError, and what parses is written and parsed
// again to the same values.
func FuzzParse(f *testing.F) {
	for _, c := range badFiles {
		f.Add(c.data)
	}
	metadata, tensors := goodFile()
	f.Add(written(f, metadata, tensors))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Parse(data)
		if err != nil {
			var bad *FormatError
			if !errors.As(err, &bad) || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Fatalf("error %q", err)
			}
			return
		}
		for _, kv := range got.Metadata {
			_, _, _ = got.Uint(kv.Key)
			_, _, _ = got.Float(kv.Key)
			_, _, _ = got.String(kv.Key)
			_, _, _ = got.Strings(kv.Key)
			_, _, _ = got.Ints(kv.Key)
			_, _, _ = got.Floats(kv.Key)
		}
		if err := Inspect(discard{t}, got, false); err != nil {
			t.Fatal(err)
		}
		again, err := Parse(written(t, got.Metadata, got.Tensors))
		if err != nil {
			t.Fatal(err)
		}
		compare(t, again, got.Metadata, got.Tensors)
	})
}

// discard fails where a control character would reach a terminal.
type discard struct{ t *testing.T }

func (d discard) Write(b []byte) (int, error) {
	for _, r := range string(b) {
		if r != '\n' && r < ' ' || r >= 0x7f && r < 0xa0 {
			d.t.Fatalf("control character %U in output", r)
		}
	}
	return len(b), nil
}
