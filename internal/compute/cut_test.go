package compute

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"grove/internal/compute/weight"

	"grove/internal/kernel"
	"grove/internal/kernel/matmul"
	"grove/internal/kv"
	"grove/internal/par"
	"grove/internal/weights/tensor"
)

var update = flag.Bool("update", false, "write testdata/cuts.txt")

// hyperparameters are those that decide how a step is cut.
type hyperparameters struct {
	name                     string
	layers, width, ffn       int
	heads, kvHeads, size     int
	vocabulary               int
	experts, used, expertFFN int
	typ                      tensor.Type
}

// shapes are models of usual sizes.
var shapes = []hyperparameters{
	{name: "0.5B", layers: 24, width: 896, ffn: 4864, heads: 14, kvHeads: 2, size: 64, vocabulary: 151936, typ: tensor.Q8_0},
	{name: "1B", layers: 16, width: 2048, ffn: 8192, heads: 32, kvHeads: 8, size: 64, vocabulary: 128256, typ: tensor.Q8_0},
	{name: "3B", layers: 28, width: 3072, ffn: 8192, heads: 24, kvHeads: 8, size: 128, vocabulary: 128256, typ: tensor.Q4_K},
	{name: "8B", layers: 32, width: 4096, ffn: 14336, heads: 32, kvHeads: 8, size: 128, vocabulary: 128256, typ: tensor.Q4_K},
	{name: "30B-A3B", layers: 48, width: 2048, heads: 32, kvHeads: 4, size: 128, vocabulary: 151936, experts: 128, used: 8, expertFFN: 768, typ: tensor.Q4_K},
	{name: "70B", layers: 80, width: 8192, ffn: 28672, heads: 64, kvHeads: 8, size: 128, vocabulary: 128256, typ: tensor.Q4_K},
}

// job is the items of a task: their times by the model of package compute, in nanoseconds, and the bytes that they read.
type job struct {
	name         string
	times, bytes []int
	atom         int // the time of the least item that there can be
}

func (h hyperparameters) matrix(experts, out, k int) *Matrix {
	f := formatOf(h.typ)
	return weight.Shape(f, experts, out, k)
}

// atom returns the time of the least item of units of a cost.
func atom(cost int) int { return (CutLeastItem + cost - 1) / cost * cost }

// linear returns the items of the product of some rows with some matrices.
func (h hyperparameters) linear(x *Exec, name string, rows, k int, outs ...int) job {
	var t linearTask
	t.begin(x, Buf{rows: rows, width: k, id: x.quantizedID})
	for _, out := range outs {
		t.add(Projection{Matrix: h.matrix(1, out, k)}, Buf{}, nil)
	}
	t.plan()
	one := h.matrix(1, 16, k)
	j := job{name: name, atom: atom(CutWorkOf(one).Of(min(rows, max(LeastBand, rows/CutMaxBands))))}
	for i := range t.cut.Items() {
		first, end := t.cut.Band(i%t.cut.Bands, rows)
		from := i / t.cut.Bands * t.cut.Chunk
		groups := min(from+t.cut.Chunk, t.groups) - from
		j.times = append(j.times, groups*CutWorkOf(one).Of(end-first))
		j.bytes = append(j.bytes, t.Bytes(i))
	}
	return j
}

// mixture returns the items of the product of some rows with their experts, which a random router chose.
func (h hyperparameters) mixture(x *Exec, name string, rows, out, k int) job {
	r := &Routing{first: []int32{0}}
	rng := rand.New(rand.NewPCG(uint64(rows), 1))
	r.chosen, r.weights = make([]int32, 0, rows*h.used), make([]float32, rows*h.used)
	for range rows {
		for _, e := range rng.Perm(h.experts)[:h.used] {
			r.chosen = append(r.chosen, int32(e))
		}
		r.first = append(r.first, int32(len(r.chosen)))
	}
	r.sortPairs(h.experts)
	t := expertTask{x: x, m: h.matrix(h.experts, out, k), r: r, dst: Buf{rows: rows * h.used}}
	t.cut(x.pool.Threads())
	j := job{name: name}
	for i, e := range r.busy {
		cost := CutWorkOf(t.m).Of(int(r.start[e+1] - r.start[e]))
		j.atom = max(j.atom, atom(cost))
		for item := r.items[i]; item < r.items[i+1]; item++ {
			first := int(item-r.items[i]) * int(r.chunk[i])
			groups := min(first+int(r.chunk[i]), t.m.Groups()) - first
			j.times = append(j.times, groups*cost)
			j.bytes = append(j.bytes, t.Bytes(int(item)))
		}
	}
	return j
}

