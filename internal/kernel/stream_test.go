package kernel

import (
	"encoding/binary"
	"fmt"
	"sync"
	"testing"
)

func TestStreamRead(t *testing.T) {
	b := make([]byte, streamCall+700)
	rnd := newRand(29)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	eachImpl(t, func(t *testing.T) {
		for _, n := range []int{0, 7, 8, 255, 256, 257, 600, streamCall, len(b)} {
			want := uint64(0)
			piece := b[len(b)-n:]
			for i := 0; i+8 <= n; i += 8 {
				want += binary.LittleEndian.Uint64(piece[i:])
			}
			if got := StreamRead(piece); got != want {
				t.Errorf("%d bytes: sum %x, want %x", n, got, want)
			}
		}
	})
}

// BenchmarkStreamRead is the bandwidth that products of one row are measured against.
func BenchmarkStreamRead(b *testing.B) {
	data := make([]byte, 96<<20)
	for i := range data {
		data[i] = byte(i)
	}
	for n := 1; n <= 2; n++ {
		b.Run(fmt.Sprintf("threads=%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				var wg sync.WaitGroup
				for i := range n {
					wg.Go(func() { StreamRead(data[i*len(data)/n : (i+1)*len(data)/n]) })
				}
				wg.Wait()
			}
		})
	}
}

// TestPeak: rounds of every kind of multiply-add take time and are counted.
func TestPeak(t *testing.T) {
	eachImpl(t, func(t *testing.T) {
		for _, k := range []PeakKind{PeakFloat, PeakInt8, PeakNibble} {
			if one, ten := Peak(k, 1), Peak(k, 10); one <= 0 || ten != 10*one {
				t.Errorf("kind %d: %d multiply-adds in a round, %d in ten", k, one, ten)
			}
		}
	})
}
