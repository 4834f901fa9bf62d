package matmul

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"grove/internal/kernel"
	"grove/internal/weights/tensor"
)

// quantised returns the formats of the quantised types.
func quantised() []*Format {
	return slices.DeleteFunc(slices.Clone(formats), func(f *Format) bool { return !f.Quantized })
}

// TestPackKeepsBlocks: packing loses nothing and takes the file's bytes, padded to whole groups.
func TestPackKeepsBlocks(t *testing.T) {
	rnd := newRand(19)
	var s Scratch
	for _, f := range quantised() {
		for out := 1; out <= 40; out++ {
			nb := out % 4
			src := weights(rnd, f.Type, out, nb*f.BlockK, true)
			w := pack(f, src, out, nb*f.BlockK)
			if len(w) != (out+lanes-1)/lanes*lanes*nb*f.codec.Bytes {
				t.Fatalf("%v [%d, %d blocks] takes %d bytes", f.Type, out, nb, len(w))
			}
			padded := append(src, make([]byte, len(w)-len(src))...)
			for i := range len(w) / f.codec.Bytes {
				o, b := i/nb, i%nb
				block := f.unpackBlock(w[(o/lanes*nb+b)*f.packedBlock():][:f.packedBlock()], o%lanes, &s)
				if !bytes.Equal(block, padded[i*f.codec.Bytes:][:f.codec.Bytes]) {
					t.Fatalf("%v [%d, %d blocks]: output %d, block %d is %x, want %x", f.Type, out, nb, o, b, block, padded[i*f.codec.Bytes:][:f.codec.Bytes])
				}
			}
		}
	}
}

// fileProduct multiplies the file's rows by the specification, without packing.
func fileProduct(f *Format, src []byte, out, k int, x *kernel.Rows) []float32 {
	y := make([]float32, x.N*out)
	var t tensor.Term
	nb := k / f.BlockK
	for i := range out * nb {
		f.dot(y[i/nb:], out, src[i*f.codec.Bytes:][:f.codec.Bytes], i%nb*f.BlockK/kernel.QBlock, x, &t)
	}
	return y
}

// equalsFile compares the product of packed weights with the file's by some implementations.
func equalsFile(t *testing.T, impls []string, rnd *rand.Rand, f *Format, out, k, n int, wild bool) {
	t.Helper()
	defer kernel.Use(kernel.Implementation())
	src, x := weights(rnd, f.Type, out, k, wild), activations(rnd, n, k, wild)
	want := fileProduct(f, src, out, k, x)
	for _, impl := range impls {
		kernel.Use(impl)
		if d := diffBits(want, product(t, f, pack(f, src, out, k), out, k, x)); d != "" {
			t.Fatalf("%s: %v [%d, %d], %d rows, wild %v: %s", impl, f.Type, out, k, n, wild, d)
		}
	}
}

func TestMatMulEqualsFileOrder(t *testing.T) {
	impls := kernel.Implementations()
	if testing.Short() && len(impls) > 1 { // as under emulation
		impls = impls[:len(impls)-1] // the last one is portable
	}
	rnd := newRand(29)
	for _, f := range quantised() {
		sweep(f, func(out, k, n int) { equalsFile(t, impls, rnd, f, out, k, n, rnd.IntN(2) == 0) })
	}
}

// TestMatMulManyRows meets the largest tiles with more blocks than any of them works on at once, and rows that are many
// enough to expand weights.
func TestMatMulManyRows(t *testing.T) {
	rnd := newRand(31)
	for _, f := range quantised() {
		for i, n := range []int{13, 14, 15, 16, 48, 53, 64, 65, 71, 79} {
			for _, blocks := range []int{4, 5, 16, 17, 35} {
				equalsFile(t, kernel.Implementations(), rnd, f, 16+5*(i%3), max(blocks*kernel.QBlock/f.BlockK, 1)*f.BlockK, n, i%2 == 0)
			}
		}
	}
}

