package weight

import (
	"grove/internal/kernel"
	"grove/internal/kernel/matmul"
	"grove/internal/weights/tensor"
)

// Adapter is low-rank additions to the matrices of one model (Hu et al. 2021, LoRA, section 4.1): the product y of a row x with a
// matrix becomes y + scale * B(Ax). It is complete when its last [Adapter.Add] returns; from then on it is read-only and safe for
// concurrent use.
type Adapter struct {
	pairs []Pair // by the number of the matrix, side by side as they are read in turn; without A nothing is added
	bytes int
}

// Pair is the factors of one addition. They are packed, and their weights are floats.
type Pair struct {
	A     *Matrix // [rank, in], of a stack for each expert; of an embedding table [vocabulary, rank]
	B     *Matrix // [out, rank], of a stack for each expert
	Scale float32
}

// Adaptable gives a matrix the numbers by which adapters know it: of its products, and with lookup of its rows as embeddings. It
// belongs to loading.
func (w *Store) Adaptable(m *Matrix, lookup bool) {
	w.numbers++
	if lookup {
		m.lookup = w.numbers
	} else {
		m.number = w.numbers
	}
}

// Number returns the number of the matrix's products; 0: no adapter can add to them.
func (m *Matrix) Number() int { return m.number }

// Lookup returns the number of the matrix's rows as embeddings; 0: no adapter can add to them.
func (m *Matrix) Lookup() int { return m.lookup }

// Add gives the adapter what it adds to a matrix: to its products, or with lookup to its rows as embeddings. It panics where the
// factors do not fit: the caller has compared their shapes.
func (a *Adapter) Add(m *Matrix, lookup bool, p Pair) {
	n := m.number
	fits := p.A.k == m.k && p.B.out == m.out && p.B.k == p.A.out && p.A.experts == m.experts && p.B.experts == m.experts
	if lookup {
		n = m.lookup
		fits = p.A.out == m.out && p.B.out == m.k && p.A.k == p.B.k && m.experts == 1
	}
	if n == 0 || !fits || p.A.Format.Quantized || p.B.Format.Quantized || p.A.row > 0 || p.B.row > 0 {
		panic("weight: the factors of an adapter do not fit their matrix")
	}
	for len(a.pairs) <= n {
		a.pairs = append(a.pairs, Pair{})
	}
	a.pairs[n] = p
	a.bytes += len(p.A.data) + len(p.B.data)
}

// Pair returns what the adapter adds to the matrix of a number; nil: nothing.
func (a *Adapter) Pair(number int) *Pair {
	if number >= len(a.pairs) || a.pairs[number].A == nil {
		return nil
	}
	return &a.pairs[number]
}

// Bytes returns the memory of the factors. A factor that several matrices share counts once for each.
func (a *Adapter) Bytes() int { return a.bytes }

// MultiplyPart is [Matrix.Multiply] of a packed matrix whose results lie close together: row r of the groups [first, end) begins at
// dst[r*n], where n is the number of their outputs, which it returns.
func (m *Matrix) MultiplyPart(dst []float32, expert, first, end int, rows *kernel.Rows, s *matmul.Scratch) int {
	group := m.Format.Group
	n := min(end*group, m.out) - first*group
	at := expert*m.stride + m.Format.PackedSize(first*group, m.k)
	m.Format.MatMul(dst, n, m.data[at:at+m.Format.PackedSize(n, m.k)], n, m.k, 0, end-first, rows, s)
	return n
}

// Stacked stores matrices of one type and number of inputs side by side, each from a whole group of outputs on, so that products
// with neighbours are one product with [Matrix.Whole]. Errors are those of [Store.Matrix].
func (w *Store) Stacked(views []tensor.View) (parts []*Matrix, err error) {
	whole, all := &Matrix{experts: 1}, make([]Matrix, len(views))
	for i, v := range views {
		m := &all[i] // side by side, as they are read in turn
		if *m, err = shaped(v); err != nil {
			return nil, err
		}
		if len(parts) == 0 {
			whole.Format, whole.k = m.Format, m.k
		}
		if m.whole, m.group = whole, whole.Groups(); m.Format != whole.Format || m.k != whole.k || m.experts != 1 {
			panic("weight: matrices of different types or inputs side by side")
		}
		whole.out += m.Groups() * m.Format.Group
		parts = append(parts, m)
	}
	if len(parts) == 0 {
		return nil, nil
	}
	whole.stride = whole.Format.PackedSize(whole.out, whole.k)
	whole.data = w.take(whole.stride)
	for i, m := range parts {
		m.data = whole.data[m.group*whole.GroupBytes():][:m.stride:m.stride]
		w.packed(m, views[i].Data)
	}
	return parts, nil
}

// Whole returns the matrix that holds a matrix and its neighbours, and the group of it where the matrix begins; see [Store.Stacked].
// A matrix that was stored by itself is its own.
func (m *Matrix) Whole() (whole *Matrix, group int) {
	if m.whole == nil {
		return m, 0
	}
	return m.whole, m.group
}
