package compute

import (
	"grove/forest"
	"grove/internal/kernel"
	"grove/kv"
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
			t.page(w, &p.blocks, p.first-tl.first, parts[n-1].end-tl.first, head, block, dst)
		default:
			for a := p.first; a < p.end; a++ {
				if place := a - tl.first; !t.rowBlock(w, &p.blocks, a, place, head, block, dst) {
					clear(dst.Sum[place*t.group : (place+1)*t.group])
				}
			}
		}
		parts = parts[n:]
	}
}

// page computes a block that is a page of the trunk for rows that see all of it, those at the places [first, end) of a
// tile.
func (t *attendTask) page(w *attendWorker, blocks *kv.Blocks, first, end, head, block int, dst kernel.Attended) {
	f, from, to := t.x.Cache.Format, first*t.group, end*t.group
	keys, values := blocks.Page(head, block)
	next, _ := blocks.Page(head, block+1)
	f.Scores(w.scores, &w.queries, from, to, keys, 0, kv.PageTokens, t.size.Key, values)
	soon := next
	if t.x.quantizedKeys {
		soon = nil // short keys: Weigh is in time
	}
	t.softmax(w, dst, from, to, soon)
	f.Weigh(dst.Out[from*t.size.Value:to*t.size.Value], w.scores[from*kv.PageTokens:], to-from, values, 0, kv.PageTokens, 0, t.size.Value, next)
}

func (t *attendTask) row(a int) *forest.Placed { return &t.x.Step.Rows()[t.x.active[a]] }

// whole reports whether every row of a part sees all of a block, and all of it is trunk.
func (t *attendTask) whole(p *tilePart, block int) bool {
	if (block+1)*kv.PageTokens > p.blocks.Len() {
		return false
	}
	if t.layer.Keeps.Kind == kv.Windowed {
		for a := p.first; a < p.end; a++ {
			if low, _ := t.span(t.row(a), t.x.runsOf(t.x.active[a])); low > block*kv.PageTokens {
				return false
			}
		}
	}
	return true
}

// rowBlock computes what one row sees of a block: the trunk's part and then the runs in scratch, in index
// order. It returns false where that is nothing.
func (t *attendTask) rowBlock(w *attendWorker, blocks *kv.Blocks, a, place, head, block int, dst kernel.Attended) bool {
	x := t.x
	row, runs := t.row(a), x.runsOf(x.active[a])
	low, high := t.span(row, runs)
	start := block * kv.PageTokens
	low, high = max(low, start), min(high, start+kv.PageTokens)
	if low >= high {
		return false
	}
	scores := w.scores[place*t.group*kv.PageTokens : (place+1)*t.group*kv.PageTokens]
	for i := range scores {
		scores[i] = minusInf
	}
	trunkEnd := min(high, blocks.Len())
	var trunkValues []byte
	seen := false
	if trunkEnd > low {
		keys, values := blocks.Page(head, block)
		t.score(w, place, keys, low-start, low-start, trunkEnd-low)
		trunkValues, seen = values, true
	}
	for _, r := range runs {
		if lo, n := clip(r, low, high); n > 0 {
			keys, _ := x.Cache.Scratch(t.c.Layer, int(r.Slot)/kv.PageTokens, head)
			t.score(w, place, keys, slotOf(r, lo), lo-start, n)
			seen = true
		}
	}
	if !seen {
		return false
	}
	t.softmax(w, dst, place*t.group, (place+1)*t.group, nil)
	if trunkEnd > low {
		t.weigh(w, dst, place, trunkValues, low-start, low-start, trunkEnd-low)
	}
	for _, r := range runs {
		if lo, n := clip(r, low, high); n > 0 {
			_, values := x.Cache.Scratch(t.c.Layer, int(r.Slot)/kv.PageTokens, head)
			t.weigh(w, dst, place, values, slotOf(r, lo), lo-start, n)
		}
	}
	return true
}

// clip cuts a run to the indices [low, high) and returns its first index and its length.
func clip(r forest.Run, low, high int) (first, n int) {
	first = max(low, int(r.Index))
	return first, min(high, int(r.Index+r.N)) - first
}

// slotOf returns the slot in its page of an index of a run.
func slotOf(r forest.Run, index int) int { return int(r.Slot)%kv.PageTokens + index - int(r.Index) }

// score writes the scores of one row with n keys at slots from slot on, which stand at places from at on
// in the block.
func (t *attendTask) score(w *attendWorker, place int, keys []byte, slot, at, n int) {
	f, size := t.x.Cache.Format, t.size.Key
	first, end := place*t.group, (place+1)*t.group
	if slot == at {
		f.Scores(w.scores, &w.queries, first, end, keys, slot, slot+n, size, nil)
		return
	}
	f.Scores(w.moved, &w.queries, first, end, keys, slot, slot+n, size, nil)
	for j := first; j < end; j++ {
		copy(w.scores[j*kv.PageTokens+at:][:n], w.moved[j*kv.PageTokens+slot:][:n])
	}
}

// softmax turns the scores of the queries from first to end into weights, and clears their values.
func (t *attendTask) softmax(w *attendWorker, dst kernel.Attended, first, end int, next []byte) {
	kernel.SoftmaxBlocks(w.scores[first*kv.PageTokens:end*kv.PageTokens], t.c.Scale, t.c.Softcap, dst.Max[first:end], dst.Sum[first:end], next)
	clear(dst.Out[first*t.size.Value : end*t.size.Value])
}

// weigh adds the weighted values at n slots from slot on, at places from at on, for a row.
func (t *attendTask) weigh(w *attendWorker, dst kernel.Attended, place int, values []byte, slot, at, n int) {
	j, size := place*t.group, t.size.Value
	t.x.Cache.Format.Weigh(dst.Out[j*size:(j+t.group)*size], w.scores[j*kv.PageTokens:(j+t.group)*kv.PageTokens],
		t.group, values, slot, slot+n, at, size, nil)
}
