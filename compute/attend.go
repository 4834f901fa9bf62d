package compute

import (
	"fmt"
	"math"

	"grove/forest"
	"grove/internal/kernel"
	"grove/kv"
)

// Attention describes the attention of one layer.
type Attention struct {
	Layer   int
	Heads   int
	Scale   float32 // on the products of queries and keys
	Softcap float32 // 0: none
}

// Attend writes the rows' keys and values (N4), lets each row attend to all that it sees in the layer,
// and returns the weighted values, [rows, Heads x size] (N2).
func (x *Exec) Attend(c Attention, q, k, v Buf) Buf {
	x.store(c.Layer, k, v)
	dst := x.alloc(q.rows, q.width)
	if x.err != nil {
		return dst
	}
	x.visible(c.Layer)
	t := &x.attendTask
	t.begin(c, q, dst)
	layer := &t.layer
	keys := 0 // that the rows see together, about
	for _, i := range x.active {
		keys += int(x.Step.Rows()[i].Index) + 1
	}
	items := len(t.tiles) * layer.KVHeads
	if keys*q.width < inlineWork {
		for i := range items {
			t.Do(0, i)
		}
		return dst
	}
	x.pool.Run(items, t)
	return dst
}

// store rounds and writes the keys and values of the active rows.
func (x *Exec) store(layer int, k, v Buf) {
	t := &x.rowTask
	*t = rowTask{kind: storeRows, x: x, a: k, b: v, layer: layer, heads: x.Cache.Config().Layers[layer].KVHeads}
	x.runRows(k.rows, k.width*8)
	switch kernel.PutResult(t.problem.Load()) {
	case kernel.PutRange:
		x.fail(fmt.Errorf("compute: layer %d: %w", layer, ErrCacheRange))
	case kernel.PutNotFinite:
		x.fail(fmt.Errorf("compute: layer %d: %w", layer, ErrNotFinite))
	}
}

func (t *rowTask) store(i int) {
	slot := t.x.Step.Rows()[t.x.active[i]].Slot
	k, v := t.a.row(i), t.b.row(i)
	size := len(k) / t.heads
	for h := range t.heads {
		if r := t.x.Cache.Put(t.layer, slot, h, k[h*size:(h+1)*size], v[h*size:(h+1)*size]); r != kernel.PutOK {
			t.problem.Store(int32(r))
		}
	}
}

// visible lists what each row of the step sees in scratch in a layer, once a step where layers agree.
func (x *Exec) visible(layer int) {
	if x.visibleLayer == layer || x.visibleLayer >= 0 && x.Step.Plain() {
		return
	}
	x.visibleLayer = layer
	x.runs, x.runEnd = x.runs[:0], x.runEnd[:0]
	for i := range x.Step.Rows() {
		x.runs = x.Step.Visible(x.runs, i, layer)
		x.runEnd = append(x.runEnd, int32(len(x.runs)))
	}
}

// runsOf returns what row i of the step sees in scratch.
func (x *Exec) runsOf(i int32) []forest.Run {
	start := int32(0)
	if i > 0 {
		start = x.runEnd[i-1]
	}
	return x.runs[start:x.runEnd[i]]
}

// tileRows is how many rows of one sequence walk over the blocks together, so that a page is read
// from memory once for all of them. It changes no bits: rows do not meet.
const tileRows = 8

// tile is a stretch of active rows of one sequence.
type tile struct{ first, end int }

// attendTask is the attention of a layer; an item is one tile and one KV head, with the query heads
// that share it.
type attendTask struct {
	x       *Exec
	c       Attention
	layer   kv.Layer
	group   int // query heads of a KV head
	q, dst  Buf
	queries kernel.Rows // 8-bit queries, where the cache has 8-bit keys
	tiles   []tile
	workers []attendWorker
}

// attendWorker is the scratch of one thread: the state of each row and head of a tile, and one block.
type attendWorker struct {
	max, sum []float32 // tileRows x group
	out      []float32 // tileRows x group x size
	seen     []bool    // tileRows: a block has been merged

	scores, moved []float32 // group x 64: scores by place in the block, and by slot
	block         []float32 // group x size: the weighted values of one block

	blockMax, blockSum []float32 // group
	queries            kernel.Queries
}

