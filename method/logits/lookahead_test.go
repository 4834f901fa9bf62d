package logits

import (
	"slices"
	"testing"

	"grove/internal/compute"
	"grove/internal/text/token"
	"grove/method"
)

// lookaheadPlay is a text of a model that knows what follows a token, and its rounds.
type lookaheadPlay struct {
	*lookaheadDrafter
	history method.History
	text    []token.ID
	next    func(id token.ID) token.ID
	tree    *method.Tree
}

func lookaheadNewPlay(t *testing.T, next func(token.ID) token.ID, prompt ...token.ID) *lookaheadPlay {
	t.Helper()
	d, err := lookahead{}.NewDrafter(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &lookaheadPlay{lookaheadDrafter: d.(*lookaheadDrafter), text: prompt, next: next, tree: method.NewTree(128, 100)}
	p.history.Begin(p.text, len(p.text))
	if err := d.Begin(&p.history); err != nil {
		t.Fatal(err)
	}
	return p
}

// round runs a round, and returns how many tokens it gives.
func (p *lookaheadPlay) round(t *testing.T) int {
	t.Helper()
	p.tree.Reset(64, method.NewRates(1))
	if err := p.Draft(t.Context(), p.tree); err != nil {
		t.Fatal(err)
	}
	says := func(id token.ID) compute.Result { return compute.Result{Top: []compute.TopEntry{{ID: p.next(id)}}} }
	last := p.text[len(p.text)-1]
	rows := []method.RowResult{{ID: last, Parent: -1, Node: method.Root, Result: says(last)}}
	for i, n := range p.tree.Nodes() {
		rows = append(rows, method.RowResult{ID: n.ID, Parent: n.Parent + 1, Node: int32(i), Result: says(n.ID)})
	}
	from, at := len(p.text), method.Root
	for ok := true; ok; {
		id := p.next(p.text[len(p.text)-1])
		p.text = append(p.text, id)
		at, ok = p.tree.Child(at, id)
	}
	p.history.Extend(p.text)
	p.Committed(method.Update{IDs: p.text[from:], Before: token.None, Rows: rows})
	return len(p.text) - from
}

// TestWindow: the depths of the window's rows, and its size.
func TestWindow(t *testing.T) {
	p := lookaheadNewPlay(t, func(id token.ID) token.ID { return (id + 1) % 10 }, 1, 50, 60, 70, 80, 90, 3, 33, 17, 42, 55)
	p.round(t)
	for j := range levels {
		for i := range lookaheadWidth {
			if j == 0 && i == lookaheadWidth-1 {
				continue
			}
			want := i + j
			if j == 0 {
				want = i + 1
			}
			if j > 0 && i == 0 {
				want = j
			}
			if got := int(p.tree.Nodes()[p.places[j][i]].Depth); got != want {
				t.Errorf("level %d, column %d: depth %d, want %d", j, i, got, want)
			}
		}
	}
	if n := p.tree.Len(); n > lookaheadWidth*levels-1+candidates*levels || !p.tree.RunsAll() {
		t.Errorf("%d rows", n)
	}
}

// TestRising: with a model that knows the next of ten tokens, levels soon differ by one, the pool has what follows each token, and each
// round gives an n-gram.
func TestRising(t *testing.T) {
	p := lookaheadNewPlay(t, func(id token.ID) token.ID { return (id + 1) % 10 }, 1, 5, 2, 9, 0, 7, 3)
	for range 30 {
		p.round(t)
	}
	for range 20 {
		if got := p.round(t); got < ngram {
			t.Fatalf("a round gives %d tokens, want %d", got, ngram)
		}
	}
	for first := range token.ID(10) {
		e := p.entry(first)
		if e.n == 0 || e.first != first {
			continue
		}
		if !slices.Contains(e.rest[:e.n], [levels]token.ID{(first + 1) % 10, (first + 2) % 10, (first + 3) % 10}) {
			t.Errorf("behind %d: %v", first, e.rest[:e.n])
		}
	}
}

// TestPool: the last n-grams of a token are kept, and one that is seen again counts as the last.
func TestPool(t *testing.T) {
	d := &lookaheadDrafter{pool: make([]entry, keys)}
	for i := range token.ID(candidates + 1) {
		d.keep(7, [levels]token.ID{i, i, i})
	}
	d.keep(7, [levels]token.ID{2, 2, 2})
	e := d.entry(7)
	var got []token.ID
	for _, rest := range e.rest[:e.n] {
		got = append(got, rest[0])
	}
	if want := []token.ID{1, 3, 4, 5, 2}; len(got) != len(want) || [5]token.ID(got) != [5]token.ID(want) {
		t.Errorf("the pool has %v, want %v", got, want)
	}
}
