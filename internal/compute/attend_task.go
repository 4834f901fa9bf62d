package compute

import (
	"math"

	"grove/internal/forest"
	"grove/internal/kernel"
	"grove/internal/kv"
)

// tileRows is the number of rows that walk over the blocks together and read each page once: rows of one sequence, and of
// others that begin with the same page. It changes no bits, as rows do not meet. Prompts that make enough items of longer
// tiles have manyTileRows of them: pages are then turned into floats, and read from memory, for more queries.
const (
	tileRows      = 8
	manyTileRows  = 32
	manyQueries   = 256 // of a tile, beyond which tileRows are enough
	itemsOfThread = 4   // for each thread: few items do not divide evenly
)

// tile is a stretch of active rows, and the blocks that any of them sees.
type tile struct {
	first, end           int
	firstBlock, endBlock int
	firstPart, endPart   int // of the task's parts
}

// tilePart is the rows of a tile that are of one sequence, and what they read of its trunk.
type tilePart struct {
	seq        forest.Seq
	first, end int
	blocks     kv.Blocks
}

// attendTask is the attention of a layer. An item is one tile and one KV head, with the query heads that share it.
// Where these are too few items for the threads, the last ones are cut into segments of blocks: their results are kept
// block by block and then merged in order, as one thread would have merged them (N3).
type attendTask struct {
	x       *Exec
	c       Attention
	cross   bool // it reads sources
	layer   kv.Layer
	size    kernel.HeadSize
	group   int // query heads of a KV head
	q, dst  Buf
	rounded kernel.Rows // 8-bit queries, where the cache has 8-bit keys
	rows    int         // of a tile, at most

	distances []float32 // between indices, for ALiBi
	tiles     []tile
	parts     []tilePart
	workers   []attendWorker

	uncut    int             // items that are not cut; the others follow
	segments int             // of an item that is cut
	merging  bool            // the second pass over cut items
	splits   int             // of such an item in the second pass, by its queries
	blocks   int             // the most blocks of a tile
	places   int             // the most queries of a tile and head
	partial  kernel.Attended // by cut item, block and place
}

// attendWorker is the scratch of one thread: places are the rows of a tile times the heads of a group.
type attendWorker struct {
	state, block  kernel.Attended
	scores, moved []float32 // places x 64: by place in the block, and by slot
	queries       kernel.Queries
}

// growAttended returns room for n queries.
func growAttended(a kernel.Attended, n, size int) kernel.Attended {
	return kernel.Attended{Max: grow(a.Max, n), Sum: grow(a.Sum, n), Out: grow(a.Out, n*size)}
}

// part returns the state of n queries of a from place i on.
func part(a *kernel.Attended, i, n, size int) kernel.Attended {
	return kernel.Attended{Max: a.Max[i : i+n], Sum: a.Sum[i : i+n], Out: a.Out[i*size : (i+n)*size]}
}

func (t *attendTask) init(x *Exec) {
	t.x = x
	t.workers = make([]attendWorker, x.pool.Threads())
}

// run attends for all active rows.
func (t *attendTask) run(c Attention, q, dst Buf) {
	t.begin(c, q, dst)
	work := 0
	t.blocks, t.places = 0, 0
	for _, tl := range t.tiles {
		n := tl.endBlock - tl.firstBlock
		work += n * (tl.end - tl.first)
		t.blocks = max(t.blocks, n)
		t.places = max(t.places, (tl.end-tl.first)*t.group)
	}
	items := len(t.tiles) * t.layer.KVHeads
	t.uncut, t.segments = items, 1
	if work*kv.PageTokens*q.width < inlineWork {
		for i := range items {
			t.Do(0, i)
		}
		return
	}
	t.cut(items)
	t.x.pool.Run(t.uncut+(items-t.uncut)*t.segments, t)
	if t.merging = t.uncut < items; t.merging {
		t.x.pool.Run((items-t.uncut)*t.splits, t)
	}
}

// cut decides which items are cut, and makes room for their results.
func (t *attendTask) cut(items int) {
	threads := t.x.pool.Threads()
	t.uncut, t.segments = CutAttention(items, t.blocks, threads, t.blockCost())
	if t.uncut < items {
		t.splits = CutMerge(items-t.uncut, t.places, threads, t.blocks*t.size.Value/CutValuesPerNano)
	}
	t.partial = growAttended(t.partial, (items-t.uncut)*t.blocks*t.places, t.size.Value)
}

// blockCost returns about the nanoseconds that one thread takes for a block: to read its keys and values, and to multiply the
// queries of an item by them.
func (t *attendTask) blockCost() int {
	const bytesPerNano, multiplyAddsPerNano = 8, 32
	values := kv.PageTokens * (t.size.Key + t.size.Value)
	return values*2/bytesPerNano + values*t.places/multiplyAddsPerNano
}

