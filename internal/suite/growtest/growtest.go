// Package growtest has what tests of drafters share: a scripted model, a text that tells its drafter what the engine
// would tell it, and a round as acceptance rules see it.
package growtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/internal/verify"
	"grove/method"
)

// Model is a scripted model, whose sequences check how they are used.
type Model struct {
	Dims   method.Size
	Next   func(path []token.ID, r forest.Row) []float32            // the logits behind a path, which ends with the row
	State  func(path []token.ID) []float32                          // the final state behind a path; nil: the model gives none
	Stream func(path []token.ID, r forest.Row, layer int) []float32 // behind a layer; nil: the model gives none
	Head   func(stream []float32) []float32                         // the logits of a row that is a vector and passes over all layers
	Fail   error                                                    // of all passes
	Window int                                                      // how far back a trunk can be cut, unless it is cut to nothing; 0: any

	Ran   []token.ID // the tokens of all rows
	Calls int        // passes
}

// Size implements [method.Model].
func (m *Model) Size() method.Size { return m.Dims }

// Open implements [method.Model].
func (m *Model) Open() (method.Branch, error) { return m.Sequence(), nil }

// Sequence returns a sequence of the model with a trunk.
func (m *Model) Sequence(trunk ...token.ID) *Sequence { return &Sequence{Model: m, Trunk: trunk} }

// Sequence is a sequence of a [Model].
type Sequence struct {
	*Model
	Trunk []token.ID
	Most  int  // rows that hung from the trunk at a time
	Shut  bool // it was closed

	live    []cell
	dropped int // nodes before these
	results []method.Result
}

type cell struct {
	id     token.ID
	parent forest.Node
	layers int // that it has run or passed over
}

// gone is the parent of a row that was committed, or dropped by a commit of another.
const gone = ^forest.Node(0)

// Len implements [method.Trunk].
func (s *Sequence) Len() int { return len(s.Trunk) }

// Live returns how many rows hang from the trunk.
func (s *Sequence) Live() (n int) {
	for _, c := range s.live {
		if c.parent != gone {
			n++
		}
	}
	return n
}

// Grow implements [method.Trunk].
func (s *Sequence) Grow(_ context.Context, rows []method.Row) ([]method.Result, error) {
	s.Calls++
	if s.Fail != nil {
		return nil, s.Fail
	}
	if len(rows) == 0 || len(rows) > s.Dims.Rows {
		return nil, errors.New("a step of no rows, or of more than it holds")
	}
	s.results = s.results[:0]
	for _, r := range rows {
		if r.After > 0 {
			r.Parent = s.results[r.After-1].Node
		}
		node, path, err := s.run(r)
		if err != nil {
			return nil, err
		}
		got := method.Result{Node: node}
		switch {
		case r.Want.Logits && r.Vector != nil && s.Head != nil:
			if r.Skip != forest.LayerRange(0, s.Dims.Layers) || len(r.Vector) != s.Dims.Width {
				return nil, errors.New("a vector of another width, or one that runs layers")
			}
			got.Logits = s.Head(r.Vector)
		case r.Want.Logits:
			got.Logits = s.Next(path, r.Row)
		}
		for l := range s.Dims.Layers {
			if r.Want.Hidden.Has(l) && s.Stream != nil {
				got.Hidden = append(got.Hidden, s.Stream(path, r.Row, l))
			}
		}
		if r.Want.State && s.State != nil {
			got.State = s.State(path)
		}
		s.results = append(s.results, got)
	}
	return s.results, nil
}

// run adds a row, or takes one further, and returns its node and path.
func (s *Sequence) run(r method.Row) (n forest.Node, path []token.ID, err error) {
	if n = r.Resume; n == forest.Trunk {
		if n, err = s.add(r); err != nil {
			return n, nil, err
		}
	}
	if path, err = s.path(n); err != nil {
		return n, nil, err
	}
	c, to := &s.live[int(n)-s.dropped-1], r.To
	if to == 0 {
		to = s.Dims.Layers
	}
	if r.From != c.layers || to <= r.From || to > s.Dims.Layers {
		return n, nil, fmt.Errorf("layers %d to %d of %d, of a row that has run %d", r.From, to, s.Dims.Layers, c.layers)
	}
	if c.parent != forest.Trunk && s.live[int(c.parent)-s.dropped-1].layers < to {
		return n, nil, fmt.Errorf("a row through %d layers behind one that stopped before", to)
	}
	c.layers = to
	return n, path, nil
}

// add adds a row that is not resumed.
func (s *Sequence) add(r method.Row) (forest.Node, error) {
	path, err := s.path(r.Parent)
	if err != nil {
		return forest.Trunk, err
	}
	if len(path) >= s.Dims.Context {
		return forest.Trunk, errors.New("a row behind the context")
	}
	if r.ID < 0 || int(r.ID) >= s.Dims.Vocabulary {
		return forest.Trunk, errors.New("a token of another vocabulary")
	}
	s.live, s.Ran = append(s.live, cell{id: r.ID, parent: r.Parent}), append(s.Ran, r.ID)
	s.Most = max(s.Most, s.Live())
	return forest.Node(s.dropped + len(s.live)), nil
}

