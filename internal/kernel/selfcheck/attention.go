package selfcheck

import (
	"fmt"

	"grove/internal/kernel"
)

// wide is a number of queries that makes tiles of many rows, of every size.
const wide = 19

// headOf returns the values of a head: two vectors of 16, or two blocks.
func headOf(f *kernel.CacheFormat) int { return max(32, 2*f.Multiple) }

// queries are the numbers of queries that make different tiles.
var queries = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, wide}

// attention returns the checks of a type of cache.
func attention(f *kernel.CacheFormat) []check {
	name := func(what string) string { return fmt.Sprintf("%s of a %v cache", what, f.Type) }
	return []check{
		single(name("Put"), func(d *data, dst []float32) []float32 { return put(f, d, dst) }),
		{name("Scores"), "query", queries, func(d *data) run { return scores(f, d) }},
		{name("Weigh"), "query", queries, func(d *data) run { return weigh(f, d) }},
	}
}

// put writes a slot, of wild values too, and copies it.
func put(f *kernel.CacheFormat, d *data, dst []float32) []float32 {
	const slot, copied = 21, 38
	head := headOf(f)
	size := kernel.HeadSize{Key: head, Value: head}
	keys, values := d.page(f, head)
	dst = append(dst, float32(f.Put(keys, values, slot, size, d.floats[:head], d.floats[300:][:head])))
	dst = append(dst, float32(f.Put(keys, values, copied, size, d.wild(head), d.floats[:head])))
	f.Copy(keys, values, copied, keys, values, slot, size)
	for _, at := range []int{slot, copied} {
		dst = grow(dst, 2*head)
		k, v := dst[len(dst)-2*head:][:head], dst[len(dst)-head:]
		f.Get(keys, values, at, size, k, v)
	}
	return dst
}

// scores multiplies queries by the keys of whole groups of slots, and of parts of groups.
func scores(f *kernel.CacheFormat, d *data) run {
	head := headOf(f)
	keys, values := d.page(f, head)
	return func(n int, dst []float32) []float32 {
		q := kernel.Queries{N: n, Size: head, F: d.floats, Q: d.q, D: d.d, Bias: d.bias}
		s := grow(dst, n*kernel.PageSlots)
		f.Scores(s[len(dst):], &q, 0, n, keys, 48, kernel.PageSlots, head, values)
		f.Scores(s[len(dst):], &q, 0, n, keys, 15, 17, head, nil)
		return s
	}
}

// weigh adds the values of some slots, weighted for each query.
func weigh(f *kernel.CacheFormat, d *data) run {
	const lo, hi, at = 8, 17, 3
	head := headOf(f)
	keys, values := d.page(f, head)
	return func(n int, dst []float32) []float32 {
		sums := append(dst, d.floats[:n*head]...)
		f.Weigh(sums[len(dst):], d.floats[1000:], n, values, lo, hi, at, head, keys)
		return sums
	}
}

// merging returns the checks of what attention does between scores and weights, and between blocks.
func merging() []check {
	return []check{
		{"SoftmaxBlocks", "query", queries[:5], func(d *data) run { return softmax(d, 0) }},
		{"SoftmaxBlocks with a softcap", "query", queries[:2], func(d *data) run { return softmax(d, 20) }},
		{"Attended.Merge", "query", queries, merge},
	}
}

func softmax(d *data, softcap float32) run {
	return func(n int, dst []float32) []float32 {
		s := d.masked(n * kernel.PageSlots)
		most, sum := make([]float32, n), make([]float32, n)
		kernel.SoftmaxBlocks(s, 0.7, softcap, most, sum, d.random)
		for j := range n {
			dst = append(append(dst, most[j], sum[j]), s[j*kernel.PageSlots:][:kernel.PageSlots]...)
		}
		return dst
	}
}

func merge(d *data) run {
	const head = 48
	part := func(from, n int) kernel.Attended {
		x := append([]float32(nil), d.floats[from:][:200+n*head]...)
		a := kernel.Attended{Max: x[:n], Sum: x[100:][:n], Out: x[200:]}
		for i, v := range a.Sum {
			a.Sum[i] = 1 + v*v
		}
		return a
	}
	return func(n int, dst []float32) []float32 {
		a := part(0, n)
		a.Merge(part(2000, n))
		for j := range n {
			dst = append(append(dst, a.Max[j], a.Sum[j]), a.Out[j*head:][:head]...)
		}
		return dst
	}
}
