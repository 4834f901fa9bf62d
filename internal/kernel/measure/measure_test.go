package measure

import (
	"testing"

	"grove/internal/par"
	"grove/internal/weights/tensor"
)

// TestProduct: a product of every weight type takes time and fills its outputs, equally for equal rows of the matrix.
func TestProduct(t *testing.T) {
	pool := par.New(2)
	defer pool.Close()
	for _, typ := range tensor.Types() {
		t.Run(typ.String(), func(t *testing.T) {
			p := NewProduct(typ, 2)
			p.SetRows(2)
			if s := p.Run(pool, 2); !(s > 0) {
				t.Errorf("a product takes %v seconds", s)
			}
			if p.Bytes() == 0 || p.Bytes()*(p.Copies()+1) <= productBytes {
				t.Errorf("%d copies of %d bytes fit a cache", p.Copies(), p.Bytes())
			}
			for i, v := range p.dst {
				if want := p.dst[i/Outputs*Outputs]; v != want || v == 0 {
					t.Fatalf("output %d is %v, want %v, not 0", i, v, want)
				}
			}
		})
	}
}

// TestLimits: reads are whole items within the bounds, and both limits take time.
func TestLimits(t *testing.T) {
	pool := par.New(2)
	defer pool.Close()
	for bytes, want := range map[int]int{0: readItem, 3*readItem + 5: 3 * readItem} {
		l := NewLimits(pool, bytes, tensor.Q8_0)
		if l.Bytes() != want {
			t.Errorf("a read of %d bytes covers %d, want %d", bytes, l.Bytes(), want)
		}
		if read, one := l.Read(), l.MultiplyAdd(); !(read > 0) || !(one > 0) {
			t.Errorf("a read takes %v seconds, a multiply-add %v", read, one)
		}
	}
}