// begin sizes the scratch and cuts the active rows into tiles.
func (t *attendTask) begin(c Attention, q, dst Buf) {
	x := t.x
	t.c, t.q, t.dst, t.merging = c, q, dst, false
	t.layer = x.Cache.Config().Layers[x.Cache.KeysLayer(c.Layer)]
	if t.cross {
		h := x.Cache.Config().Layers[c.Layer].Cross
		t.layer = kv.Layer{KVHeads: h.KVHeads, KeySize: h.KeySize, ValueSize: h.ValueSize}
	}
	t.size, t.group = t.layer.HeadSize(), c.Heads/t.layer.KVHeads
	t.rows = tileRows
	if long := max(tileRows, min(manyTileRows, manyQueries/t.group)); len(x.active)*t.layer.KVHeads >= long*itemsOfThread*x.pool.Threads() {
		t.rows = long
	}
	size, value, places := t.size.Key, t.size.Value, t.rows*t.group
	for i := range t.workers {
		w := &t.workers[i]
		w.state, w.block = growAttended(w.state, places, value), growAttended(w.block, places, value)
		w.scores, w.moved = grow(w.scores, places*kv.PageTokens), grow(w.moved, places*kv.PageTokens)
		w.queries.Size, w.queries.F = size, grow(w.queries.F, places*size)
		if x.quantizedKeys {
			blocks := places * size / kernel.QBlock
			w.queries.Q, w.queries.D, w.queries.Bias = grow(w.queries.Q, places*size), grow(w.queries.D, blocks), grow(w.queries.Bias, blocks)
		}
	}
	if x.quantizedKeys {
		t.rounded = *x.quantize(q)
	}
	t.beginBias()
	t.tiles, t.parts = t.tiles[:0], t.parts[:0]
	for a := range x.active {
		t.place(a)
	}
}

// place makes an active row part of the last tile, or of a new one.
func (t *attendTask) place(a int) {
	row := t.row(a)
	low, high := t.span(a)
	first, end := low/kv.PageTokens, (high+kv.PageTokens-1)/kv.PageTokens
	if n := len(t.tiles); n > 0 && t.tiles[n-1].end-t.tiles[n-1].first < t.rows {
		last, part := &t.tiles[n-1], &t.parts[len(t.parts)-1]
		if part.seq == row.Seq {
			last.add(a, first, end)
			part.end = a + 1
			return
		}
		if blocks := t.blocksOf(row.Seq); first == last.firstBlock && part.blocks.Same(&blocks, first) {
			last.add(a, first, end)
			t.parts = append(t.parts, tilePart{row.Seq, a, a + 1, blocks})
			last.endPart++
			return
		}
	}
	t.tiles = append(t.tiles, tile{a, a + 1, first, end, len(t.parts), len(t.parts) + 1})
	t.parts = append(t.parts, tilePart{row.Seq, a, a + 1, t.blocksOf(row.Seq)})
}

// blocksOf returns what the rows of a sequence read of its trunk, or of its source.
func (t *attendTask) blocksOf(s forest.Seq) kv.Blocks {
	if t.cross {
		return t.x.Cache.SourceBlocks(s, t.c.Layer)
	}
	return t.x.Cache.Blocks(s, t.c.Layer)
}

// runsOf returns the runs of scratch that an active row sees; none of a source.
func (t *attendTask) runsOf(a int) []forest.Run {
	if t.cross {
		return nil
	}
	return t.x.runsOf(t.x.active[a])
}

// add makes the active row a, which sees some blocks, the last of the tile.
func (tl *tile) add(a, first, end int) {
	tl.end, tl.firstBlock, tl.endBlock = a+1, min(tl.firstBlock, first), max(tl.endBlock, end)
}

// span returns the indices [low, high) that an active row sees at most, without regard to the tree.
func (t *attendTask) span(a int) (low, high int) {
	row := t.row(a)
	if t.cross {
		return 0, t.x.Cache.SourceLen(row.Seq)
	}
	end := 0 // behind the last key: rows of a block lie ahead, and a row may have skipped the layer whose keys it reads
	if runs := t.runsOf(a); len(runs) > 0 {
		end = int(runs[len(runs)-1].Index + runs[len(runs)-1].N)
	} else {
		blocks := t.blocksOf(row.Seq)
		end = min(int(row.Index)+1, blocks.Len())
	}
	if t.c.Wide && row.Block > 0 {
		low, _ = t.layer.Keeps.Span(int(row.First), end)
		return low, end
	}
	return t.layer.Keeps.Span(int(row.Index), end)
}

