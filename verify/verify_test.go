package verify

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"grove/text/token"
)

// lawOf makes a law of dense probabilities.
func lawOf(p ...float64) (l Distribution) {
	for id, v := range p {
		if v > 0 {
			l.IDs, l.P = append(l.IDs, token.ID(id)), append(l.P, float32(v))
		}
	}
	return l
}

var (
	toyP = []float64{0.6, 0.3, 0.1}
	toyQ = []float64{0.2, 0.5, 0.3}
)

// near fails where got is not want to within float32's rounding of the laws.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6 {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// drawn calls visit with every order of k tokens drawn from q without replacement, and its probability.
func drawn(q []float64, k int, visit func(ids []token.ID, p float64)) {
	var pick func(ids []token.ID, left, p float64)
	pick = func(ids []token.ID, left, p float64) {
		if len(ids) == k {
			visit(ids, p)
			return
		}
		for id, w := range q {
			if w > 0 && !slices.Contains(ids, token.ID(id)) {
				pick(append(slices.Clone(ids), token.ID(id)), left-w, p*w/left)
			}
		}
	}
	pick(nil, 1, 1)
}

// TestRejectToy holds recursive rejection to the acceptance of the toy case for 1, 2, 3 guesses, and to the
// target's distribution, exactly: the chance that a child is accepted is the ratio that its test compares with.
func TestRejectToy(t *testing.T) {
	for k, want := range map[int]float64{1: 3.0 / 5, 2: 129.0 / 175, 3: 1} {
		accepted := 0.0
		out := make([]float64, len(toyP))
		drawn(toyQ, k, func(ids []token.ID, chance float64) {
			followReject(slices.Clone(toyP), toyQ, ids, func(id int, p float64, ok bool) {
				out[id] += chance * p
				if ok {
					accepted += chance * p
				}
			})
		})
		near(t, fmt.Sprintf("acceptance of %d guesses", k), accepted, want)
		for id, p := range out {
			near(t, fmt.Sprintf("probability of token %d with %d guesses", id, k), p, toyP[id])
		}
	}
}

// followReject visits every outcome of Reject with its exact probability: u is probed for the border of each test.
func followReject(p, q []float64, ids []token.ID, visit func(id int, p float64, accepted bool)) {
	var r Rules
	reached := 1.0
	for k := range ids {
		// The chance that child k is accepted once the first k are refused: the border of its test.
		border := 0.0
		lo, hi := 0.0, 1.0
		try := func(u float64) int {
			return r.Reject(slices.Clone(p), lawOf(q...), ids, func(i int) float64 {
				if i < k {
					return 1 - 1e-16 // refused, unless certain
				}
				if i == k {
					return u
				}
				return 1 - 1e-16
			})
		}
		switch {
		case try(0) != k:
			border = 0
		case try(1-1e-16) == k:
			border = 1
		default:
			for range 60 {
				if mid := (lo + hi) / 2; try(mid) == k {
					lo = mid
				} else {
					hi = mid
				}
			}
			border = lo
		}
		visit(int(ids[k]), reached*border, true)
		reached *= 1 - border
	}
	if reached > 0 {
		rest := slices.Clone(p)
		if r.Reject(rest, lawOf(q...), ids, func(int) float64 { return 1 - 1e-16 }) < 0 {
			for id, v := range rest {
				visit(id, reached*v, false)
			}
		}
	}
}

// TestRejectRandom recovers the target's distribution from random tables, by exact enumeration.
func TestRejectRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 60 {
		n := 2 + r.IntN(3)
		p, q := randomLaw(r, n), randomLaw(r, n)
		positive := 0
		for _, v := range q {
			if v > 0 {
				positive++
			}
		}
		out := make([]float64, n)
		drawn(q, 1+r.IntN(positive), func(ids []token.ID, chance float64) {
			followReject(slices.Clone(p), q, ids, func(id int, v float64, _ bool) { out[id] += chance * v })
		})
		for id := range p {
			near(t, fmt.Sprintf("p %v, q %v: token %d", p, q, id), out[id], p[id])
		}
	}
}

// randomLaw returns a distribution of float32 values, some of them zero.
func randomLaw(r *rand.Rand, n int) []float64 {
	for {
		p, sum := make([]float64, n), 0.0
		for i := range p {
			if r.IntN(4) > 0 {
				p[i] = float64(1 + r.IntN(64))
				sum += p[i]
			}
		}
		if sum == 0 {
			continue
		}
		for i := range p {
			p[i] /= sum
		}
		return p
	}
}

