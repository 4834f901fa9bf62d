package compute

import (
	"grove/internal/forest"
	"grove/internal/kernel"
	"grove/internal/kv"
)

// block computes one block of 64 indices from scratch for the rows of a tile and one KV head: maximum,
// sum and weighted values (N2). The sums of rows that see nothing of it are 0.
func (t *attendTask) block(w *attendWorker, tl tile, head, block int, dst kernel.Attended) {
	parts := t.parts[tl.firstPart:tl.endPart]
	for len(parts) > 0 {
		p, n := &parts[0], 1
		switch {
		case !p.blocks.Reads(head, block):
			clear(dst.Sum[(p.first-tl.first)*t.group : (p.end-tl.first)*t.group])
		case t.whole(p, block):
			for n < len(parts) && p.blocks.Same(&parts[n].blocks, block) && parts[n].blocks.Reads(head, block) && t.whole(&parts[n], block) {
				n++
			}
			t.page(w, tl.first, p, parts[n-1].end-tl.first, head, block, dst)
		default:
			for a := p.first; a < p.end; {
				end := t.together(p, a, block)
				if place := a - tl.first; end == a {
					clear(dst.Sum[place*t.group : (place+1)*t.group])
					end++
				} else {
					t.rowsBlock(w, &p.blocks, a, end, place, head, block, dst)
				}
				a = end
			}
		}
		parts = parts[n:]
	}
}

// page computes a block that is a page of the trunk for rows that see all of it: those of a tile, which begins at the active row
// start, from the first of a part up to the place end.
func (t *attendTask) page(w *attendWorker, start int, p *tilePart, end, head, block int, dst kernel.Attended) {
	f, from, to, blocks := t.x.Cache.Format, (p.first-start)*t.group, end*t.group, &p.blocks
	keys, values := blocks.Page(head, block)
	next, _ := blocks.Page(head, block+1)
	f.Scores(w.scores, &w.queries, from, to, keys, 0, kv.PageTokens, t.size.Key, values)
	soon := next
	if t.x.quantizedKeys {
		soon = nil // short keys: Weigh is in time
	}
	t.softmax(w, dst, from, to, p.first, head, block, soon)
	f.Weigh(dst.Out[from*t.size.Value:to*t.size.Value], w.scores[from*kv.PageTokens:], to-from, values, 0, kv.PageTokens, 0, t.size.Value, next)
}

func (t *attendTask) row(a int) *forest.Placed { return &t.x.Step.Rows()[t.x.active[a]] }

// whole reports whether every row of a part sees all of a block, and all of it is trunk.
func (t *attendTask) whole(p *tilePart, block int) bool {
	if (block+1)*kv.PageTokens > p.blocks.Len() {
		return false
	}
	if t.layer.Keeps.Evicts() {
		for a := p.first; a < p.end; a++ {
			if low, _ := t.span(a); low > block*kv.PageTokens {
				return false
			}
		}
	}
	return true
}

// bounds returns the indices [low, high) of a block that an active row sees at most.
func (t *attendTask) bounds(a, block int) (low, high int) {
	low, high = t.span(a)
	start := block * kv.PageTokens
	return max(low, start), min(high, start+kv.PageTokens)
}

// sees reports whether an active row sees anything of a block. Runs have gaps where rows skipped the layer.
func (t *attendTask) sees(blocks *kv.Blocks, a, block int) bool {
	low, high := t.bounds(a, block)
	if min(high, blocks.Len()) > low {
		return true
	}
	for _, r := range t.runsOf(a) {
		if _, n := r.Clip(low, high); n > 0 {
			return true
		}
	}
	return false
}

// together returns the end of the rows of a part, from a on, that are computed at once for a block: each of them sees
// something of it, and all that the one before it sees. It returns a where that row sees nothing.
func (t *attendTask) together(p *tilePart, a, block int) int {
	const rows, queries = 8, 32 // the rows at least, the queries at most: rows meet only what all of them see
	end := a
	for limit := min(p.end, a+max(rows, queries/t.group)); end < limit && t.sees(&p.blocks, end, block); end++ {
		if end > a && !forest.Extends(t.runsOf(end), t.runsOf(end-1)) {
			break
		}
	}
	return end
}

// rowsBlock computes what the active rows [a, end) see of a block, the first at a place of the tile: the trunk's part and
// then the runs in scratch, in index order. The last row sees what the others see, up to the end of each.
func (t *attendTask) rowsBlock(w *attendWorker, blocks *kv.Blocks, a, end, place, head, block int, dst kernel.Attended) {
	start := block * kv.PageTokens
	s := stretch{place: place, end: place + end - a, blocks: blocks, runs: t.runsOf(end - 1), head: head, block: block}
	scores := w.scores[s.place*t.group*kv.PageTokens : s.end*t.group*kv.PageTokens]
	first, high := t.bounds(a, block) // all indices that any row sees
	low, last := first, high          // those that all rows see
	for row := a; row < end; row++ {
		l, h := t.bounds(row, block)
		first, low, last, high = min(first, l), max(low, l), min(last, h), max(high, h)
	}
	if s.gaps(first, high) {
		for i := range scores {
			scores[i] = minusInf
		}
	}
	t.score(w, s, first, high)
	for row := a; row < end; row++ {
		l, h := t.bounds(row, block)
		for range t.group {
			hide(scores[:kv.PageTokens], l-start, h-start)
			scores = scores[kv.PageTokens:]
		}
	}
	t.softmax(w, dst, s.place*t.group, s.end*t.group, a, head, block, nil)
	low, last = min(low, high), max(low, last)
	t.weighEach(w, s, a, end, dst, first, low)
	t.weigh(w, s, dst, low, last)
	t.weighEach(w, s, a, end, dst, last, high)
}