// Do implements [par.Task].
func (t *attendTask) Do(worker, i int) {
	w := &t.workers[worker]
	if t.merging {
		t.mergeKept(w, i)
		return
	}
	item, segment := i, 0
	if i >= t.uncut {
		item, segment = t.uncut+(i-t.uncut)/t.segments, (i-t.uncut)%t.segments
	}
	tl, head := t.tiles[item/t.layer.KVHeads], item%t.layer.KVHeads
	n, size := (tl.end-tl.first)*t.group, t.size.Value
	blocks := tl.endBlock - tl.firstBlock
	t.gather(w, tl, head)
	if item >= t.uncut {
		for b := blocks * segment / t.segments; b < blocks*(segment+1)/t.segments; b++ {
			t.block(w, tl, head, tl.firstBlock+b, t.kept(item, b, 0, n))
		}
		return
	}
	state, block := part(&w.state, 0, n, size), part(&w.block, 0, n, size)
	state.Clear()
	for b := range blocks {
		t.block(w, tl, head, tl.firstBlock+b, block)
		t.merge(state, block)
	}
	t.finish(w, tl, head, 0, n)
}

// mergeKept merges the blocks of a cut item for some of its queries.
func (t *attendTask) mergeKept(w *attendWorker, i int) {
	item, split := t.uncut+i/t.splits, i%t.splits
	tl, head := t.tiles[item/t.layer.KVHeads], item%t.layer.KVHeads
	n := (tl.end - tl.first) * t.group
	first, end := n*split/t.splits, n*(split+1)/t.splits
	state := part(&w.state, first, end-first, t.size.Value)
	state.Clear()
	for b := range tl.endBlock - tl.firstBlock {
		t.merge(state, t.kept(item, b, first, end))
	}
	t.finish(w, tl, head, first, end)
}

// Bytes implements [par.Reader].
func (t *attendTask) Bytes(i int) int {
	if t.merging {
		return 0
	}
	item, segment, segments := i, 0, 1
	if i >= t.uncut {
		item, segment, segments = t.uncut+(i-t.uncut)/t.segments, (i-t.uncut)%t.segments, t.segments
	}
	tl := t.tiles[item/t.layer.KVHeads]
	blocks := tl.endBlock - tl.firstBlock
	f := t.x.Cache.Format
	return (blocks*(segment+1)/segments - blocks*segment/segments) * (f.KeyBytes(t.size.Key) + f.ValueBytes(t.size.Value))
}

// sink makes a block of the heads' attention sinks, scores without values, for the queries from place first on. It is merged last.
func (t *attendTask) sink(block kernel.Attended, head, first int) {
	for j := range block.Sum {
		block.Max[j], block.Sum[j] = t.c.Sinks.F[head*t.group+(first+j)%t.group], 1
	}
	clear(block.Out)
}

// kept returns where the results of a block of a cut item are kept, for the places [first, end).
func (t *attendTask) kept(item, block, first, end int) kernel.Attended {
	return part(&t.partial, ((item-t.uncut)*t.blocks+block)*t.places+first, end-first, t.size.Value)
}

// merge adds a later block to the state of the same queries (N2), except queries that see nothing of it. Those have a
// sum of 0, since any key adds a positive weight.
func (t *attendTask) merge(state, block kernel.Attended) {
	for first, end := 0, 0; first < len(block.Sum); first = end + 1 {
		for end = first; end < len(block.Sum) && block.Sum[end] != 0; {
			end++
		}
		if first < end {
			state, block := part(&state, first, end-first, t.size.Value), part(&block, first, end-first, t.size.Value)
			state.Merge(block)
		}
	}
}

// finish merges the sinks, divides by the sums and writes the results, of the places [first, end).
func (t *attendTask) finish(w *attendWorker, tl tile, head, first, end int) {
	size := t.size.Value
	if t.c.Sinks.F != nil {
		sinks := part(&w.block, first, end-first, size)
		t.sink(sinks, head, first)
		part(&w.state, first, end-first, size).Merge(sinks)
	}
	for s := first; s < end; s++ {
		at := (head*t.group + s%t.group) * size
		to := t.dst.row(tl.first + s/t.group)[at : at+size]
		if w.state.Sum[s] == 0 {
			clear(to) // a row that sees nothing: it skipped the layer whose keys it reads
			continue
		}
		kernel.Finish(to, w.state.Out[s*size:(s+1)*size], w.state.Sum[s])
	}
}

// gather copies the queries of a tile's rows for one KV head to one place.
func (t *attendTask) gather(w *attendWorker, tl tile, head int) {
	n := t.group * t.size.Key
	q := &w.queries
	q.N = (tl.end - tl.first) * t.group
	for place := range tl.end - tl.first {
		at := (tl.first+place)*t.q.width + head*n
		copy(q.F[place*n:(place+1)*n], t.q.f[at:at+n])
		if t.x.quantizedKeys {
			copy(q.Q[place*n:(place+1)*n], t.rounded.Q[at:at+n])
			to, from, nb := place*n/kernel.QBlock, at/kernel.QBlock, n/kernel.QBlock
			copy(q.D[to:to+nb], t.rounded.D[from:from+nb])
			for i, sum := range t.rounded.Sum[from : from+nb] {
				q.Bias[to+i] = -128 * sum
			}
		}
	}
}

var minusInf = float32(math.Inf(-1))
