package compute

import (
	"fmt"
	"sort"

	"grove/internal/kernel"
)

// Routing is the experts of each row. Between [Exec.Route] and [Exec.MixExperts], buffers have one row for
// each pair of a row and one of its experts, sorted by expert, so that an expert's matrix is read once for all
// of its rows.
type Routing struct {
	first   []int32   // row -> the first of its choices, by rank; one more at the end
	source  []int32   // pair -> row
	weights []float32 // choice -> weight
	pair    []int32   // choice -> pair
	start   []int32   // expert -> first pair; one more at the end
	busy    []int32   // experts with pairs
	chunk   []int32   // of busy experts: groups of outputs of an item of a product
	items   []int32   // of busy experts: the first item; one more at the end

	chosen []int32 // choice -> expert

	scratch Scratch
}

// Route chooses experts for each row by their logits, as c describes, and weighs them. Rank 0 is chosen first. A
// logit that is not finite fails the step.
func (x *Exec) Route(logits Buf, c *Router) *Routing {
	r := &x.routing
	n, experts, used := logits.rows, logits.width, c.ExpertsPerToken
	r.chosen, r.weights, r.first = grow(r.chosen, n*used), grow(r.weights, n*used), grow(r.first, n+1)
	if _, finite := kernel.MaxAbsFinite(logits.f[:n*experts]); !finite {
		// The softmax of the chosen experts would hide it in another.
		x.fail(fmt.Errorf("compute: the logits of a router: %w", ErrNotFinite))
	}
	for i := range n {
		r.first[i+1] = int32((i + 1) * used)
		c.Choose(&r.scratch, r.chosen[i*used:(i+1)*used], r.weights[i*used:(i+1)*used], logits.row(i))
	}
	r.first[0] = 0
	r.sortPairs(experts)
	if experts > 1 { // one expert is no choice: every step reads it
		x.touched += len(r.busy)
	}
	return r
}

// pairs is the number of choices of all rows.
func (r *Routing) pairs() int { return int(r.first[len(r.first)-1]) }

// sortPairs gives each choice its place as a pair, by expert and then by row.
func (r *Routing) sortPairs(experts int) {
	n := r.pairs()
	r.pair, r.source = grow(r.pair, n), grow(r.source, n)
	r.start, r.busy = grow(r.start, experts+1), r.busy[:0]
	clear(r.start)
	for _, e := range r.chosen[:n] {
		r.start[e+1]++
	}
	for e := range experts {
		if r.start[e+1] > 0 {
			r.busy = append(r.busy, int32(e))
		}
		r.start[e+1] += r.start[e]
	}
	for row := range len(r.first) - 1 {
		for i := r.first[row]; i < r.first[row+1]; i++ {
			p := &r.start[r.chosen[i]]
			r.pair[i], r.source[*p] = *p, int32(row)
			*p++
		}
	}
	copy(r.start[1:], r.start[:experts])
	r.start[0] = 0
}

// Experts returns each row of a once for each of its experts, in the order of r's pairs.
func (x *Exec) Experts(a Buf, r *Routing) Buf {
	dst := x.alloc(r.pairs(), a.width)
	x.rowTask = rowTask{kind: gatherRows, x: x, dst: dst, a: a, routing: r}
	x.runRows(dst.rows, a.width)
	return dst
}

// WeighExperts multiplies each pair of a by the weight of its expert, in place. [Exec.MixExperts] then weighs by 1.
func (x *Exec) WeighExperts(a Buf, r *Routing) Buf {
	for i, p := range r.pair[:a.rows] {
		kernel.Scale(a.row(int(p)), r.weights[i])
		r.weights[i] = 1
	}
	return x.changed(a)
}