// attention returns the items of the attention of some rows of one text behind so many tokens.
func (h hyperparameters) attention(x *Exec, name string, rows, depth int) job {
	tiles := (rows + tileRows - 1) / tileRows
	t := attendTask{
		x: x, size: kernel.HeadSize{Key: h.size, Value: h.size}, blocks: (depth + rows + kv.PageTokens - 1) / kv.PageTokens,
		places: min(rows, tileRows) * h.heads / h.kvHeads,
	}
	items := tiles * h.kvHeads
	t.uncut, t.segments = CutAttention(items, t.blocks, x.pool.Threads(), t.blockCost())
	j := job{name: name, atom: atom(t.blockCost())}
	for i := range t.uncut + (items-t.uncut)*t.segments {
		blocks := t.blocks
		if i >= t.uncut {
			s := (i - t.uncut) % t.segments
			blocks = t.blocks*(s+1)/t.segments - t.blocks*s/t.segments
		}
		j.times = append(j.times, t.blockCost()*blocks)
		j.bytes = append(j.bytes, blocks*kv.PageTokens*2*2*h.size)
	}
	return j
}

// layer returns the tasks of a layer that are shared out whatever the number of rows.
func (h hyperparameters) layer(x *Exec, rows int) []job {
	jobs := []job{
		h.linear(x, "queries, keys, values", rows, h.width, h.heads*h.size, h.kvHeads*h.size, h.kvHeads*h.size),
		h.attention(x, "attention at 4096", rows, 4096),
		h.linear(x, "attention output", rows, h.heads*h.size, h.width),
	}
	if h.experts > 0 {
		return append(jobs, h.mixture(x, "gate", rows, h.expertFFN, h.width), h.mixture(x, "up", rows, h.expertFFN, h.width),
			h.mixture(x, "down", rows, h.width, h.expertFFN))
	}
	return append(jobs, h.linear(x, "gate, up", rows, h.width, h.ffn, h.ffn), h.linear(x, "down", rows, h.ffn, h.width))
}

// share deals the items out as the pool does, the next one to the thread that is first free, and returns the time and the
// bytes of the thread that has most of them, and the sums of all.
func (j job) share(threads int) (slowest, most, time, bytes int) {
	at, read := make([]int, threads), make([]int, threads)
	for i, t := range j.times {
		w := slices.Index(at, slices.Min(at))
		at[w], read[w] = at[w]+t, read[w]+j.bytes[i]
		time, bytes = time+t, bytes+j.bytes[i]
	}
	return slices.Max(at), slices.Max(read), time, bytes
}

// TestCuts shares the products and the attention of usual models out among 1 to 64 threads. The slowest thread has at most an eighth
// more than the mean, or less than the least item more. Items are long enough that claiming them, some 0.1 us, does not count.
// testdata/cuts.txt has the sums.
func TestCuts(t *testing.T) {
	var table bytes.Buffer
	threads := []int{1, 2, 4, 8, 16, 32, 64}
	fmt.Fprintf(&table, "The slowest thread's time over the mean, of the products and the attention of a layer and of the head, with a cache of 4096 tokens;\nand of 1 row the MB that a thread reads in a step. By rows and threads.\n\n%-12s", "")
	for _, n := range threads {
		fmt.Fprintf(&table, "%8d", n)
	}
	table.WriteByte('\n')
	for _, h := range shapes {
		for _, rows := range []int{1, 8, 64, 512} {
			fmt.Fprintf(&table, "%-8s%4d", h.name, rows)
			read := make([]float64, len(threads))
			for at, n := range threads {
				x := &Exec{pool: par.New(n), quantizedID: 1}
				defer x.pool.Close()
				slow, mean := 0.0, 0.0
				tally := func(j job, times int) {
					j.check(t, h.name, rows, n)
					slowest, _, time, bytes := j.share(n)
					slow, mean = slow+float64(times*slowest), mean+float64(times*time)/float64(n)
					read[at] += float64(times*bytes) / float64(n) / 1e6
				}
				for _, j := range h.layer(x, rows) {
					tally(j, h.layers)
				}
				tally(h.linear(x, "head", rows, h.width, h.vocabulary), 1)
				fmt.Fprintf(&table, "%8.3f", slow/mean)
			}
			table.WriteByte('\n')
			if rows == 1 {
				fmt.Fprintf(&table, "%-12s", "          MB")
				for _, mb := range read {
					fmt.Fprintf(&table, "%8.1f", mb)
				}
				table.WriteByte('\n')
			}
		}
	}
	const path = "testdata/cuts.txt"
	if *update {
		if err := os.WriteFile(path, table.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), table.String()); diff != "" {
		t.Errorf("the cuts have changed; -update writes them:\n%s", diff)
	}
}

