package verify

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"testing"

	"grove/internal/text/token"
)

// table is a model: the distributions behind each token, and as its last row the one that begins a text.
type table [][]float64

// steady returns a table of one distribution, whatever is before.
func steady(p ...float64) table { return slices.Repeat(table{p}, len(p)+1) }

// behind returns the distribution behind a text.
func (t table) behind(text []token.ID) []float64 {
	if len(text) == 0 {
		return t[len(t)-1]
	}
	return t[text[len(text)-1]]
}

// over makes a distribution of dense probabilities.
func over(p []float64) (d Distribution) {
	for id, v := range p {
		if v > 0 {
			d.IDs, d.P = append(d.IDs, token.ID(id)), append(d.P, float32(v))
		}
	}
	return d
}

// draft is a node of a toy's tree.
type draft struct {
	parent  int
	id      token.ID
	samples uint64
}

var (
	errRow    = errors.New("the row gives no distribution")
	errChoice = errors.New("the script ends before a draw")
)

// toy is a round of a table model. What is random comes from a script: the value of each number, and the token of
// each draw, in the order in which the rule asks.
type toy struct {
	p      table
	q      []Distribution // by the token before, as in a table; nil: drafts are not draws
	drafts []draft
	lost   func(y *toy, node int) bool // drafts that are not run; nil: all are
	greedy bool                        // draws are the likeliest tokens
	hide   bool                        // lost drafts are no part of the tree
	fault  token.ID                    // the rows of this token give an error

	script []float64
	later  float64 // numbers behind the script
	asked  int     // numbers and draws that were asked
	keys   [][2]int
	probs  []int
	misuse string // what the rule must not do
	buffer []float64
	logits []float32
	end    int       // the node of Pick
	left   []float64 // the distribution that Pick got
	choice []float64 // the distribution of the draw that the script does not hold
}

func newToy(p, q table, drafts []draft) *toy {
	y := &toy{p: p, drafts: drafts, fault: token.None, buffer: make([]float64, len(p[0])), later: math.Nextafter(1, 0)}
	for _, row := range q {
		y.q = append(y.q, over(row))
	}
	return y
}

func (y *toy) reset() {
	y.asked, y.keys, y.probs, y.left, y.end = 0, y.keys[:0], y.probs[:0], y.left[:0], Root
}

func (y *toy) row(node int) int {
	if node == Root {
		return len(y.p) - 1
	}
	return int(y.drafts[node].id)
}

func (y *toy) depth(node int) (n int) {
	for ; node != Root; node = y.drafts[node].parent {
		n++
	}
	return n
}

func (y *toy) mustRun(what string, node int) {
	if !y.Ran(node) {
		y.misuse = fmt.Sprintf("%s of draft %d, which was not run", what, node)
	}
}

func (y *toy) Children(dst []int, node int) []int {
	y.mustRun("children", node)
	for i, d := range y.drafts {
		if d.parent == node && !(y.hide && !y.Ran(i)) {
			dst = append(dst, i)
		}
	}
	return dst
}

func (y *toy) Token(node int) token.ID { return y.drafts[node].id }

func (y *toy) Ran(node int) bool {
	for ; node != Root; node = y.drafts[node].parent {
		if y.lost != nil && y.lost(y, node) {
			return false
		}
	}
	return true
}

func (y *toy) Samples(node int) uint64 { return y.drafts[node].samples }

func (y *toy) DraftDistribution(node int) Distribution {
	if y.q == nil {
		return Distribution{}
	}
	return y.q[y.row(node)]
}

func (y *toy) Draw(node int) (token.ID, error) {
	y.mustRun("a draw", node)
	if node != Root && y.drafts[node].id == y.fault || node == Root && y.fault == faultAtRoot {
		return token.None, errRow
	}
	y.asked++
	if y.greedy {
		p := y.p[y.row(node)]
		return token.ID(slices.Index(p, slices.Max(p))), nil
	}
	if y.asked > len(y.script) {
		y.choice = y.p[y.row(node)]
		return token.None, errChoice
	}
	return token.ID(y.script[y.asked-1]), nil
}

func (y *toy) Probs(node int) ([]float64, error) {
	y.mustRun("probabilities", node)
	if slices.Contains(y.probs, node) {
		y.misuse = fmt.Sprintf("probabilities of node %d twice", node)
	}
	y.probs = append(y.probs, node)
	if node != Root && y.drafts[node].id == y.fault || node == Root && y.fault == faultAtRoot {
		return nil, errRow
	}
	copy(y.buffer, y.p[y.row(node)])
	return y.buffer, nil
}

