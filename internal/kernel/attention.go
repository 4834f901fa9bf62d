package kernel

import "grove/internal/weights/tensor"

// PageSlots is the number of slots of a cache page, and of the indices of an attention block (N2).
const PageSlots = 64

// Queries are N queries of Size values, as a cache format reads them. F is [N, Size] row-major. A
// Q8_0 cache reads the others instead, F rounded as [Rows.Quantize] rounds activations: Q is [N, Size],
// within ±127, D is [N, Size/32], and Bias, also [N, Size/32], is -128 times [Rows].Sum: what products of Q by keys with
// 128 added begin with.
type Queries struct {
	N, Size int
	F       []float32
	Q       []int8
	D       []float32
	Bias    []int32
}

// PutResult reports whether a slot was written, and otherwise the reason.
type PutResult int

const (
	PutOK        PutResult = iota // written
	PutRange                      // a value is finite, but beyond the range of the cache's type
	PutNotFinite                  // a value is an infinity or a NaN
)

// HeadSize is the number of values of a head's key and of its value.
type HeadSize struct{ Key, Value int }

// A CacheFormat is the layout of the keys and values of one layer and one key-value head in a page of
// the cache: two blocks of bytes, which only the functions here read and write. All bytes zero is a
// page of zeros.
//
// The functions panic on a caller's mistake (a size that is no multiple of Multiple, slots outside
// the page, a slice too short) and allocate nothing. They may run concurrently unless one writes a
// slot or a destination that another reads or writes.
type CacheFormat struct {
	Type     tensor.Type
	Multiple int // head sizes must be a multiple of it

	// KeyBytes and ValueBytes return the bytes of a page's keys and of its values for heads of the
	// given size, multiples of 32.
	KeyBytes, ValueBytes func(size int) int

	// Put rounds the key k and the value v, as many values as size says, to the cache's type (N4) and
	// writes them to a slot. It writes nothing unless the result is PutOK.
	Put func(keys, values []byte, slot int, size HeadSize, k, v []float32) PutResult

	// Copy copies a slot, bit for bit, to another slot of the same or another page.
	Copy func(dstK, dstV []byte, dstSlot int, srcK, srcV []byte, srcSlot int, size HeadSize)

	// Get reads a slot: the values that Put rounded to.
	Get func(keys, values []byte, slot int, size HeadSize, k, v []float32)

	// Scores writes q[j] . key[slot] to dst[j*64+slot] for the queries j in [n0, n1) and the slots
	// in [lo, hi), and nothing else. A score is one chain over its elements in ascending order, so
	// it depends on its query and its key only. Meanwhile next, which may be nil, is fetched into the
	// processor's cache: the bytes that the caller reads after, best the values of the page.
	Scores func(dst []float32, q *Queries, n0, n1 int, keys []byte, lo, hi, size int, next []byte)

	// Weigh adds weighted values: for the queries j < n and all e < size, dst[j*size+e] takes one
	// multiply-add for each slot of [lo, hi) in ascending order, with the weight
	// p[j*64+at+(slot-lo)]. The caller clears dst before the first slots of a block. Meanwhile next is
	// fetched as Scores does: best the keys of the next page.
	Weigh func(dst []float32, p []float32, n int, values []byte, lo, hi, at, size int, next []byte)
}

var cacheFormats = []*CacheFormat{
	floatCache(tensor.F32, 4),
	floatCache(tensor.F16, 2),
	q8Cache(),
}

// CacheFormatOf returns the cache format of type t, false where there is none.
func CacheFormatOf(t tensor.Type) (*CacheFormat, bool) {
	for _, f := range cacheFormats {
		if f.Type == t {
			return f, true
		}
	}
	return nil, false
}

// checkSlot panics unless the slot and the blocks fit a page of f.
func (f *CacheFormat) checkSlot(keys, values []byte, slot int, size HeadSize) {
	f.checkSize(size.Key)
	f.checkSize(size.Value)
	if slot < 0 || slot >= PageSlots || len(keys) < f.KeyBytes(size.Key) || len(values) < f.ValueBytes(size.Value) {
		panic("kernel: slot outside its page")
	}
}

func (f *CacheFormat) checkHead(keys, values []byte, slot int, size HeadSize, k, v []float32) {
	f.checkSlot(keys, values, slot, size)
	sameLen(size.Key, k)
	sameLen(size.Value, v)
}

func (f *CacheFormat) checkSize(size int) {
	if size <= 0 || size%f.Multiple != 0 {
		panic("kernel: head size does not fit the cache type")
	}
}