// TestMatMulExtremes meets the largest sums of each type, of both signs, at every place where an
// instruction could saturate or overflow, and scales that are large, tiny, negative and not finite.
func TestMatMulExtremes(t *testing.T) {
	halves := map[tensor.Type][]int{ // where blocks keep scales that are halves
		tensor.Q8_0: {0}, tensor.Q4_0: {0}, tensor.Q4_1: {0, 2}, tensor.Q5_0: {0}, tensor.Q5_1: {0, 2}, tensor.Q2_K: {80, 82},
		tensor.Q3_K: {108}, tensor.Q4_K: {0, 2}, tensor.Q5_K: {0, 2}, tensor.Q6_K: {208}, tensor.IQ4_NL: {0}, tensor.IQ4_XS: {0},
	}
	// Of types with signed scales, where these begin and end: they differ from the other bytes.
	signed := map[tensor.Type][2]int{tensor.Q6_K: {192, 210}, tensor.Q3_K: {96, 108}, tensor.IQ4_XS: {2, 8}}
	scales := []uint16{0x3c00, 0xc000, 0x7bff, 0xfbff, 0x0001, 0x8001, 0x8000, 0x7c00, 0xfc00, 0x7e00}
	defer kernel.Use(kernel.Implementation())
	for _, f := range quantised() {
		const out = 2 * lanes
		k := 2 * f.BlockK
		x := extremeRows(k)
		more := repeated(x, 4) // so many that weights are expanded
		for _, fill := range []uint16{0x0000, 0xffff, 0x0f0f, 0xf0f0, 0x8080, 0x7f7f, 0x80ff, 0x8000, 0x7f00, 0xff7f, 0x0080, 0x5555} {
			for i := range scales {
				src := make([]byte, out*2*f.codec.Bytes)
				for b := range out * 2 {
					block := src[b*f.codec.Bytes:][:f.codec.Bytes]
					for j := range block {
						block[j] = byte(fill)
						if part := signed[f.Type]; j >= part[0] && j < part[1] {
							block[j] = byte(fill >> 8)
						}
					}
					for j, at := range halves[f.Type] {
						binary.LittleEndian.PutUint16(block[at:], scales[(i+j*(b%3))%len(scales)])
					}
				}
				want := fileProduct(f, src, out, k, x)
				for _, impl := range kernel.Implementations() {
					kernel.Use(impl)
					w := pack(f, src, out, k)
					for _, x := range []*kernel.Rows{x, more} {
						if diff := diffBits(slices.Repeat(want, x.N*out/len(want)), product(t, f, w, out, k, x)); diff != "" {
							t.Fatalf("%s: %v of %04x, scales %04x, %d rows: %s", impl, f.Type, fill, scales[i], x.N, diff)
						}
					}
				}
			}
		}
	}
}

// extremeRows returns rows of ±127: of one sign, and alternating by 1, 2, 4, 8, 16, 32 and 64 values.
func extremeRows(k int) *kernel.Rows {
	x := &kernel.Rows{K: k}
	for _, run := range []int{k, 1, 2, 4, 8, 16, 32, 64} {
		for _, first := range []int8{127, -127} {
			x.N++
			for i := range k {
				v := first
				if i/run%2 == 1 {
					v = -v
				}
				if i%kernel.QBlock == 0 {
					x.D, x.Sum = append(x.D, 0.5), append(x.Sum, 0)
				}
				x.Q = append(x.Q, v)
				x.Sum[len(x.Sum)-1] += int32(v)
			}
		}
	}
	return x
}

// repeated returns the rows of x, which have no floats, so many times.
func repeated(x *kernel.Rows, times int) *kernel.Rows {
	return &kernel.Rows{N: times * x.N, K: x.K, Q: slices.Repeat(x.Q, times), D: slices.Repeat(x.D, times), Sum: slices.Repeat(x.Sum, times)}
}

// TestMatMulWhileCollecting: the collector scans and moves stacks while tiles with frames run.
func TestMatMulWhileCollecting(t *testing.T) {
	for _, f := range quantised() {
		const out, n = 40, 9
		k := 2 * f.BlockK
		w := pack(f, weights(newRand(1), f.Type, out, k, false), out, k)
		x := activations(newRand(2), n, k, false)
		want := product(t, f, w, out, k, x)
		errs := make(chan error, 50)
		for range cap(errs) {
			go func() {
				y := make([]float32, n*out)
				f.MatMul(y, out, w, out, k, 0, f.Groups(out), x, new(Scratch))
				if d := diffBits(want, y); d != "" {
					errs <- fmt.Errorf("%v: %s", f.Type, d)
					return
				}
				errs <- nil
			}()
			runtime.GC()
		}
		for range cap(errs) {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	}
}
