package draft

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/forest"
	"grove/method"
	"grove/sample"
	"grove/text/token"
)

// table is a draft model that knows what follows a token: log-probabilities, by token. It checks how it is used.
type table struct {
	next    [][]float64
	context int
	chunk   int
	fail    error

	trunk []token.ID
	live  []cell // by node, from 1
	ran   []token.ID
	calls int
}

type cell struct {
	id     token.ID
	parent forest.Node
	gone   bool
}

func (m *table) Vocabulary() int                { return len(m.next) }
func (m *table) Context() int                   { return m.context }
func (m *table) Chunk() int                     { return m.chunk }
func (m *table) Branch() (method.Branch, error) { return m, nil }
func (m *table) Len() int                       { return len(m.trunk) }
func (m *table) Close() error                   { return nil }

func (m *table) Run(_ context.Context, rows []method.BranchRow) (nodes []forest.Node, logits [][]float32, err error) {
	m.calls++
	if m.fail != nil {
		return nil, nil, m.fail
	}
	if len(rows) > m.chunk {
		return nil, nil, errors.New("more rows than a step holds")
	}
	for _, r := range rows {
		if r.After > 0 {
			r.Parent = nodes[r.After-1]
		}
		if depth := len(m.path(r.Parent)) + 1; depth > m.context {
			return nil, nil, errors.New("beyond the context")
		}
		m.live = append(m.live, cell{id: r.ID, parent: r.Parent})
		m.ran = append(m.ran, r.ID)
		nodes = append(nodes, forest.Node(len(m.live)))
		var l []float32
		if r.Logits {
			for _, v := range m.next[r.ID] {
				l = append(l, float32(v))
			}
		}
		logits = append(logits, l)
	}
	return nodes, logits, nil
}

// path returns the trunk and the tokens down to a node.
func (m *table) path(n forest.Node) (ids []token.ID) {
	for ; n != forest.Trunk; n = m.live[n-1].parent {
		if m.live[n-1].gone {
			panic("a row behind one that was dropped")
		}
		ids = append(ids, m.live[n-1].id)
	}
	slices.Reverse(ids)
	return append(slices.Clone(m.trunk), ids...)
}

func (m *table) Commit(n forest.Node) error {
	m.trunk = m.path(n)
	return m.Drop()
}

func (m *table) Drop() error {
	for i := range m.live {
		m.live[i].gone = true
	}
	return nil
}

func (m *table) Truncate(n int) error {
	m.trunk = m.trunk[:n]
	return m.Drop()
}

// cycle is a model that finds id+1 likeliest, then id+2, and so on, each by the factor less likely.
func cycle(n int, factor float64) *table {
	m := &table{context: 100, chunk: 64}
	for id := range n {
		row := make([]float64, n)
		for rank := range n {
			row[(id+1+rank)%n] = -float64(rank) * factor
		}
		m.next = append(m.next, row)
	}
	return m
}

// open opens a method's drafter and begins a text.
func open(t *testing.T, name string, m *table, p sample.Params, prompt ...token.ID) method.Drafter {
	t.Helper()
	info, err := method.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := info.Open(method.Env{Vocabulary: len(m.next), Draft: m})
	if err != nil {
		t.Fatal(err)
	}
	d, err := opened.NewDrafter()
	if err != nil {
		t.Fatal(err)
	}
	s, err := sample.NewChain(sample.Settings{Params: p}, len(m.next))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Begin(method.Text{Prompt: prompt, Sampler: s}); err != nil {
		t.Fatal(err)
	}
	return d
}