// checkScores panics unless the arguments of Scores fit each other. It does not see what the format
// reads of the queries.
func (f *CacheFormat) checkScores(dst []float32, q *Queries, n0, n1 int, keys []byte, lo, hi, size int) {
	f.checkSize(size)
	switch {
	case n0 < 0 || n0 > n1 || n1 > q.N || q.Size != size:
		panic("kernel: no such queries")
	case lo < 0 || lo > hi || hi > PageSlots || len(keys) < f.KeyBytes(size):
		panic("kernel: slots outside their page")
	case len(dst) < n1*PageSlots:
		panic("kernel: scores are too short")
	}
}

// checkWeigh panics unless the arguments of Weigh fit each other.
func (f *CacheFormat) checkWeigh(dst, p []float32, n int, values []byte, lo, hi, at, size int) {
	f.checkSize(size)
	switch {
	case lo < 0 || lo > hi || hi > PageSlots || len(values) < f.ValueBytes(size):
		panic("kernel: slots outside their page")
	case n < 0 || at < 0 || at+hi-lo > PageSlots || len(p) < n*PageSlots || len(dst) < n*size:
		panic("kernel: weights or sums are too short")
	}
}

// SoftmaxBlocks turns the 64 scores that each query has in a block into weights in place and writes their
// maxima to m and their sums to sum, whose length is the number of queries. A score of -Inf is invisible and
// weighs 0; of each query at least one must be visible. Some of next is fetched as Scores does.
//
// The order: s = s*scale; where softcap > 0, visible scores become softcap * tanh(s/softcap); max
// over the block; s = Exp32(s-max); sum by S32. A NaN makes the sum NaN.
func SoftmaxBlocks(s []float32, scale, softcap float32, m, sum []float32, next []byte) {
	sameLen(len(m), sum)
	sameLen(len(m)*PageSlots, s)
	if len(m) == 0 {
		return
	}
	if softcap > 0 {
		for i := 0; i < len(s); i += PageSlots {
			capScores((*[PageSlots]float32)(s[i:]), scale, softcap)
		}
		scale = 1
	}
	softmax(s, scale, m, sum, next)
}

func capScoresGo(s *[PageSlots]float32, scale, softcap float32) {
	for i, x := range s {
		x = float32(x * scale)
		if x != negInf {
			x = float32(softcap * tanh32(x/softcap))
		}
		s[i] = x
	}
}

func softmaxGo(blocks []float32, scale float32, m, sum []float32) {
	for j := range m {
		s := blocks[j*PageSlots : (j+1)*PageSlots]
		for i, x := range s {
			s[i] = float32(x * scale)
		}
		m[j] = maxOfGo(s)
		var p [32]float32
		for i, x := range s {
			s[i] = Exp32(x - m[j])
			p[i%32] += s[i]
		}
		sum[j] = fold32(&p)
	}
}

// An Attended is the attention of some queries so far, or of one block (N2): the maximum and the sum of
// each, and its weighted values, [queries, size].
type Attended struct {
	Max, Sum, Out []float32
}

// Clear makes a the state of queries before the first block: merging a block gives that block.
func (a Attended) Clear() {
	for i := range a.Max {
		a.Max[i], a.Sum[i] = negInf, 0
	}
	for i := range a.Out {
		a.Out[i] = negZero // the one number that any other is the sum with
	}
}

// Merge merges a later block of the same queries, whose Sum must not be 0, into a (N2).
//
// The order: M = the larger maximum; x = Exp32(m-M), y = Exp32(mb-M); l = FMA32(lb, y, l*x);
// o = FMA32(ob, y, o*x).
func (a Attended) Merge(block Attended) {
	n := len(a.Max)
	sameLen(n, a.Sum, block.Max, block.Sum)
	sameLen(len(a.Out), block.Out)
	if n == 0 {
		return
	}
	size := len(a.Out) / n
	for j := 0; j < n; j += 8 {
		end := min(n, j+8)
		var x, y [8]float32
		mergeSums(&x, &y, a.Max[j:end], a.Sum[j:end], block.Max[j:end], block.Sum[j:end])
		merge(a.Out[j*size:end*size], end-j, &x, &y, block.Out[j*size:end*size])
	}
}

// mergeSumsGo merges maxima and sums of a later part and returns the factors of both parts.
func mergeSumsGo(x, y *[8]float32, m, l, mb, lb []float32) {
	for j, old := range m {
		if mb[j] > old {
			m[j] = mb[j]
		}
		x[j], y[j] = Exp32(old-m[j]), Exp32(mb[j]-m[j])
		l[j] = FMA32(lb[j], y[j], float32(l[j]*x[j]))
	}
}

func mergeGo(o []float32, n int, x, y *[8]float32, ob []float32) {
	size := len(o) / n
	for i, v := range ob {
		j := i / size
		o[i] = FMA32(v, y[j], float32(o[i]*x[j]))
	}
}

// Finish writes the attention's result to dst, which may be o: the weighted values o over their sum
// l, as o * (1/l). Both have equal lengths.
func Finish(dst, o []float32, l float32) {
	sameLen(len(dst), o)
	scale(dst, o, 1/l)
}
