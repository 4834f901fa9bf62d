package compute

import "grove/internal/kernel"

// A cut shares a product out among threads: an item is chunk groups of outputs of one of the bands into which the rows are
// cut. Neither changes a bit: groups and rows do not meet (N1, N3).
type cut struct {
	chunk, chunks int // groups of an item; items of a band
	bands         int
}

// items returns the number of items.
func (c cut) items() int { return c.chunks * c.bands }

// band returns the rows [first, end) of a band.
func (c cut) band(i, rows int) (first, end int) { return i * rows / c.bands, (i + 1) * rows / c.bands }

const (
	// itemsPerThread lets others take over what a thread that is held up does not do.
	itemsPerThread = 4
	// leastItem is the least time of an item in nanoseconds: ten times what it costs to claim one and to start on its weights.
	// Work that is too little for all threads is shared by as many as have an item. It is the time from memory; models so small
	// that it decides are in a cache and take a quarter of it.
	leastItem = 3000
	// longItem is the most time of an item where a thread has fewer than itemsPerThread: those of small products, each of which
	// breaks the stream of weights for as long as it takes.
	longItem  = 24000
	claimCost = 300 // of an item, in nanoseconds
	// leastBand is the least rows of a band: a few tiles, so that the weights of an item are unpacked for many rows.
	leastBand = 32
	maxBands  = 8
	// valuesPerNano is the values of attention that one thread merges in a nanosecond.
	valuesPerNano = 4
)

const (
	// leastMerge is the least time of an item that only merges, in nanoseconds: what it reads was just computed.
	leastMerge = 1000
)

// groupWork is about the nanoseconds that one thread takes for a group of outputs: to read its weights from memory, and to
// multiply a row by them.
type groupWork struct{ read, row int }

// of returns the time of a group for some rows.
func (w groupWork) of(rows int) int { return max(1, w.read+rows*w.row/16) }

// workOf returns the work of a group of the matrix. The time of a row is in sixteenths.
func workOf(m *Matrix) groupWork {
	const bytesPerNano, multiplyAddsPerNano = 8, 64
	read := m.GroupBytes()
	if m.Packed() { // otherwise it is packed first, some byte a nanosecond
		read /= bytesPerNano
	}
	return groupWork{read: read, row: 16 * m.In() * m.Format.Group / multiplyAddsPerNano}
}

// cutOf cuts the groups of a product, of equal work. Items are as long as they can be, for the weights stream from
// memory and every start of an item breaks the stream: four to eight for each thread, as many as leave the threads the least
// to wait for the last one. Where groups are too few for that, the rows are cut too.
func cutOf(groups, rows, threads int, work groupWork) cut {
	best := cut{chunk: max(1, groups), chunks: 1, bands: 1}
	least := groups * work.of(rows)
	if threads == 1 || least < 2*leastItem {
		return best
	}
	good := least / threads * 17 / 16
	for bands := 1; bands == 1 || least > good && bands <= maxBands && rows/bands >= leastBand; bands *= 2 {
		if c, time := cutGroups(groups, bands, threads, work.of((rows+bands-1)/bands)); time < least-least/32 {
			best, least = c, time
		}
	}
	return best
}

// cutGroups returns the best cut of groups for a number of bands, and the time in which the threads do its items. cost is
// the time of a group and band.
func cutGroups(groups, bands, threads, cost int) (best cut, least int) {
	floor := (leastItem + cost - 1) / cost
	for turns := 1; turns <= 2*itemsPerThread; turns++ {
		chunk := max(floor, (groups*bands+threads*turns-1)/(threads*turns))
		if turns < itemsPerThread && chunk*cost > longItem {
			continue // longer than it has to be
		}
		chunk = min(chunk, groups)
		c := cut{chunk: chunk, chunks: (groups + chunk - 1) / chunk, bands: bands}
		time := (c.items() + threads - 1) / threads * (chunk*cost + claimCost)
		if least == 0 || time < least {
			best, least = c, time
		}
	}
	return best, least
}

// bandOf returns the rows [first, end) of x, in dst.
func bandOf(dst, x *kernel.Rows, first, end int) *kernel.Rows {
	*dst = kernel.Rows{N: end - first, K: x.K, F: x.F[first*x.K : end*x.K]}
	if x.Q != nil {
		b := x.K / kernel.QBlock
		dst.Q, dst.D, dst.Sum = x.Q[first*x.K:end*x.K], x.D[first*b:end*b], x.Sum[first*b:end*b]
	}
	return dst
}

// evenChunk returns the groups of the items that a chunk makes of some groups, with the last one about as long as the others.
func evenChunk(groups, chunk int) int {
	items := (groups + chunk - 1) / chunk
	return (groups + items - 1) / items
}

// cutAttention decides which of the items of attention, of some blocks of equal cost each, are cut into segments: none
// below uncut. Few items do not divide evenly among the threads, and the last one would be waited for: the last items, one or
// two for each thread, become short segments.
func cutAttention(items, blocks, threads, cost int) (uncut, segments int) {
	if threads == 1 || items >= itemsPerThread*threads {
		return items, 1
	}
	uncut = max(0, items/threads-1) * threads
	if c, _ := cutGroups(blocks, items-uncut, threads, cost); c.chunks > 1 {
		return uncut, c.chunks
	}
	return items, 1
}

// splitMerge returns into how many parts each of some items is split whose places are merged at a cost each.
func splitMerge(items, places, threads, cost int) int {
	return max(1, min(places, threads/items, places*cost/leastMerge))
}