// TestBlockToy holds block verification to the expected tokens of the toy case.
func TestBlockToy(t *testing.T) {
	p, q := []float64{1.0 / 3, 2.0 / 3}, []float64{2.0 / 3, 1.0 / 3}
	for length, want := range map[int]float64{1: 5.0 / 3, 2: 20.0 / 9, 3: 8.0 / 3} {
		expected := 0.0
		chains(q, length, func(chain []token.ID, chance float64) {
			followBlock(chain, func(int) []float64 { return slices.Clone(p) }, func(int) []float64 { return q }, func(n int, v float64, _ []float64) {
				expected += chance * v * float64(n+1)
			})
		})
		near(t, fmt.Sprintf("tokens a round with chains of %d", length), expected, want)
	}
}

// chains visits every chain of a length drawn from a context-free law.
func chains(q []float64, length int, visit func(chain []token.ID, p float64)) {
	var grow func(chain []token.ID, p float64)
	grow = func(chain []token.ID, p float64) {
		if len(chain) == length {
			visit(chain, p)
			return
		}
		for id, w := range q {
			if w > 0 {
				grow(append(slices.Clone(chain), token.ID(id)), p*w)
			}
		}
	}
	grow(nil, 1)
}

// followBlock visits every number of tokens that Block can accept, with its exact probability and what it leaves.
func followBlock(chain []token.ID, p func(i int) []float64, q func(i int) []float64, visit func(n int, chance float64, rest []float64)) {
	var r Rules
	laws := make([]Distribution, len(chain))
	for i := range laws {
		laws[i] = lawOf(q(i)...)
	}
	reached := 1.0
	for n := len(chain); n >= 0; n-- {
		run := func(u float64) (int, []float64) {
			rows := make([][]float64, len(chain)+1)
			for i := range rows {
				rows[i] = p(i)
			}
			got := r.Block(chain, func(i int) []float64 { return rows[i] }, laws, func(i int) float64 {
				if i == n-1 {
					return u
				}
				return 1 // the others fail, whatever their chance
			})
			return got, rows[got]
		}
		border := 1.0
		if n > 0 {
			lo, hi := 0.0, 1.0
			if got, _ := run(0); got != n {
				hi = 0
			}
			for range 60 {
				if mid := (lo + hi) / 2; hi > 0 {
					if got, _ := run(mid); got == n {
						lo = mid
					} else {
						hi = mid
					}
				}
			}
			border = lo
			if hi == 1 {
				border = 1
			}
		}
		if border > 0 {
			_, rest := run(0)
			visit(n, reached*border, rest)
		}
		reached *= 1 - border
	}
}

// TestBlockRandom recovers the target's law of whole texts from random tables that look at the token before.
func TestBlockRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 40 {
		const v = 3
		length := 1 + r.IntN(3)
		var p, q [v + 1][]float64 // by the token before; the last is the beginning
		for i := range p {
			p[i], q[i] = randomLaw(r, v), randomLaw(r, v)
		}
		before := func(chain []token.ID, i int) int {
			if i == 0 {
				return v
			}
			return int(chain[i-1])
		}
		out := map[string]float64{} // of texts of length+1 tokens
		var extend func(text []token.ID, chance float64)
		extend = func(text []token.ID, chance float64) { // by the target alone
			if len(text) == length+1 {
				out[fmt.Sprint(text)] += chance
				return
			}
			for id, w := range p[before(text, len(text))] {
				if w > 0 {
					extend(append(slices.Clone(text), token.ID(id)), chance*w)
				}
			}
		}
		var drafts func(chain []token.ID, chance float64)
		drafts = func(chain []token.ID, chance float64) {
			if len(chain) < length {
				for id, w := range q[before(chain, len(chain))] {
					if w > 0 {
						drafts(append(slices.Clone(chain), token.ID(id)), chance*w)
					}
				}
				return
			}
			followBlock(chain, func(i int) []float64 { return slices.Clone(p[before(chain, i)]) },
				func(i int) []float64 { return q[before(chain, i)] },
				func(n int, c float64, rest []float64) {
					for id, w := range rest {
						if w > 0 {
							extend(append(slices.Clone(chain[:n]), token.ID(id)), chance*c*w)
						}
					}
				})
		}
		drafts(nil, 1)
		got := out
		out = map[string]float64{}
		extend(nil, 1)
		for text, want := range out {
			near(t, text, got[text], want)
		}
	}
}

// TestPlantedBugs shows that the checks above fail for a rule that is wrong: one that draws what follows a refusal
// from the target instead of the residual.
func TestPlantedBugs(t *testing.T) {
	out := make([]float64, len(toyP))
	drawn(toyQ, 1, func(ids []token.ID, chance float64) {
		followReject(slices.Clone(toyP), toyQ, ids, func(id int, p float64, ok bool) {
			if ok {
				out[id] += chance * p
				return
			}
		})
		refused := 0.0
		followReject(slices.Clone(toyP), toyQ, ids, func(_ int, p float64, ok bool) {
			if !ok {
				refused += p
			}
		})
		for id := range out {
			out[id] += chance * refused * toyP[id]
		}
	})
	if math.Abs(out[0]-toyP[0]) < 0.01 {
		t.Errorf("drawing from the target after a refusal gives %v: the check cannot fail", out)
	}
}

