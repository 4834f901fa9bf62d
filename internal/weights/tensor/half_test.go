package tensor

import (
	"math"
	"testing"

	"github.com/x448/float16"
)

// TestF16ToF32 compares every half with an independent implementation.
func TestF16ToF32(t *testing.T) {
	for h := range 1 << 16 {
		want := math.Float32bits(float16.Frombits(uint16(h)).Float32())
		if got := math.Float32bits(F16ToF32(uint16(h))); got != want {
			t.Fatalf("F16ToF32(%#04x) = %#08x, want %#08x", h, got, want)
		}
	}
}

// TestF32ToF16 compares, for every half, its value, the midpoint to the next one, and the float32
// numbers beside both, and then a stride through all float32 numbers.
func TestF32ToF16(t *testing.T) {
	check := func(b uint32) {
		t.Helper()
		f := math.Float32frombits(b)
		want := float16.Fromfloat32(f).Bits()
		if got := F32ToF16(f); got != want {
			t.Fatalf("F32ToF16(%#08x = %v) = %#04x, want %#04x", b, f, got, want)
		}
	}
	for h := range 0x7c01 {
		at := math.Float32bits(F16ToF32(uint16(h)))
		next := F16ToF32(uint16(min(h+1, 0x7bff)))
		mid := math.Float32bits(F16ToF32(uint16(h))/2 + next/2)
		for _, b := range []uint32{at, mid} {
			for d := range uint32(3) {
				check((b + d - 1) & 0x7fffffff)
				check((b + d - 1) | 0x80000000)
			}
		}
	}
	for _, f := range []float32{65504, 65519.996, 65520, 65535, 65536, math.MaxFloat32, 0x1p-25, 0x1.000002p-25, 0x1p-149} {
		check(math.Float32bits(f))
		check(math.Float32bits(-f))
	}
	for b := uint64(0); b < 1<<32; b += 509 {
		check(uint32(b))
	}
}

func TestBF16(t *testing.T) {
	for h := range 1 << 16 {
		f := BF16ToF32(uint16(h))
		want := uint16(h)
		if f != f {
			want |= 0x40
		}
		if got := F32ToBF16(f); got != want {
			t.Fatalf("F32ToBF16(BF16ToF32(%#04x)) = %#04x, want %#04x", h, got, want)
		}
	}
	cases := []struct {
		name string
		in   uint32
		want uint16
	}{
		{"below the midpoint", 0x3f807fff, 0x3f80},
		{"tie to even, down", 0x3f808000, 0x3f80},
		{"tie to even, up", 0x3f818000, 0x3f82},
		{"above the midpoint", 0x3f808001, 0x3f81},
		{"negative tie", 0xbf818000, 0xbf82},
		{"subnormal", 0x00018000, 0x0002},
		{"overflow", 0x7f7fffff, 0x7f80},
		{"infinity", 0xff800000, 0xff80},
		{"NaN with a low payload stays NaN", 0x7f800001, 0x7fc0},
		{"negative NaN", 0xff812345, 0xffc1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := F32ToBF16(math.Float32frombits(c.in)); got != c.want {
				t.Errorf("F32ToBF16(%#08x) = %#04x, want %#04x", c.in, got, c.want)
			}
		})
	}
}