// path returns the trunk and the tokens down to a node.
func (s *Sequence) path(n forest.Node) (ids []token.ID, err error) {
	for n != forest.Trunk {
		if int(n) <= s.dropped || int(n) > s.dropped+len(s.live) {
			return nil, errors.New("a row that does not live")
		}
		c := s.live[int(n)-s.dropped-1]
		if c.parent == gone {
			return nil, errors.New("a row that was dropped")
		}
		ids, n = append(ids, c.id), c.parent
	}
	slices.Reverse(ids)
	return append(slices.Clone(s.Trunk), ids...), nil
}

// Commit implements [method.Branch]. What descends from the node lives on.
func (s *Sequence) Commit(n forest.Node) (err error) {
	if at := int(n) - s.dropped - 1; at >= 0 && at < len(s.live) && s.live[at].layers < s.Dims.Layers {
		return errors.New("a row that has not run all layers")
	}
	if s.Trunk, err = s.path(n); err != nil {
		return err
	}
	lives := map[forest.Node]bool{n: true}
	for i := range s.live {
		c, node := &s.live[i], forest.Node(s.dropped+i+1)
		switch {
		case !lives[c.parent]:
			c.parent = gone
		case c.parent == n:
			c.parent, lives[node] = forest.Trunk, true
		default:
			lives[node] = true
		}
	}
	return nil
}

// Drop implements [method.Trunk].
func (s *Sequence) Drop() error {
	s.dropped, s.live = s.dropped+len(s.live), s.live[:0]
	return nil
}

// Truncate implements [method.Branch].
func (s *Sequence) Truncate(n int) error {
	if n < 0 || n > len(s.Trunk) {
		return errors.New("the trunk is shorter")
	}
	if n > 0 && s.Window > 0 && n < len(s.Trunk)-s.Window {
		n = 0 // a window has passed
	}
	s.Trunk = s.Trunk[:n]
	return s.Drop()
}

// Close implements [method.Branch].
func (s *Sequence) Close() error { s.Shut = true; return nil }

// Cycle is a model of n tokens that finds id+1 likeliest behind id, then id+2, and so on, each by factor less likely
// in logarithms.
func Cycle(n int, factor float64) *Model {
	return Table(n, func(id, next int) float64 { return -factor * float64((next-id-1+n)%n) })
}

// Random is a model of n tokens whose logits behind a token are random by a seed.
func Random(n int, seed uint64) *Model {
	rng := rand.New(rand.NewPCG(seed, 7))
	return Table(n, func(int, int) float64 { return 1.2 * rng.NormFloat64() })
}

// Table is a model of n tokens whose logits depend on the last token.
func Table(n int, logit func(id, next int) float64) *Model {
	rows := make([][]float32, n)
	for id := range rows {
		for next := range n {
			rows[id] = append(rows[id], float32(logit(id, next)))
		}
	}
	return &Model{
		Dims: method.Size{Vocabulary: n, Layers: 4, Width: 8, Context: 100, Rows: 64},
		Next: func(path []token.ID, _ forest.Row) []float32 { return rows[path[len(path)-1]] },
	}
}

