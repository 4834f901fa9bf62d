package compute

import (
	"math"

	"grove/forest"
	"grove/internal/kernel"
	"grove/kv"
)

// tileRows is how many rows of one sequence walk over the blocks together, so that a page is read
// from memory once for all of them. It changes no bits: rows do not meet.
const tileRows = 8

// tile is a stretch of active rows of one sequence, and the blocks that any of them sees.
type tile struct {
	first, end           int
	firstBlock, endBlock int
}

// attendTask is the attention of a layer; an item is one tile and one KV head, with the query heads
// that share it. Where that gives the threads too few items, each is cut into segments of blocks: their
// results are kept block by block, and then merged in order, as one thread would have merged them.
type attendTask struct {
	x       *Exec
	c       Attention
	layer   kv.Layer
	group   int // query heads of a KV head
	q, dst  Buf
	rounded kernel.Rows // 8-bit queries, where the cache has 8-bit keys
	tiles   []tile
	workers []attendWorker

	segments int        // of a tile and head; 1: no cut
	merging  bool       // the second pass over cut items
	blocks   int        // most blocks of a tile
	partial  blockState // by active row, KV head, block and query head
}

// blockState is maxima, sums and weighted values, one of each for a query.
type blockState struct {
	max, sum, out []float32
}

func (b *blockState) grow(n, size int) {
	b.max, b.sum, b.out = grow(b.max, n), grow(b.sum, n), grow(b.out, n*size)
}

// at returns the state of n queries from place i on.
func (b *blockState) at(i, n, size int) blockState {
	return blockState{b.max[i : i+n], b.sum[i : i+n], b.out[i*size : (i+n)*size]}
}

// merge adds a later block to the state of the same queries (N2). A sum of 0 marks a state that has seen
// nothing yet: any key adds a positive weight.
func (b blockState) merge(block blockState, size int) {
	for j := range b.max {
		out, add := b.out[j*size:(j+1)*size], block.out[j*size:(j+1)*size]
		if b.sum[j] == 0 {
			b.max[j], b.sum[j] = block.max[j], block.sum[j]
			copy(out, add)
			continue
		}
		kernel.MergeBlock(&b.max[j], &b.sum[j], out, block.max[j], block.sum[j], add)
	}
}

// attendWorker is the scratch of one thread: places are the rows of a tile times the heads of a group.
type attendWorker struct {
	state, block  blockState
	seen          [tileRows]bool // the row sees something of the block
	scores, moved []float32      // places x 64: by place in the block, and by slot
	queries       kernel.Queries
}

func (t *attendTask) init(x *Exec) {
	t.x = x
	t.workers = make([]attendWorker, x.pool.Threads())
}

// run attends for all active rows.
func (t *attendTask) run(c Attention, q, dst Buf) {
	t.begin(c, q, dst)
	work, most := 0, 0
	for _, tl := range t.tiles {
		n := tl.endBlock - tl.firstBlock
		work += n * (tl.end - tl.first)
		most = max(most, n)
	}
	items := len(t.tiles) * t.layer.KVHeads
	if work*kv.PageTokens*q.width < inlineWork {
		for i := range items {
			t.Do(0, i)
		}
		return
	}
	const itemsOfThread = 4
	if threads := t.x.pool.Threads(); threads > 1 && items < itemsOfThread*threads {
		t.segments = min((itemsOfThread*threads+items-1)/items, most)
	}
	if t.segments == 1 {
		t.x.pool.Run(items, t)
		return
	}
	t.blocks = most
	n := q.rows * c.Heads * most
	t.partial.grow(n, t.layer.Size)
	clear(t.partial.sum)
	t.x.pool.Run(items*t.segments, t)
	t.merging = true
	t.x.pool.Run(items, t)
}