// hide makes the scores outside of [low, high) invisible.
func hide(scores []float32, low, high int) {
	for i := range low {
		scores[i] = minusInf
	}
	for i := high; i < len(scores); i++ {
		scores[i] = minusInf
	}
}

// weighEach adds the weighted values of the indices [low, high), to each of the active rows [a, end) those that it sees.
func (t *attendTask) weighEach(w *attendWorker, s stretch, a, end int, dst kernel.Attended, low, high int) {
	for row := a; row < end && low < high; row++ {
		l, h := t.bounds(row, s.block)
		s.end = s.place + 1
		t.weigh(w, s, dst, max(l, low), min(h, high))
		s.place++
	}
}

// A stretch is the places [place, end) of a tile, whose rows see some runs of a block behind the trunk.
type stretch struct {
	place, end  int
	blocks      *kv.Blocks
	runs        []forest.Run
	head, block int
}

// slotOf returns the slot in its page of an index of a run.
func slotOf(r forest.Run, index int) int { return int(r.Slot)%kv.PageTokens + index - int(r.Index) }

// gaps reports whether some of the indices [low, high) are neither in the trunk nor in the runs.
func (s *stretch) gaps(low, high int) bool {
	left := high - low - max(0, min(high, s.blocks.Len())-low)
	for _, r := range s.runs {
		_, n := r.Clip(low, high)
		left -= max(0, n)
	}
	return left > 0
}

// score writes the scores of a stretch for the indices [low, high).
func (t *attendTask) score(w *attendWorker, s stretch, low, high int) {
	start := s.block * kv.PageTokens
	if n := min(high, s.blocks.Len()) - low; n > 0 {
		keys, _ := s.blocks.Page(s.head, s.block)
		t.scoreSlots(w, s, keys, low-start, low-start, n)
	}
	for _, r := range s.runs {
		if lo, n := r.Clip(low, high); n > 0 {
			keys, _ := t.x.Cache.Scratch(t.c.Layer, int(r.Slot)/kv.PageTokens, s.head)
			t.scoreSlots(w, s, keys, slotOf(r, lo), lo-start, n)
		}
	}
}

// scoreSlots writes the scores of a stretch with n keys at slots from slot on, which stand at places from at on in the
// block. It computes those of whole vectors of keys.
func (t *attendTask) scoreSlots(w *attendWorker, s stretch, keys []byte, slot, at, n int) {
	const lanes = 16
	f, size := t.x.Cache.Format, t.size.Key
	first, end := s.place*t.group, s.end*t.group
	if slot == at && slot%lanes == 0 && n%lanes == 0 {
		f.Scores(w.scores, &w.queries, first, end, keys, slot, slot+n, size, nil)
		return
	}
	f.Scores(w.moved, &w.queries, first, end, keys, slot/lanes*lanes, (slot+n+lanes-1)/lanes*lanes, size, nil)
	for j := first; j < end; j++ {
		copy(w.scores[j*kv.PageTokens+at:][:n], w.moved[j*kv.PageTokens+slot:][:n])
	}
}

// softmax turns the scores of the queries from first to end in a block, those of an active row and the rows behind it, into
// weights, and clears their values.
func (t *attendTask) softmax(w *attendWorker, dst kernel.Attended, first, end, row, head, block int, next []byte) {
	scale := t.c.Scale
	if t.c.biased() {
		t.bias(w, first, end, row, head, block)
		scale = 1
	}
	kernel.SoftmaxBlocks(w.scores[first*kv.PageTokens:end*kv.PageTokens], scale, t.c.Softcap, dst.Max[first:end], dst.Sum[first:end], next)
	clear(dst.Out[first*t.size.Value : end*t.size.Value])
}

// weigh adds the weighted values of the indices [low, high) to the rows of a stretch.
func (t *attendTask) weigh(w *attendWorker, s stretch, dst kernel.Attended, low, high int) {
	start := s.block * kv.PageTokens
	if n := min(high, s.blocks.Len()) - low; n > 0 {
		_, values := s.blocks.Page(s.head, s.block)
		t.weighSlots(w, s, dst, values, low-start, low-start, n)
	}
	for _, r := range s.runs {
		if lo, n := r.Clip(low, high); n > 0 {
			_, values := t.x.Cache.Scratch(t.c.Layer, int(r.Slot)/kv.PageTokens, s.head)
			t.weighSlots(w, s, dst, values, slotOf(r, lo), lo-start, n)
		}
	}
}

// weighSlots adds the weighted values at n slots from slot on, which stand at places from at on in the block.
func (t *attendTask) weighSlots(w *attendWorker, s stretch, dst kernel.Attended, values []byte, slot, at, n int) {
	first, end, size := s.place*t.group, s.end*t.group, t.size.Value
	t.x.Cache.Format.Weigh(dst.Out[first*size:end*size], w.scores[first*kv.PageTokens:end*kv.PageTokens],
		end-first, values, slot, slot+n, at, size, nil)
}
