package gguf

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// good parses goodFile.
func good(t *testing.T) *File {
	t.Helper()
	metadata, tensors := goodFile()
	f, err := Parse(written(t, metadata, tensors))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// result is what an accessor returned.
type result struct {
	Value any
	OK    bool
	Err   string
}

func of[T any](v T, ok bool, err error) result {
	r := result{Value: v, OK: ok}
	if err != nil {
		r.Err = err.Error()
	}
	return r
}

func TestAccessors(t *testing.T) {
	f := good(t)
	cases := []struct {
		name string
		got  result
		want result
	}{
		{"uint8", of(f.Uint("a.uint8")), result{200, true, ""}},
		{"uint16", of(f.Uint("a.uint16")), result{60000, true, ""}},
		{"uint32", of(f.Uint("a.uint32")), result{1<<32 - 1, true, ""}},
		{"negative int8", of(f.Uint("a.int8")), result{0, false, `gguf: key "a.int8": -100 is out of range (at byte 140)`}},
		{"negative int64", of(f.Uint("a.int64")), result{0, false, `gguf: key "a.int64": -9223372036854775808 is out of range (at byte 278)`}},
		{"large uint64", of(f.Uint("a.uint64")), result{0, false, `gguf: key "a.uint64": 18446744073709551615 is out of range (at byte 251)`}},
		{"float as uint", of(f.Uint("a.float32")), result{0, false, `gguf: key "a.float32": want an integer, found float32 (at byte 307)`}},
		{"array as uint", of(f.Uint("b.uint8")), result{0, false, `gguf: key "b.uint8": want an integer, found [2]uint8 (at byte 425)`}},
		{"missing uint", of(f.Uint("none")), result{0, false, ""}},
		{"float32", of(f.Float("a.float32")), result{float64(float32(1e-5)), true, ""}},
		{"float64", of(f.Float("a.float64")), result{math.Pi, true, ""}},
		{"uint as float", of(f.Float("a.uint8")), result{0.0, false, `gguf: key "a.uint8": want a float, found uint8 (at byte 121)`}},
		{"missing float", of(f.Float("none")), result{0.0, false, ""}},
		{"true", of(f.Bool("a.true")), result{true, true, ""}},
		{"false", of(f.Bool("a.false")), result{false, true, ""}},
		{"uint as bool", of(f.Bool("a.uint8")), result{false, false, `gguf: key "a.uint8": want a bool, found uint8 (at byte 121)`}},
		{"missing bool", of(f.Bool("none")), result{false, false, ""}},
		{"string", of(f.String("general.architecture")), result{"llama", true, ""}},
		{"empty string", of(f.String("a.empty")), result{"", true, ""}},
		{"bool as string", of(f.String("a.true")), result{"", false, `gguf: key "a.true": want a string, found bool (at byte 358)`}},
		{"missing string", of(f.String("none")), result{"", false, ""}},
		{"strings", of(f.Strings("b.string")), result{[]string{"<s>", "", "\xff\xfe", "grüße"}, true, ""}},
		{"no strings", of(f.Strings("b.none")), result{[]string{}, true, ""}},
		{"string as strings", of(f.Strings("a.empty")), result{[]string(nil), false, `gguf: key "a.empty": want an array of strings, found string (at byte 398)`}},
		{"ints as strings", of(f.Strings("b.uint8")), result{[]string(nil), false, `gguf: key "b.uint8": want an array of strings, found [2]uint8 (at byte 425)`}},
		{"missing strings", of(f.Strings("none")), result{[]string(nil), false, ""}},
		{"ints of uint16", of(f.Ints("b.uint16")), result{[]int{1, 60000}, true, ""}},
		{"ints of int16", of(f.Ints("b.int16")), result{[]int{-1}, true, ""}},
		{"ints of int32", of(f.Ints("b.int32")), result{[]int{-7, 8, 9}, true, ""}},
		{"large ints", of(f.Ints("b.uint64")), result{[]int(nil), false, `gguf: key "b.uint64": element 0 is out of range (at byte 639)`}},
		{"floats as ints", of(f.Ints("b.float32")), result{[]int(nil), false, `gguf: key "b.float32": want an array of integers, found [2]float32 (at byte 719)`}},
		{"missing ints", of(f.Ints("none")), result{[]int(nil), false, ""}},
		{"floats", of(f.Floats("b.float32")), result{[]float32{0.5, -1e10}, true, ""}},
		{"floats of float64", of(f.Floats("b.float64")), result{[]float32{0.1}, true, ""}},
		{"ints as floats", of(f.Floats("b.int8")), result{[]float32(nil), false, `gguf: key "b.int8": want an array of floats, found [2]int8 (at byte 457)`}},
		{"missing floats", of(f.Floats("none")), result{[]float32(nil), false, ""}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, c.got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
	var bad *FormatError
	if _, _, err := f.Uint("a.empty"); !errors.As(err, &bad) || bad.Offset != 398 {
		t.Errorf("got %#v, want a FormatError at 398", err)
	}
}

func TestValueAny(t *testing.T) {
	want := map[string]any{
		"a.uint8": uint8(200), "a.int8": int8(-100), "a.uint16": uint16(60000), "a.int16": int16(-30000),
		"a.uint32": uint32(1<<32 - 1), "a.int32": int32(-1 << 31), "a.uint64": uint64(1<<64 - 1),
		"a.int64": int64(-1 << 63), "a.float32": float32(1e-5), "a.float64": math.Pi,
		"a.true": true, "a.false": false, "a.empty": "", "general.architecture": "llama",
		"general.alignment": uint32(64),
		"b.uint8":           []uint8{1, 2}, "b.int8": []int8{-1, 2}, "b.uint16": []uint16{1, 60000},
		"b.int16": []int16{-1}, "b.uint32": []uint32{7}, "b.int32": []int32{-7, 8, 9},
		"b.uint64": []uint64{1 << 63}, "b.int64": []int64{-5}, "b.float32": []float32{0.5, -1e10},
		"b.float64": []float64{0.1}, "b.bool": []bool{true, false, true},
		"b.string": []string{"<s>", "", "\xff\xfe", "grüße"}, "b.none": []string{},
	}
	got := map[string]any{}
	for _, kv := range good(t).Metadata {
		got[kv.Key] = kv.Value.Any()
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if (Value{}).Any() != nil {
		t.Error("the zero Value is not nil")
	}
}

func TestValueType(t *testing.T) {
	for want, v := range map[string]Value{
		"string":     Of("x"),
		"uint64":     Of(uint64(1)),
		"[2]bool":    ArrayOf([]bool{true, true}),
		"[0]float64": ArrayOf([]float64{}),
	} {
		if v.Type() != want {
			t.Errorf("got %s, want %s", v.Type(), want)
		}
	}
	v := ArrayOf([]string{"a", "b"})
	if v.Kind() != Array || v.Elem() != String || v.Len() != 2 {
		t.Errorf("got %v of %d %v", v.Kind(), v.Len(), v.Elem())
	}
	if got := Kind(99).String(); got != "kind 99" {
		t.Errorf("got %s", got)
	}
	if Of("a").Equal(Of("b")) || Of(uint8(1)).Equal(Of(int8(1))) || !Of(1.5).Equal(Of(1.5)) {
		t.Error("Equal is wrong")
	}
}