// begin sizes the scratch and cuts the active rows into tiles.
func (t *attendTask) begin(c Attention, q, dst Buf) {
	x := t.x
	t.c, t.q, t.dst, t.segments, t.merging = c, q, dst, 1, false
	t.layer = x.Cache.Config().Layers[c.Layer]
	t.group = c.Heads / t.layer.KVHeads
	size, places := t.layer.Size, tileRows*t.group
	for i := range t.workers {
		w := &t.workers[i]
		w.state.grow(places, size)
		w.block.grow(places, size)
		w.scores, w.moved = grow(w.scores, places*kv.PageTokens), grow(w.moved, places*kv.PageTokens)
		w.queries.Size, w.queries.F = size, grow(w.queries.F, places*size)
		if x.quantizedKeys {
			w.queries.Q, w.queries.D = grow(w.queries.Q, places*size), grow(w.queries.D, places*size/kernel.QBlock)
		}
	}
	if x.quantizedKeys {
		t.rounded = *x.quantize(q)
	}
	rows := x.Step.Rows()
	t.tiles = t.tiles[:0]
	for a, i := range x.active {
		low, high := t.span(&rows[i], x.runsOf(i))
		first, end := low/kv.PageTokens, (high+kv.PageTokens-1)/kv.PageTokens
		if n := len(t.tiles); n > 0 {
			last := &t.tiles[n-1]
			if rows[x.active[last.first]].Seq == rows[i].Seq && last.end-last.first < tileRows {
				last.end, last.firstBlock, last.endBlock = a+1, min(last.firstBlock, first), max(last.endBlock, end)
				continue
			}
		}
		t.tiles = append(t.tiles, tile{a, a + 1, first, end})
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

// Do implements [par.Task].
func (t *attendTask) Do(worker, item int) {
	w := &t.workers[worker]
	segment := item % t.segments
	if t.merging {
		segment = 0
	} else {
		item /= t.segments
	}
	tl, head := t.tiles[item/t.layer.KVHeads], item%t.layer.KVHeads
	clear(w.state.sum)
	switch {
	case t.merging:
		t.mergeParts(w, tl, head)
	default:
		n := tl.endBlock - tl.firstBlock
		t.walk(w, tl, head, tl.firstBlock+n*segment/t.segments, tl.firstBlock+n*(segment+1)/t.segments)
	}
	if t.segments == 1 || t.merging {
		t.finish(w, tl, head)
	}
}

// walk computes blocks in ascending order and merges each, or keeps it where the item is cut.
func (t *attendTask) walk(w *attendWorker, tl tile, head, first, end int) {
	t.gather(w, tl, head)
	for b := first; b < end; b++ {
		t.block(w, tl, head, b)
		for place := range tl.end - tl.first {
			if !w.seen[place] {
				continue
			}
			block := w.block.at(place*t.group, t.group, t.layer.Size)
			if t.segments == 1 {
				state := w.state.at(place*t.group, t.group, t.layer.Size)
				state.merge(block, t.layer.Size)
				continue
			}
			part := t.part(tl.first+place, head, b-tl.firstBlock)
			copy(part.max, block.max)
			copy(part.sum, block.sum)
			copy(part.out, block.out)
		}
	}
}

// part returns where the result of a block is kept, for an active row and a KV head.
func (t *attendTask) part(a, head, block int) blockState {
	return t.partial.at(((a*t.layer.KVHeads+head)*t.blocks+block)*t.group, t.group, t.layer.Size)
}

// mergeParts merges the blocks that were kept, left to right.
func (t *attendTask) mergeParts(w *attendWorker, tl tile, head int) {
	for place := range tl.end - tl.first {
		state := w.state.at(place*t.group, t.group, t.layer.Size)
		for b := range tl.endBlock - tl.firstBlock {
			if part := t.part(tl.first+place, head, b); part.sum[0] != 0 {
				state.merge(part, t.layer.Size)
			}
		}
	}
}

// finish merges the sinks, divides by the sums and writes the results.
func (t *attendTask) finish(w *attendWorker, tl tile, head int) {
	size := t.layer.Size
	for place := range tl.end - tl.first {
		dst := t.dst.row(tl.first + place)[head*t.group*size : (head+1)*t.group*size]
		for j := range t.group {
			s := place*t.group + j
			if t.c.Sinks.f != nil {
				kernel.MergeSink(&w.state.max[s], &w.state.sum[s], w.state.out[s*size:(s+1)*size], t.c.Sinks.f[head*t.group+j])
			}
			kernel.Finish(dst[j*size:(j+1)*size], w.state.out[s*size:(s+1)*size], w.state.sum[s])
		}
	}
}

// gather copies the queries of a tile's rows for one KV head to one place.
func (t *attendTask) gather(w *attendWorker, tl tile, head int) {
	n := t.group * t.layer.Size
	q := &w.queries
	q.N = (tl.end - tl.first) * t.group
	for place := range tl.end - tl.first {
		at := (tl.first+place)*t.q.width + head*n
		copy(q.F[place*n:(place+1)*n], t.q.f[at:at+n])
		if t.x.quantizedKeys {
			copy(q.Q[place*n:(place+1)*n], t.rounded.Q[at:at+n])
			copy(q.D[place*n/kernel.QBlock:(place+1)*n/kernel.QBlock], t.rounded.D[at/kernel.QBlock:(at+n)/kernel.QBlock])
		}
	}
}

var minusInf = float32(math.Inf(-1))