func (t *attendTask) init(x *Exec) {
	t.x = x
	t.workers = make([]attendWorker, x.pool.Threads())
}

// begin sizes the scratch and cuts the active rows into tiles.
func (t *attendTask) begin(c Attention, q, dst Buf) {
	x := t.x
	t.c, t.q, t.dst = c, q, dst
	t.layer = x.Cache.Config().Layers[c.Layer]
	t.group = c.Heads / t.layer.KVHeads
	for i := range t.workers {
		w := &t.workers[i]
		n := tileRows * t.group
		w.max, w.sum, w.out = grow(w.max, n), grow(w.sum, n), grow(w.out, n*t.layer.Size)
		w.seen = grow(w.seen, tileRows)
		w.scores, w.moved = grow(w.scores, t.group*kv.PageTokens), grow(w.moved, t.group*kv.PageTokens)
		w.block = grow(w.block, t.group*t.layer.Size)
		w.blockMax, w.blockSum = grow(w.blockMax, t.group), grow(w.blockSum, t.group)
	}
	if x.quantizedKeys {
		t.queries = *x.quantize(q)
	}
	rows := x.Step.Rows()
	t.tiles = t.tiles[:0]
	for a, i := range x.active {
		if n := len(t.tiles); n > 0 {
			last := &t.tiles[n-1]
			if rows[x.active[last.first]].Seq == rows[i].Seq && last.end-last.first < tileRows {
				last.end = a + 1
				continue
			}
		}
		t.tiles = append(t.tiles, tile{a, a + 1})
	}
}

// span is the indices that a row sees at most, without regard to the tree: [low, high).
func (t *attendTask) span(row *forest.Placed, runs []forest.Run) (low, high int) {
	last := runs[len(runs)-1]
	high = int(last.Index + last.N)
	if w := t.layer.Window; w > 0 {
		low = max(0, int(row.Index)-w+1)
		high = min(high, int(row.Index)+w) // a row of a block sees as far ahead as behind
	}
	return low, high
}

func (t *attendTask) Do(worker, item int) {
	w := &t.workers[worker]
	tl, head := t.tiles[item/t.layer.KVHeads], item%t.layer.KVHeads
	rows := t.x.Step.Rows()
	clear(w.seen)
	first, end := math.MaxInt, 0
	for a := tl.first; a < tl.end; a++ {
		i := t.x.active[a]
		low, high := t.span(&rows[i], t.x.runsOf(i))
		first, end = min(first, low/kv.PageTokens), max(end, (high+kv.PageTokens-1)/kv.PageTokens)
	}
	for b := first; b < end; b++ {
		for a := tl.first; a < tl.end; a++ {
			t.rowBlock(w, a, a-tl.first, head, b)
		}
	}
	size := t.layer.Size
	for a := tl.first; a < tl.end; a++ {
		dst := t.dst.row(a)[head*t.group*size : (head+1)*t.group*size]
		for j := range t.group {
			s := (a-tl.first)*t.group + j
			kernel.Finish(dst[j*size:(j+1)*size], w.out[s*size:(s+1)*size], w.sum[s])
		}
	}
}

// rowBlock computes one block of 64 indices for one row and one KV head from scratch, and merges it
// into the row's state (N2): blocks come in ascending order.
func (t *attendTask) rowBlock(w *attendWorker, a, place, head, block int) {
	x := t.x
	row := &x.Step.Rows()[x.active[a]]
	runs := x.runsOf(x.active[a])
	low, high := t.span(row, runs)
	start := block * kv.PageTokens
	low, high = max(low, start), min(high, start+kv.PageTokens)
	if low >= high {
		return
	}
	t.setQueries(w, a, head)
	trunkEnd := min(high, x.Cache.Forest.Len(row.Seq))
	seen := 0
	if trunkEnd > low {
		seen += t.score(w, x.Cache.Page(row.Seq, t.c.Layer, block), head, low-start, low-start, trunkEnd-low, seen)
	}
	for _, r := range runs {
		if lo, n := clip(r, low, high); n > 0 {
			seen += t.score(w, x.Cache.Scratch(t.c.Layer, int(r.Slot)/kv.PageTokens), head, int(r.Slot)%kv.PageTokens+lo-int(r.Index), lo-start, n, seen)
		}
	}
	if seen == 0 {
		return
	}
	t.weigh(w, row, runs, head, block, low, high, trunkEnd, place)
}