func grow(t *testing.T, d method.Drafter, depth int) *method.Tree {
	t.Helper()
	tree := method.NewTree(128, 1000)
	tree.Reset(depth, method.NewRates(1))
	if err := d.Draft(t.Context(), tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

func ids(tree *method.Tree) (all []token.ID) {
	for _, n := range tree.Nodes() {
		all = append(all, n.ID)
	}
	return all
}

func perDepth(tree *method.Tree) []int {
	var n []int
	for _, node := range tree.Nodes() {
		for len(n) < int(node.Depth) {
			n = append(n, 0)
		}
		n[node.Depth-1]++
	}
	return n
}

func TestNeeds(t *testing.T) {
	for _, s := range shapes {
		info, err := method.Find(s.name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := info.Open(method.Env{Vocabulary: 9}); !errors.Is(err, method.ErrNeeds) {
			t.Errorf("%s without a draft model: %v", s.name, err)
		}
	}
}

// TestGrowth holds the trees of a draft model that ranks tokens clearly to their shapes.
func TestGrowth(t *testing.T) {
	for _, c := range []struct {
		name   string
		factor float64 // how clearly
		depth  int
		want   []int // guesses a level
	}{
		{"draft-chain", 2, 64, slices.Repeat([]int{1}, deepest)},
		{"draft-chain", 2, 3, []int{1, 1, 1}},
		{"draft-fixed", 2, 64, []int{3, 6, 6, 6}},
		{"draft-fixed", 2, 2, []int{3, 6}},
		{"draft", 2, 3, []int{4, 16, 64}}, // time costs nothing: all is read, four nodes a pass
		{"draft-block", 2, 4, []int{1, 1, 1, 1}},
		{"draft-rsd", 0.1, 3, []int{3, 6, 6}},
		{"draft-rsd-s", 0.1, 4, []int{4, 4, 4, 4}},
		{"draft-dyspec", 50, 4, []int{1, 1, 1, 1}}, // a law of one token makes a chain
	} {
		p := sample.Params{}
		if info, _ := method.Find(c.name); info.Grade == method.SameDistribution {
			p = sample.Params{Temperature: 1, Seed: 1}
		}
		tree := grow(t, open(t, c.name, cycle(12, c.factor), p, 1, 2, 3), c.depth)
		if got := perDepth(tree); !cmp.Equal(got, c.want) {
			t.Errorf("%s, %d deep: %v guesses, want %v", c.name, c.depth, got, c.want)
		}
	}
	got := ids(grow(t, open(t, "draft-chain", cycle(10, 1), sample.Params{}, 4, 7), 5))
	if want := []token.ID{8, 9, 0, 1, 2}; !cmp.Equal(got, want) {
		t.Errorf("the likeliest behind 7: %v, want %v", got, want)
	}
	if got := grow(t, open(t, "draft", cycle(10, 1), sample.Params{}), 5).Len(); got != 0 {
		t.Errorf("%d guesses behind no text", got)
	}
}

// TestUniformSlots expects DySpec to draw nearly breadth-first where all tokens are as likely, and places below the
// least chance to stay empty.
func TestUniformSlots(t *testing.T) {
	tree := grow(t, open(t, "draft-dyspec", cycle(4, 0), sample.Params{Temperature: 1, Seed: 3}, 1), 64)
	// 4 tokens of 1/4 each; behind each 4 of 1/16; 1/64 is below the least chance: but a place is judged before its
	// guess is drawn, and so the first behind a node of 1/16 is drawn.
	if got := perDepth(tree); got[0] != 4 || got[1] != 16 || len(got) != 3 {
		t.Errorf("%v guesses a level", got)
	}
	m := cycle(4, 0)
	d := open(t, "draft-dyspec", m, sample.Params{Temperature: 1, Seed: 3}, 1)
	tree = method.NewTree(128, 1000)
	tree.Floor = 0.3
	tree.Reset(64, method.NewRates(1))
	if err := d.Draft(t.Context(), tree); err != nil {
		t.Fatal(err)
	}
	// Chances 1, 3/4, 1/2 are above the floor and 1/4 is not, nor is that of any node.
	if got := perDepth(tree); !cmp.Equal(got, []int{3}) {
		t.Errorf("with a floor of 0.3: %v guesses a level", got)
	}
}

// TestDrawn expects the guesses of laws to come with the law that they were drawn from, each token at most once.
func TestDrawn(t *testing.T) {
	for _, name := range []string{"draft-block", "draft-rsd", "draft-rsd-s", "draft-dyspec"} {
		tree := grow(t, open(t, name, cycle(12, 0.3), sample.Params{Temperature: 0.9, TopK: 5, Seed: 2}, 1, 2, 3), 6)
		laws := tree.Laws()
		if tree.Len() == 0 || len(laws) != tree.Len()+1 {
			t.Fatalf("%s: %d guesses, %d laws", name, tree.Len(), len(laws))
		}
		for node := method.Root; node < tree.Len(); node++ {
			children := tree.Children(nil, node)
			for i, id := range children {
				if laws[node+1].Of(id) <= 0 || slices.Contains(children[:i], id) {
					t.Errorf("%s: %d is not drawn from the law behind %d, or twice", name, id, node)
				}
			}
			sum := 0.0
			for _, p := range laws[node+1].P {
				sum += float64(p)
			}
			if len(children) > 0 && (len(laws[node+1].IDs) != 5 || math.Abs(sum-1) > 1e-6) {
				t.Errorf("%s: a law of %d tokens that sums to %v", name, len(laws[node+1].IDs), sum)
			}
		}
	}
}

// TestCatchUp: what came true stays, what did not is dropped, and what the drafter was not asked for is read when it is.
func TestCatchUp(t *testing.T) {
	m := cycle(10, 2)
	d := open(t, "draft-chain", m, sample.Params{}, 1, 2, 3)
	ran := func(want ...token.ID) {
		t.Helper()
		if !cmp.Equal(m.ran, want) {
			t.Errorf("the draft model read %v, want %v", m.ran, want)
		}
		m.ran = nil
	}
	grow(t, d, 4)
	ran(1, 2, 3, 4, 5, 6)
	d.Extend([]token.ID{4, 5, 9}) // two of four guesses, and another token
	grow(t, d, 2)
	ran(9, 0)
	if want := []token.ID{1, 2, 3, 4, 5, 9}; !cmp.Equal(m.trunk, want) {
		t.Errorf("the trunk is %v, want %v", m.trunk, want)
	}
	d.Extend([]token.ID{0}) // the last token is read again: what was said behind it is forgotten
	grow(t, d, 2)
	ran(0, 1)
	d.Extend([]token.ID{7, 7})
	d.Extend([]token.ID{7}) // it was not asked in between
	grow(t, d, 1)
	ran(7, 7, 7)
	d.Extend([]token.ID{8, 9, 0, 1, 2, 3}) // more than was drafted
	if got := ids(grow(t, d, 1)); !cmp.Equal(got, []token.ID{4}) {
		t.Errorf("guesses %v", got)
	}
	ran(8, 9, 0, 1, 2, 3)
	s, _ := sample.NewChain(sample.Settings{Params: sample.Params{}}, 10)
	if err := d.Begin(method.Text{Prompt: []token.ID{5}, Sampler: s}); err != nil {
		t.Fatal(err)
	}
	grow(t, d, 2)
	ran(5, 6)
	if !cmp.Equal(m.trunk, []token.ID{5}) {
		t.Errorf("a new text begins with %v", m.trunk)
	}
}

// TestBounds: a draft model with a short context and small steps drafts as far as it can.
func TestBounds(t *testing.T) {
	for _, s := range shapes {
		p := sample.Params{}
		if s.rule != method.Match {
			p = sample.Params{Temperature: 1, Seed: 4}
		}
		for length := 1; length < 12; length++ {
			m := cycle(10, 1)
			m.context, m.chunk = 8, 1
			prompt := make([]token.ID, length)
			tree := grow(t, open(t, s.name, m, p, prompt...), 64)
			// Behind what fills the context the model says nothing: the last guess is beyond it by one.
			if got := len(perDepth(tree)); got > max(0, 9-length) || length < 8 && got == 0 {
				t.Errorf("%s: %d levels behind %d tokens of 8", s.name, got, length)
			}
		}
		m := cycle(10, 0.01)
		m.context, m.chunk = 1000, 3
		open := open(t, s.name, m, p, 1, 2, 3, 4, 5, 6, 7)
		if tree := grow(t, open, 64); tree.Len() == 0 {
			t.Errorf("%s: no guesses with steps of 3 rows", s.name)
		}
		if n := len(m.live) - 7; n > method.MaxLive {
			t.Errorf("%s: %d live rows", s.name, n)
		}
	}
}

// TestStops expects no pass that is not worth its time, and the draft model's error to be returned.
func TestStops(t *testing.T) {
	m := cycle(10, 2)
	d := open(t, "draft", m, sample.Params{}, 1, 2, 3).(*drafter)
	d.pass = 1
	tree := method.NewTree(128, 1000)
	tree.Throughput = 10 // tokens a second: a pass of a second is worth ten
	tree.Reset(64, method.NewRates(1))
	if err := d.Draft(t.Context(), tree); err != nil {
		t.Fatal(err)
	}
	if tree.Len() != 4 || m.calls != 1 {
		t.Errorf("%d guesses by %d passes, want 4 by the one that reads the text", tree.Len(), m.calls)
	}
	m.fail = errors.New("broken")
	d.Extend([]token.ID{4})
	tree.Reset(64, method.NewRates(1))
	if err := d.Draft(t.Context(), tree); !errors.Is(err, m.fail) {
		t.Errorf("error %v", err)
	}
}
