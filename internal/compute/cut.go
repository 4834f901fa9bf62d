// cut.go decides how the work of a step is shared out among threads: the items of products, of attention and of merging. It moves no
// bit (N1, N3).

package compute

import (
	"grove/internal/compute/weight"
	"grove/internal/kernel"
)

// A Cut shares a product out among threads: an item is chunk groups of outputs of one of the bands into which the rows are
// cut. Neither changes a bit: groups and rows do not meet (N1, N3).
type Cut struct {
	Chunk, Chunks int // groups of an item; items of a band
	Bands         int
}

// Items returns the number of items.
func (c Cut) Items() int { return c.Chunks * c.Bands }

// Band returns the rows [first, end) of a band.
func (c Cut) Band(i, rows int) (first, end int) { return i * rows / c.Bands, (i + 1) * rows / c.Bands }

const (
	// CutItemsPerThread lets others take over what a thread that is held up does not do.
	CutItemsPerThread = 4
	// CutLeastItem is the least time of an item in nanoseconds: ten times what it costs to claim one and to start on its weights.
	// Work that is too little for all threads is shared by as many as have an item. It is the time from memory; models so small
	// that it decides are in a cache and take a quarter of it.
	CutLeastItem = 3000
	// longItem is the most time of an item where a thread has fewer than CutItemsPerThread: items of small products, each of which
	// breaks the stream of weights for as long as it takes.
	longItem = 24000
	// CutClaimCost is what an item costs beside its work, in nanoseconds.
	CutClaimCost = 300
	// LeastBand is the least rows of a band: a few tiles, so that the weights of an item are unpacked for many rows.
	LeastBand = 32
	// CutMaxBands is the most bands of a product.
	CutMaxBands = 8
	// CutValuesPerNano is the values of attention that one thread merges in a nanosecond.
	CutValuesPerNano = 4
)

const (
	// CutLeastMerge is the least time of an item that only merges, in nanoseconds: what it reads was just computed.
	CutLeastMerge = 1000
)

// CutWork is about the nanoseconds that one thread takes for a group of outputs: to read its weights from memory, and to
// multiply a row by them.
type CutWork struct{ Read, Row int }

// Of returns the time of a group for some rows.
func (w CutWork) Of(rows int) int { return max(1, w.Read+rows*w.Row/16) }

// CutWorkOf returns the work of a group of the matrix. The time of a row is in sixteenths.
func CutWorkOf(m *weight.Matrix) CutWork {
	const bytesPerNano, multiplyAddsPerNano = 8, 64
	read := m.GroupBytes()
	if m.Packed() { // otherwise it is packed first, some byte a nanosecond
		read /= bytesPerNano
	}
	return CutWork{Read: read, Row: 16 * m.In() * m.Format.Group / multiplyAddsPerNano}
}

// CutOf cuts the groups of a product, of equal work. Items are as long as they can be, for the weights stream from
// memory and every start of an item breaks the stream: four to eight for each thread, as many as leave the threads the least
// to wait for the last one. Where groups are too few for that, the rows are cut too.
func CutOf(groups, rows, threads int, work CutWork) Cut {
	best := Cut{Chunk: max(1, groups), Chunks: 1, Bands: 1}
	least := groups * work.Of(rows)
	if threads == 1 || least < 2*CutLeastItem {
		return best
	}
	good := least / threads * 17 / 16
	for bands := 1; bands == 1 || least > good && bands <= CutMaxBands && rows/bands >= LeastBand; bands *= 2 {
		if c, time := CutGroups(groups, bands, threads, work.Of((rows+bands-1)/bands)); time < least-least/32 {
			best, least = c, time
		}
	}
	return best
}

// CutGroups returns the best cut of groups for a number of bands, and the time in which the threads do its items. cost is
// the time of a group and band.
func CutGroups(groups, bands, threads, cost int) (best Cut, least int) {
	floor := (CutLeastItem + cost - 1) / cost
	for turns := 1; turns <= 2*CutItemsPerThread; turns++ {
		chunk := max(floor, (groups*bands+threads*turns-1)/(threads*turns))
		if turns < CutItemsPerThread && chunk*cost > longItem {
			continue // longer than it has to be
		}
		chunk = min(chunk, groups)
		c := Cut{Chunk: chunk, Chunks: (groups + chunk - 1) / chunk, Bands: bands}
		time := (c.Items() + threads - 1) / threads * (chunk*cost + CutClaimCost)
		if least == 0 || time < least {
			best, least = c, time
		}
	}
	return best, least
}

// CutAttention decides which of the items of attention, of some blocks of equal cost each, are cut into segments: none
// below uncut. Few items do not divide evenly among the threads, and the last one would be waited for: the last items, one or
// two for each thread, become short segments.
func CutAttention(items, blocks, threads, cost int) (uncut, segments int) {
	if threads == 1 || items >= CutItemsPerThread*threads {
		return items, 1
	}
	uncut = max(0, items/threads-1) * threads
	if c, _ := CutGroups(blocks, items-uncut, threads, cost); c.Chunks > 1 {
		return uncut, c.Chunks
	}
	return items, 1
}

// CutMerge returns into how many parts each of some items is split whose places are merged at a cost each.
func CutMerge(items, places, threads, cost int) int {
	return max(1, min(places, threads/items, places*cost/CutLeastMerge))
}

// CutRows returns the rows [first, end) of x, in dst.
func CutRows(dst, x *kernel.Rows, first, end int) *kernel.Rows {
	*dst = kernel.Rows{N: end - first, K: x.K, F: x.F[first*x.K : end*x.K]}
	if x.Q != nil {
		b := x.K / kernel.QBlock
		dst.Q, dst.D, dst.Sum = x.Q[first*x.K:end*x.K], x.D[first*b:end*b], x.Sum[first*b:end*b]
	}
	return dst
}

// CutEven returns the groups of the items that a chunk makes of some groups, with the last one about as long as the others.
func CutEven(groups, chunk int) int {
	items := (groups + chunk - 1) / chunk
	return (groups + items - 1) / items
}