// TestRejectLaw draws 200,000 rounds with random numbers and compares with the target by chi-square.
func TestRejectLaw(t *testing.T) {
	const rounds = 200000
	r := rand.New(rand.NewPCG(3, 3))
	p, q := []float64{0.4, 0.3, 0.2, 0.1}, []float64{0.1, 0.2, 0.3, 0.4}
	var count [4]int
	var rules Rules
	rest := make([]float64, 4)
	for range rounds {
		ids := sampleWithout(r, q, 2)
		copy(rest, p)
		if k := rules.Reject(rest, lawOf(q...), ids, func(int) float64 { return r.Float64() }); k >= 0 {
			count[ids[k]]++
		} else {
			count[sampleOne(r, rest)]++
		}
	}
	chi := 0.0
	for id, c := range count {
		want := p[id] * rounds
		chi += (float64(c) - want) * (float64(c) - want) / want
	}
	if chi > 16.27 { // 3 degrees of freedom, 0.1 %
		t.Errorf("counts %v: chi-square %.1f", count, chi)
	}
}

func sampleWithout(r *rand.Rand, q []float64, k int) (ids []token.ID) {
	q = slices.Clone(q)
	for range k {
		id := sampleOne(r, q)
		ids = append(ids, token.ID(id))
		q[id] = 0
		normalise(q)
	}
	return ids
}

func sampleOne(r *rand.Rand, p []float64) int {
	u := r.Float64()
	for id, v := range p {
		if u -= v; u < 0 {
			return id
		}
	}
	return slices.IndexFunc(p, func(v float64) bool { return v > 0 })
}

func TestRejectEdges(t *testing.T) {
	var r Rules
	always := func(int) float64 { return 1 - 1e-16 }
	never := func(int) float64 { return 0 }
	for _, c := range []struct {
		name     string
		p, q     []float64
		children []token.ID
		u        func(int) float64
		want     int
	}{
		{"no guesses", toyP, toyQ, nil, never, -1},
		{"equal laws accept", toyQ, toyQ, []token.ID{2}, always, 0},
		{"disjoint laws refuse", []float64{1, 0}, []float64{0, 1}, []token.ID{1}, never, -1},
		{"a token that the target never draws", []float64{0.5, 0.5, 0}, toyQ, []token.ID{2}, never, -1},
		{"not drawn from the law", toyP, []float64{1, 0, 0}, []token.ID{1}, never, -1},
		{"all of the law tried", toyP, []float64{0, 1, 0}, []token.ID{1, 1}, always, -1},
		{"greedy, right", []float64{0, 1}, []float64{0, 1}, []token.ID{1}, always, 0},
	} {
		p := slices.Clone(c.p)
		if got := r.Reject(p, lawOf(c.q...), c.children, c.u); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
		sum := 0.0
		for _, v := range p {
			sum += v
		}
		near(t, c.name+": what is left", sum, 1)
	}
}

func TestTypical(t *testing.T) {
	p := []float64{0.6, 0.3, 0.1}
	near(t, "threshold", DefaultTypicality.Threshold(p), 0.09)
	if got := (Typicality{Floor: 0.3, Share: 0.09}).Threshold(p); math.Abs(got-0.0367) > 5e-5 {
		t.Errorf("with the values swapped: %v, want 0.0367", got)
	}
	one := []float64{0, 1, 0}
	DefaultTypicality.Truncate(one)
	if !slices.Equal(one, []float64{0, 1, 0}) {
		t.Errorf("one token's law becomes %v", one)
	}
	wide := []float64{0.85, 0.1, 0.05}
	DefaultTypicality.Truncate(wide)
	near(t, "the rest of a truncated law", wide[0], 0.85/0.95)
}

func TestMatch(t *testing.T) {
	tree := map[int]map[token.ID]int{Root: {5: 0, 6: 1}, 1: {7: 2}}
	target := map[int]token.ID{Root: 6, 1: 7, 2: 8}
	var got []token.ID
	err := Match(func(node int) (token.ID, error) {
		got = append(got, target[node])
		return target[node], nil
	}, func(node int, id token.ID) (int, bool) {
		c, ok := tree[node][id]
		return c, ok
	})
	if err != nil || !slices.Equal(got, []token.ID{6, 7, 8}) {
		t.Errorf("%v, %v", got, err)
	}
	fault := errors.New("no")
	if err := Match(func(int) (token.ID, error) { return 0, fault }, nil); err != fault {
		t.Errorf("%v, want the fault of the draw", err)
	}
}