// Probs returns the softmax of the logits behind a token.
func (m *Model) Probs(id token.ID) []float64 {
	logits := m.Next([]token.ID{id}, forest.Row{})
	p, sum := make([]float64, len(logits)), 0.0
	for i, l := range logits {
		p[i] = math.Exp(float64(l))
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// Text is a text with its drafter, which is told what the engine would tell it.
type Text struct {
	method.History
	Drafter method.Drafter
	ids     []token.ID
}

// NewText returns a text that a method drafts for, without a trunk of its own.
func NewText(tb testing.TB, m method.Method) *Text {
	tb.Helper()
	d, err := m.NewDrafter(nil)
	if err != nil {
		tb.Fatal(err)
	}
	return &Text{Drafter: d}
}

// Open opens the method of a name, with its option where there is one.
func Open(tb testing.TB, name string, env method.Env) method.Method {
	tb.Helper()
	info, err := method.Find(name)
	if err != nil {
		tb.Fatal(err)
	}
	m, err := info.Open(env)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// Drafter is a drafter of [Open] without a trunk of its own.
func Drafter(tb testing.TB, name string, env method.Env) method.Drafter {
	tb.Helper()
	return NewText(tb, Open(tb, name, env)).Drafter
}

// Begin starts a text.
func (x *Text) Begin(tb testing.TB, prompt ...token.ID) {
	tb.Helper()
	x.ids = append(x.ids[:0], prompt...)
	x.History.Begin(x.ids, len(x.ids))
	if err := x.Drafter.Begin(&x.History); err != nil {
		tb.Fatal(err)
	}
}

// Add adds tokens to the text.
func (x *Text) Add(ids ...token.ID) {
	x.ids = append(x.ids, ids...)
	x.History.Extend(x.ids)
	x.Drafter.Committed(method.Update{IDs: ids, Before: token.None})
}

// AddRan adds tokens to the text behind a step that ran its last tokens, and the new ones but the last: from place first on, with the states of places.
func (x *Text) AddRan(first int, state func(place int) []float32, ids ...token.ID) {
	x.ids = append(x.ids, ids...)
	x.History.Extend(x.ids)
	u := method.Update{IDs: ids, Before: token.None}
	for at := first; at < len(x.ids)-1; at++ {
		u.Rows = append(u.Rows, method.RowResult{ID: x.ids[at], At: int32(at), Accepted: true, Result: compute.Result{State: state(at)}})
	}
	x.Drafter.Committed(u)
}

// Draft returns the drafts behind the text: 128 at most, of 1000 tokens.
func (x *Text) Draft(tb testing.TB, depth int) *method.Tree {
	tb.Helper()
	t := method.NewTree(128, 1000)
	t.Reset(depth, method.NewRates(1))
	if err := x.Drafter.Draft(tb.Context(), t); err != nil {
		tb.Fatal(err)
	}
	return t
}

// Ends expects the drafter to hold no more than it says, to pass on an error of the model that it drafts with, and to close.
func (x *Text) Ends(tb testing.TB, m *Model) {
	tb.Helper()
	if d := x.Drafter.(method.Sized); d.Held().Logits > d.MemoryFor(8, sample.Params{}).Logits {
		tb.Errorf("%d bytes are held, want %d at most", d.Held().Logits, d.MemoryFor(8, sample.Params{}).Logits)
	}
	m.Fail = errors.New("the model fails")
	t := method.NewTree(8, 1000)
	t.Reset(4, method.NewRates(1))
	if err := x.Drafter.Draft(tb.Context(), t); !errors.Is(err, m.Fail) {
		tb.Errorf("%v, want the model's error", err)
	}
	if err := x.Drafter.(method.Closer).Close(); err != nil {
		tb.Error(err)
	}
}

// IDs returns the tokens of a tree.
func IDs(t *method.Tree) (ids []token.ID) {
	for _, n := range t.Nodes() {
		ids = append(ids, n.ID)
	}
	return ids
}

// PerDepth returns how many drafts a tree has at each depth.
func PerDepth(t *method.Tree) (n []int) {
	for _, node := range t.Nodes() {
		for len(n) < int(node.Depth) {
			n = append(n, 0)
		}
		n[node.Depth-1]++
	}
	return n
}

// View is a round as acceptance rules see it: all drafts of a tree behind a token were run by a target. Its numbers
// are random.
type View struct {
	*method.Tree
	Target *Model
	Last   token.ID // of the text
	Rng    *rand.Rand
}

// Judge returns the tokens that a rule makes of the round.
func (v *View) Judge(tb testing.TB, r verify.Rule) (text []token.ID) {
	tb.Helper()
	var out verify.Outcome
	if err := r.New().Accept(v, &out); err != nil {
		tb.Fatal(err)
	}
	for _, n := range out.Accepted {
		text = append(text, v.Token(n))
	}
	return append(text, out.Next)
}

// Token implements [verify.View].
func (v *View) Token(node int) token.ID {
	if node == verify.Root {
		return v.Last
	}
	return v.Nodes()[node].ID
}

// Ran implements [verify.View].
func (v *View) Ran(int) bool { return true }

// Samples implements [verify.View].
func (v *View) Samples(node int) uint64 { return v.Nodes()[node].Samples }

// Draw implements [verify.View].
func (v *View) Draw(node int) (token.ID, error) {
	p, err := v.Probs(node)
	return v.Pick(node, p), err
}

// Probs implements [verify.View].
func (v *View) Probs(node int) ([]float64, error) { return v.Target.Probs(v.Token(node)), nil }

// Logits implements [verify.View].
func (v *View) Logits(node int) ([]float32, error) {
	return v.Target.Next([]token.ID{v.Token(node)}, forest.Row{}), nil
}

// State implements [verify.View]: the model has none.
func (v *View) State(int) []float32 { return nil }

// Number implements [verify.View].
func (v *View) Number(int, verify.Purpose) float64 { return v.Rng.Float64() }

// Pick implements [verify.View].
func (v *View) Pick(_ int, p []float64) token.ID {
	x := v.Rng.Float64()
	for id, w := range p {
		if x -= w; x < 0 {
			return token.ID(id)
		}
	}
	return token.ID(len(p) - 1)
}

// Best returns the first draft of each depth.
func Best(t *method.Tree) (ids []token.ID) {
	for at, ok := method.Root, true; ok; {
		children := t.Children(nil, at)
		if ok = len(children) > 0; ok {
			at = children[0]
			ids = append(ids, t.Nodes()[at].ID)
		}
	}
	return ids
}
