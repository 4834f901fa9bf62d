package matmul

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"grove/internal/kernel"
	"grove/weights/codec"
	"grove/weights/tensor"
)

// layouts returns the layouts of the quantised types, with their sizes.
func layouts() []blockLayout {
	ls := slices.Clone(blockLayouts)
	for i := range ls {
		ls[i].elems, ls[i].size, _ = ls[i].t.Block()
	}
	return ls
}

// TestPackKeepsBlocks: packing loses nothing and takes the file's bytes, padded to whole groups.
func TestPackKeepsBlocks(t *testing.T) {
	rnd := newRand(19)
	for _, l := range layouts() {
		f, _ := FormatOf(l.t)
		for out := 1; out <= 40; out++ {
			nb := out % 4
			src := weights(rnd, l.t, out, nb*l.elems, true)
			w := pack(f, src, out, nb*l.elems)
			if len(w) != (out+lanes-1)/lanes*lanes*nb*l.size {
				t.Fatalf("%v [%d, %d blocks] takes %d bytes", l.t, out, nb, len(w))
			}
			padded := append(src, make([]byte, len(w)-len(src))...)
			block := make([]byte, l.size)
			for i := range len(w) / l.size {
				o, b := i/nb, i%nb
				l.unpack(block, w[(o/lanes*nb+b)*l.packed():][:l.packed()], o%lanes)
				if !bytes.Equal(block, padded[i*l.size:][:l.size]) {
					t.Fatalf("%v [%d, %d blocks]: output %d, block %d is %x, want %x", l.t, out, nb, o, b, block, padded[i*l.size:][:l.size])
				}
			}
		}
	}
}

// fileProduct multiplies the file's rows by the specification, without packing.
func fileProduct(l *blockLayout, src []byte, out, k int, x *kernel.Rows) []float32 {
	y := make([]float32, x.N*out)
	nb := k / l.elems
	for i := range out * nb {
		l.dot(y[i/nb:], out, src[i*l.size:][:l.size], i%nb*l.elems/kernel.QBlock, k/kernel.QBlock, x)
	}
	return y
}

func TestMatMulEqualsFileOrder(t *testing.T) {
	eachImpl(t, func(t *testing.T) {
		rnd := newRand(29)
		for _, l := range layouts() {
			f, _ := FormatOf(l.t)
			sweep(f, func(out, k, n int) {
				wild := rnd.IntN(2) == 0
				src, x := weights(rnd, l.t, out, k, wild), activations(rnd, n, k, wild)
				if d := diffBits(fileProduct(&l, src, out, k, x), product(t, f, pack(f, src, out, k), out, k, x)); d != "" {
					t.Fatalf("%v [%d, %d], %d rows, wild %v: %s", l.t, out, k, n, wild, d)
				}
			})
		}
	})
}

// TestMatMulExtremes meets the largest sums of each type, of both signs, at every place where an
// instruction could saturate or overflow, and scales that are large, tiny, negative and not finite.
func TestMatMulExtremes(t *testing.T) {
	halves := map[tensor.Type][]int{
		tensor.Q8_0: {codec.Q8_0D}, tensor.Q4_0: {codec.Q4_0D}, tensor.Q4_1: {codec.Q4_1D, codec.Q4_1M},
		tensor.Q5_0: {codec.Q5_0D}, tensor.Q5_1: {codec.Q5_1D, codec.Q5_1M}, tensor.Q2_K: {codec.Q2_KD, codec.Q2_KMin},
		tensor.Q3_K: {codec.Q3_KD}, tensor.Q4_K: {codec.Q4_KD, codec.Q4_KMin}, tensor.Q5_K: {codec.Q5_KD, codec.Q5_KMin},
		tensor.Q6_K: {codec.Q6_KD}, tensor.IQ4_NL: {codec.IQ4_NLD}, tensor.IQ4_XS: {codec.IQ4_XSD},
	}
	// Of types with signed scales, where these begin and end: they differ from the quants.
	signed := map[tensor.Type][2]int{
		tensor.Q6_K: {codec.Q6_KScales, codec.Q6_KBytes}, tensor.Q3_K: {codec.Q3_KScales, codec.Q3_KD},
		tensor.IQ4_XS: {codec.IQ4_XSScales, codec.IQ4_XSQ},
	}
	scales := []uint16{0x3c00, 0xc000, 0x7bff, 0xfbff, 0x0001, 0x8001, 0x8000, 0x7c00, 0xfc00, 0x7e00}
	eachImpl(t, func(t *testing.T) {
		for _, l := range layouts() {
			f, _ := FormatOf(l.t)
			const out = 2 * lanes
			k := 2 * l.elems
			for _, fill := range []uint16{0x0000, 0xffff, 0x0f0f, 0xf0f0, 0x8080, 0x7f7f, 0x80ff, 0x7f00, 0xff7f, 0x0080, 0x5555} {
				for i := range scales {
					src := make([]byte, out*2*l.size)
					for b := range out * 2 {
						block := src[b*l.size:][:l.size]
						for j := range block {
							block[j] = byte(fill)
							if part := signed[l.t]; j >= part[0] && j < part[1] {
								block[j] = byte(fill >> 8)
							}
						}
						for j, at := range halves[l.t] {
							binary.LittleEndian.PutUint16(block[at:], scales[(i+j*(b%3))%len(scales)])
						}
					}
					x := extremeRows(k)
					got := product(t, f, pack(f, src, out, k), out, k, x)
					if diff := diffBits(fileProduct(&l, src, out, k, x), got); diff != "" {
						t.Fatalf("%v of %04x, scales %04x: %s", l.t, fill, scales[i], diff)
					}
				}
			}
		}
	})
}

// extremeRows returns rows of ±127: of one sign, and alternating by 1, 2, 4, 16, 32 and 64 values.
func extremeRows(k int) *kernel.Rows {
	x := &kernel.Rows{K: k}
	for _, run := range []int{k, 1, 2, 4, 16, 32, 64} {
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

// TestMatMulWhileCollecting: the collector scans and moves stacks while tiles with frames run.
func TestMatMulWhileCollecting(t *testing.T) {
	for _, l := range layouts() {
		f, _ := FormatOf(l.t)
		const out, n = 40, 9
		k := 2 * l.elems
		w := pack(f, weights(newRand(1), l.t, out, k, false), out, k)
		x := activations(newRand(2), n, k, false)
		want := product(t, f, w, out, k, x)
		errs := make(chan error, 50)
		for range cap(errs) {
			go func() {
				y := make([]float32, n*out)
				f.MatMul(y, out, w, out, k, 0, f.Groups(out), x)
				if d := diffBits(want, y); d != "" {
					errs <- fmt.Errorf("%v: %s", l.t, d)
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