// Logits are logarithms of the probabilities.
func (y *toy) Logits(node int) ([]float32, error) {
	y.mustRun("logits", node)
	y.logits = y.logits[:0]
	for _, p := range y.p[y.row(node)] {
		y.logits = append(y.logits, float32(math.Log(p)))
	}
	return y.logits, nil
}

// State is the draft's token and its depth.
func (y *toy) State(node int) []float32 {
	y.mustRun("the state", node)
	return []float32{float32(y.drafts[node].id), float32(y.depth(node))}
}

func (y *toy) Number(node int, use Purpose) float64 {
	y.mustRun("a number", node)
	key := [2]int{node, int(use)}
	if slices.Contains(y.keys, key) || use%NodePurposes != PurposeTest {
		y.misuse = fmt.Sprintf("the number of node and use %v, which is another's", key)
	}
	y.keys = append(y.keys, key)
	y.asked++
	if y.asked > len(y.script) {
		return y.later
	}
	return y.script[y.asked-1]
}

func (y *toy) Pick(node int, p []float64) token.ID {
	y.mustRun("a pick", node)
	y.end, y.left = node, append(y.left[:0], p...)
	return token.ID(slices.IndexFunc(p, func(v float64) bool { return v > 0 }))
}

// result is what a rule makes of a toy with a script.
type result struct {
	accepted []token.ID
	next     token.ID  // where nothing was picked
	left     []float64 // where a token was picked from it
	err      error
	keys     [][2]int // the numbers that were asked
	asked    int
}

func (r result) same(o result) bool {
	return slices.Equal(r.accepted, o.accepted) && r.next == o.next && r.err == o.err &&
		slices.Equal(r.left, o.left) && slices.Equal(r.keys, o.keys)
}

// run applies a rule to the toy with a script.
func (y *toy) run(t *testing.T, a Acceptor, script []float64) (r result) {
	t.Helper()
	y.reset()
	y.script = script
	var out Outcome
	r.err = a.Accept(y, &out)
	if y.misuse != "" {
		t.Fatalf("the rule asks for %s", y.misuse)
	}
	for _, node := range out.Accepted {
		r.accepted = append(r.accepted, y.Token(node))
	}
	if r.err != nil && out.Next != token.None {
		t.Fatalf("token %d follows beside an error", out.Next)
	}
	if r.next = out.Next; len(y.left) > 0 {
		r.next, r.left = token.None, slices.Clone(y.left)
	}
	r.keys, r.asked = slices.Clone(y.keys), y.asked
	return r
}

// outcomes visits every outcome of a rule with its probability, to within the rounding of float64: it follows each draw by
// each token, and finds the border of each test, which a number passes below it, by bisection.
func (y *toy) outcomes(t *testing.T, a Acceptor, visit func(r result, chance float64)) {
	t.Helper()
	var follow func(script []float64, chance float64)
	follow = func(script []float64, chance float64) {
		with := func(u float64) []float64 { return append(slices.Clone(script), u) }
		r := y.run(t, a, script)
		if errors.Is(r.err, errChoice) {
			for id, p := range y.choice {
				if p > 0 {
					follow(with(float64(id)), chance*p)
				}
			}
			return
		}
		if r.asked <= len(script) {
			visit(r, chance)
			return
		}
		low, high := 1e-300, y.later
		passed := y.run(t, a, with(low))
		if passed.same(y.run(t, a, with(high))) {
			follow(with(high), chance)
			return
		}
		for range 60 {
			middle := (low + high) / 2
			if middle <= low || middle >= high {
				break // they are neighbours
			}
			if y.run(t, a, with(middle)).same(passed) {
				low = middle
			} else {
				high = middle
			}
		}
		follow(with(low/2), chance*high)
		follow(with((1+high)/2), chance*(1-high))
	}
	follow(nil, 1)
}

// drawing visits the ways to draw the children of a node from q, with their probabilities. The node has as many
// draws as its parent gave it.
type drawing func(q []float64, draws int, visit func(kids []draft, chance float64))