// clip cuts a run to the indices [low, high) and returns its first index and its length.
func clip(r forest.Run, low, high int) (first, n int) {
	first = max(low, int(r.Index))
	return first, min(high, int(r.Index+r.N)) - first
}

// setQueries points the worker's queries at the heads of a row that share a KV head.
func (t *attendTask) setQueries(w *attendWorker, a, head int) {
	size := t.layer.Size
	at := a*t.q.width + head*t.group*size
	w.queries.N, w.queries.Size = t.group, size
	w.queries.F = t.q.f[at : at+t.group*size]
	if t.x.quantizedKeys {
		w.queries.Q = t.queries.Q[at : at+t.group*size]
		w.queries.D = t.queries.D[at/kernel.QBlock : (at+t.group*size)/kernel.QBlock]
	}
}

// headBytes returns a head's keys and values in a layer of a page.
func (t *attendTask) headBytes(page []byte, head int) (keys, values []byte) {
	f, size := t.x.Cache.Format, t.layer.Size
	kb := f.KeyBytes(size)
	stride := kb + f.ValueBytes(size)
	b := page[head*stride : (head+1)*stride]
	return b[:kb], b[kb:]
}

var minusInf = float32(math.Inf(-1))

// score fills the scores of n keys at slots from slot on, which stand at places from at on in the
// block. Where they are the first seen and not the whole block, the rest is made invisible.
func (t *attendTask) score(w *attendWorker, page []byte, head, slot, at, n, seen int) int {
	keys, _ := t.headBytes(page, head)
	if seen == 0 && n < kv.PageTokens {
		for i := range w.scores[:t.group*kv.PageTokens] {
			w.scores[i] = minusInf
		}
	}
	f, size := t.x.Cache.Format, t.layer.Size
	if slot == at {
		f.Scores(w.scores, &w.queries, 0, t.group, keys, slot, slot+n, size)
		return n
	}
	f.Scores(w.moved, &w.queries, 0, t.group, keys, slot, slot+n, size)
	for j := range t.group {
		copy(w.scores[j*kv.PageTokens+at:][:n], w.moved[j*kv.PageTokens+slot:][:n])
	}
	return n
}

// weigh turns the scores of a block into weights, sums the values with them in index order, and merges
// the block into the row's state.
func (t *attendTask) weigh(w *attendWorker, row *forest.Placed, runs []forest.Run, head, block, low, high, trunkEnd, place int) {
	x, f, size := t.x, t.x.Cache.Format, t.layer.Size
	start := block * kv.PageTokens
	for j := range t.group {
		w.blockMax[j], w.blockSum[j] = kernel.SoftmaxBlock(w.scores[j*kv.PageTokens:(j+1)*kv.PageTokens], t.c.Scale, t.c.Softcap)
	}
	clear(w.block[:t.group*size])
	if trunkEnd > low {
		_, values := t.headBytes(x.Cache.Page(row.Seq, t.c.Layer, block), head)
		f.Weigh(w.block, w.scores, t.group, values, low-start, trunkEnd-start, low-start, size)
	}
	for _, r := range runs {
		if lo, n := clip(r, low, high); n > 0 {
			_, values := t.headBytes(x.Cache.Scratch(t.c.Layer, int(r.Slot)/kv.PageTokens), head)
			slot := int(r.Slot)%kv.PageTokens + lo - int(r.Index)
			f.Weigh(w.block, w.scores, t.group, values, slot, slot+n, lo-start, size)
		}
	}
	for j := range t.group {
		s := place*t.group + j
		out, blk := w.out[s*size:(s+1)*size], w.block[j*size:(j+1)*size]
		if !w.seen[place] {
			w.max[s], w.sum[s] = w.blockMax[j], w.blockSum[j]
			copy(out, blk)
			continue
		}
		kernel.MergeBlock(&w.max[s], &w.sum[s], out, w.blockMax[j], w.blockSum[j], blk)
	}
	w.seen[place] = true
}