// check compares the items with what the cut promises.
func (j job) check(t *testing.T, model string, rows, threads int) {
	t.Helper()
	slowest, _, time, _ := j.share(threads)
	if mean := time / threads; slowest > max(mean*9/8, mean+j.atom) {
		t.Errorf("%s, %d rows, %d threads: %s: %d items: the slowest thread has %d ns, the mean is %d ns", model, rows, threads, j.name, len(j.times), slowest, mean)
	}
	if mean := time / len(j.times); mean < CutLeastItem && len(j.times) > 1 {
		t.Errorf("%s, %d rows, %d threads: %s: %d items of %d ns; the least is %d ns", model, rows, threads, j.name, len(j.times), mean, CutLeastItem)
	}
}

// TestCutsKeepBits multiplies rows by several matrices on many threads, whole, some groups of them, and by experts, and
// compares the products with those of one thread.
func TestCutsKeepBits(t *testing.T) {
	const k, outs = 256, 16*40 + 5
	rng := rand.New(rand.NewPCG(1, 2))
	floats := func(n int) []float32 {
		f := make([]float32, n)
		for i := range f {
			f[i] = rng.Float32() - 0.5
		}
		return f
	}
	view := func(typ tensor.Type, shape ...int) tensor.View {
		n := 1
		for _, d := range shape {
			n *= d
		}
		bytes, _ := typ.RowBytes(n)
		v := tensor.View{Name: "w", Type: typ, Shape: shape, Data: make([]byte, bytes)}
		if err := tensor.Pack(typ, v.Data, floats(n)); err != nil {
			t.Fatal(err)
		}
		return v
	}
	views := []tensor.View{view(tensor.Q8_0, outs, k), view(tensor.Q4_K, 16*9, k), view(tensor.F16, 7, k)}
	stack, bias := view(tensor.Q4_K, 6, outs, k), Vector{F: floats(outs)}
	subset := []int32{0, 1, 2, 5, 7, 8, 20, 21, 22, 23, 24, 25, 39, 40}
	banded := false
	for _, rows := range []int{1, 9, 300} {
		input := floats(rows * k)
		var want [][]float32
		for _, threads := range []int{1, 2, 3, 16, 64} {
			for _, keep := range []bool{false, true} {
				pool := par.New(threads)
				x := &Exec{pool: pool, scratch: make([]matmul.Scratch, threads), bands: make([]kernel.Rows, threads)}
				w := weight.New(pool, nil)
				w.Keep = keep
				matrix := func(v tensor.View) *Matrix {
					m, err := w.Matrix(v)
					if err != nil {
						t.Fatal(err)
					}
					return m
				}
				a := x.changed(Buf{f: slices.Clone(input), rows: rows, width: k})
				var got [][]float32
				for _, b := range x.Linears([]Projection{{matrix(views[0]), bias}, {Matrix: matrix(views[1])}, {Matrix: matrix(views[2])}}, a) {
					got = append(got, b.f)
				}
				banded = banded || x.linearTask.cut.Bands > 1
				some := x.alloc(rows, outs)
				clear(some.f)
				x.linearTask.begin(x, a)
				x.linearTask.add(Projection{Matrix: matrix(views[0])}, some, subset)
				x.linearTask.run()
				r := &Routing{start: []int32{0, 0, 1, 1, int32(rows), int32(rows), int32(rows)}, busy: []int32{1, 3}}
				if rows == 1 {
					r.busy = r.busy[:1]
				}
				got = append(got, some.f, x.LinearExperts(Projection{Matrix: matrix(stack)}, a, r).f)
				pool.Close()
				if want == nil {
					want = got
				}
				for i := range got {
					if !slices.Equal(got[i], want[i]) {
						t.Errorf("%d rows, %d threads, keep %v: product %d is not that of one thread", rows, threads, keep, i)
					}
				}
			}
		}
	}
	if !banded {
		t.Error("no product has bands of rows")
	}
}

func formatOf(typ tensor.Type) *matmul.Format {
	f, _ := matmul.FormatOf(typ)
	return f
}

// TestSplitMerge: what is merged is split for threads that would have nothing to do, into parts that are worth it.
func TestSplitMerge(t *testing.T) {
	for _, tt := range []struct{ items, places, threads, cost, want int }{
		{5, 4, 32, 1000, 4},   // a part for each place
		{5, 32, 32, 1000, 6},  // as many as the threads share
		{5, 4, 32, 300, 1},    // too short
		{5, 4, 32, 600, 2},    // parts of a microsecond
		{64, 32, 32, 1000, 1}, // enough for all threads
		{2, 28, 2, 9000, 1},
	} {
		if got := CutMerge(tt.items, tt.places, tt.threads, tt.cost); got != tt.want {
			t.Errorf("%d items of %d places of %d ns, %d threads: %d parts, want %d", tt.items, tt.places, tt.cost, tt.threads, got, tt.want)
		}
	}
}