// trees visits the trees that are drawn level by level, with their probabilities.
func trees(q table, draws, depth int, children drawing, visit func(drafts []draft, chance float64)) {
	var from func(y *toy, node int, chance float64)
	from = func(y *toy, node int, chance float64) {
		if node == len(y.drafts) {
			visit(y.drafts, chance)
			return
		}
		if y.depth(node) == depth {
			from(y, node+1, chance)
			return
		}
		n := draws
		if node != Root {
			n = bits.OnesCount64(y.drafts[node].samples)
		}
		children(q[y.row(node)], n, func(kids []draft, c float64) {
			all := slices.Clone(y.drafts)
			for _, k := range kids {
				k.parent = node
				all = append(all, k)
			}
			from(&toy{p: q, drafts: all}, node+1, chance*c)
		})
	}
	from(&toy{p: q}, Root, 1)
}

// independent gives the draws of K-SEQ: with replacement, equal ones merged.
func independent(q []float64, draws int, visit func(kids []draft, chance float64)) {
	var pick func(kids []draft, k int, chance float64)
	pick = func(kids []draft, k int, chance float64) {
		if k == draws {
			visit(kids, chance)
			return
		}
		for id, w := range q {
			if w == 0 {
				continue
			}
			next := slices.Clone(kids)
			at := slices.IndexFunc(next, func(d draft) bool { return d.id == token.ID(id) })
			if at < 0 {
				at = len(next)
				next = append(next, draft{id: token.ID(id)})
			}
			next[at].samples |= 1 << k
			pick(next, k+1, chance*w)
		}
	}
	pick(nil, 0, 1)
}

// distinct gives up to width draws without replacement behind a node, whatever the parent's draws.
func distinct(width int) drawing {
	return func(q []float64, _ int, visit func(kids []draft, chance float64)) {
		var pick func(kids []draft, left, chance float64)
		pick = func(kids []draft, left, chance float64) {
			more := false
			for id, w := range q {
				if w == 0 || len(kids) == width || slices.ContainsFunc(kids, func(d draft) bool { return d.id == token.ID(id) }) {
					continue
				}
				more = true
				pick(append(slices.Clone(kids), draft{id: token.ID(id), samples: 1 << len(kids)}), left-w, chance*w/left)
			}
			if !more {
				visit(kids, chance)
			}
		}
		pick(nil, 1, 1)
	}
}

// game is a rule, what it is given, and how.
type game struct {
	rule     Rule
	p, q     table
	draws    int // independent draws behind the root; 0: draws without replacement
	width    int // draws without replacement behind each node
	depth    int
	prepare  func(y *toy) // changes a round; nil: nothing
	drawless bool         // drafts are not called draws
}

// play returns the distribution of texts of depth+1 tokens that the rule gives, the probability that a draft is
// accepted, and the expected tokens of a round.
func (g game) play(t *testing.T) (texts map[string]float64, accepts, tokens float64) {
	t.Helper()
	texts = map[string]float64{}
	var extend func(text []token.ID, chance float64)
	extend = func(text []token.ID, chance float64) { // by plain decoding
		if len(text) == g.depth+1 {
			texts[fmt.Sprint(text)] += chance
			return
		}
		for id, w := range g.p.behind(text) {
			if w > 0 {
				extend(append(slices.Clone(text), token.ID(id)), chance*w)
			}
		}
	}
	draw := distinct(g.width)
	if g.draws > 0 {
		draw = independent
	}
	a := g.rule.New()
	trees(g.q, g.draws, g.depth, draw, func(drafts []draft, c float64) {
		y := newToy(g.p, g.q, slices.Clone(drafts))
		if g.drawless {
			y.q = nil
		}
		if g.prepare != nil {
			g.prepare(y)
		}
		y.outcomes(t, a, func(r result, chance float64) {
			chance *= c
			if r.err != nil {
				t.Fatal(r.err)
			}
			tokens += chance * float64(len(r.accepted)+1)
			if len(r.accepted) > 0 {
				accepts += chance
			}
			if r.left == nil {
				extend(append(slices.Clone(r.accepted), r.next), chance)
				return
			}
			for id, w := range r.left {
				if w > 0 {
					extend(append(slices.Clone(r.accepted), token.ID(id)), chance*w)
				}
			}
		})
	})
	return texts, accepts, tokens
}

// error returns how far the texts of a game are from those of the target.
func (g game) error(t *testing.T) float64 {
	t.Helper()
	got, _, _ := g.play(t)
	plain, most := g, 0.0
	plain.rule, plain.width, plain.draws, plain.drawless = Match, 0, 0, true
	want, _, _ := plain.play(t)
	for text := range got {
		most = max(most, math.Abs(got[text]-want[text]))
	}
	for text := range want {
		most = max(most, math.Abs(got[text]-want[text]))
	}
	return most
}

// nearly fails where got is not want to within the rounding of float32.
func nearly(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-6) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