// LinearExperts returns the product of each pair with its expert's matrix, plus the expert's bias where there
// is one (N1). p.Bias is empty or [experts, outputs].
func (x *Exec) LinearExperts(p Projection, a Buf, r *Routing) Buf {
	m := p.Matrix
	if a.width != m.In() {
		panic("compute: a product of rows and a matrix of different widths")
	}
	dst := x.alloc(a.rows, m.Out())
	t := &x.expertTask
	*t = expertTask{x: x, m: m, bias: p.Bias.F, dst: dst, r: r}
	if m.Format.Quantized {
		t.rows = *x.quantize(a)
	} else {
		t.rows = kernel.Rows{N: a.rows, K: a.width, F: a.f}
	}
	t.cut(x.pool.Threads())
	x.pool.Run(int(r.items[len(r.busy)]), t)
	if x.adapt.Touch(m) {
		x.adapt.Experts(m, a.plain(), dst.plain(), r.source[:a.rows], r.busy, r.start, x.pool)
	}
	return dst
}

// expertTask is a product with several experts; an item is some groups of outputs of one of them.
type expertTask struct {
	x    *Exec
	m    *Matrix
	bias []float32
	rows kernel.Rows
	dst  Buf
	r    *Routing
}

// cut cuts the groups of all busy experts as those of one product with their mean number of rows, in items of half the length, for
// they are less equal. An expert of more rows has fewer groups to an item.
func (t *expertTask) cut(threads int) {
	r, groups, work := t.r, t.m.Groups(), CutWorkOf(t.m)
	busy := max(1, len(r.busy))
	mean := max(1, t.dst.rows/busy)
	c := CutOf(busy*groups, mean, threads, work)
	time := c.Chunk * work.Of(mean) / c.Bands / 2
	r.chunk, r.items = grow(r.chunk, busy), grow(r.items, busy+1)
	r.items[0] = 0
	for i, e := range r.busy {
		cost := work.Of(int(r.start[e+1] - r.start[e]))
		chunk := min(max(time/cost, (CutLeastItem+cost-1)/cost), groups)
		chunk = CutEven(groups, chunk)
		r.chunk[i], r.items[i+1] = int32(chunk), r.items[i]+int32((groups+chunk-1)/chunk)
	}
}

// stretch returns the expert of an item, and the groups [first, end) of its outputs.
func (t *expertTask) stretch(item int) (expert, first, end int) {
	r := t.r
	i := sort.Search(len(r.busy)-1, func(i int) bool { return int(r.items[i+1]) > item })
	chunk := int(r.chunk[i])
	first = (item - int(r.items[i])) * chunk
	return int(r.busy[i]), first, min(first+chunk, t.m.Groups())
}

// Bytes implements [par.Reader].
func (t *expertTask) Bytes(item int) int {
	_, first, end := t.stretch(item)
	return (end - first) * t.m.GroupBytes()
}

// Do implements [par.Task].
func (t *expertTask) Do(worker, item int) {
	m := t.m
	e, first, end := t.stretch(item)
	lo, hi := int(t.r.start[e]), int(t.r.start[e+1])
	m.Multiply(t.dst.f[lo*m.Out():], t.dst.width, e, first, end, CutRows(&t.x.bands[worker], &t.rows, lo, hi), &t.x.scratch[worker])
	if t.bias == nil {
		return
	}
	from, to := first*m.Format.Group, min(end*m.Format.Group, m.Out())
	for p := lo; p < hi; p++ {
		kernel.Add(t.dst.row(p)[from:to], t.bias[e*m.Out()+from:e*m.Out()+to])
	}
}

// MixExperts returns for each row the weighted sum of its experts' results, in order of rank.
func (x *Exec) MixExperts(a Buf, r *Routing) Buf {
	dst := x.alloc(len(r.first)-1, a.width)
	clear(dst.f)
	x.addExperts(dst, a, r)
	return dst
}

// addExperts adds the weighted results of its experts to each row of dst, in order of rank.
func (x *Exec) addExperts(dst, a Buf, r *Routing) {
	x.rowTask = rowTask{kind: sumExperts, x: x, dst: dst, a: a, routing: r}
	x.runRows(dst.rows, max(1, a.width*a.rows/max(1, dst.rows)))
}

func (r *Routing) sum(dst []float32, a Buf, i int) {
	for c := r.first[i]; c < r.first[i+1]; c++ {
		kernel.AddScaled(dst, r.weights[c], a.row(int(r.pair[c])))
	}
}
