package methodtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/engine"
	"grove/internal/engine/reading"
	"grove/internal/model"
	"grove/internal/sample"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
	"grove/internal/verify"
	"grove/internal/verify/reference"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
	"grove/method"
)

const (
	tabled  = 8  // tokens of a table
	tables  = 16 // of a model
	known   = tabled * tables
	written = 24  // tokens that are drawn, at least
	ready   = 200 // of the context
)

// tabular makes a model of random tables by a seed, near those of another seed: behind a token, a row of its table. Its stream is one value
// for each token, which no layer changes.
func (l *lab) tabular(t testing.TB, near, seed uint64) model.Model {
	t.Helper()
	metadata, tensors := modeltest.Spec{Layers: 4, Width: known, Vocab: known, Context: ready, Type: tensor.F32}.Parts(t)
	common, own := rand.New(rand.NewPCG(near, 1)), rand.New(rand.NewPCG(seed, 2))
	for _, v := range tensors {
		values := make([]float32, v.Elems())
		for i := range values {
			id, next := i%known, i/known
			switch {
			case strings.HasSuffix(v.Name, "norm.weight"):
				values[i] = 1
			case v.Name == "token_embd.weight" && id == next:
				values[i] = 1
			case v.Name == "output.weight" && id/tabled == next/tabled:
				values[i] = float32(1.5*common.NormFloat64()+0.7*own.NormFloat64()) / float32(math.Sqrt(known)) // the norm of one value
			case v.Name == "output.weight":
				values[i] = -1000 // never drawn
			}
		}
		if err := tensor.Pack(v.Type, v.Data, values); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	file, err := gguf.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(file, l.pool, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// round is what was drafted behind a text.
type round struct {
	length int
	root   *reference.Node
	nodes  []*reference.Node // by place in the tree
	drafts int               // that were run
	cut    bool              // not all were
}

// spy writes down the trees of a drafter, without the drafts that were not run.
type spy struct {
	method.Drafter
	history *method.History
	rounds  *[]round
}

func (s *spy) Committed(run method.Update) {
	s.Drafter.Committed(run)
	if len(run.Rows) == 0 || len(*s.rounds) == 0 { // those of a prompt are of no round
		return
	}
	r := &(*s.rounds)[len(*s.rounds)-1]
	ran := map[*reference.Node]bool{}
	for _, row := range run.Rows {
		if row.Node != method.Root {
			ran[r.nodes[row.Node]] = true
		}
	}
	r.drafts, r.cut = len(ran), len(ran) < len(r.nodes)
	for _, n := range append(r.nodes, r.root) {
		n.Next = slices.DeleteFunc(n.Next, func(c *reference.Node) bool { return !ran[c] })
	}
}

func (s *spy) Begin(h *method.History) error {
	s.history = h
	return s.Drafter.Begin(h)
}

func (s *spy) Draft(ctx context.Context, t *method.Tree) error {
	err := s.Drafter.Draft(ctx, t)
	r := round{length: len(s.history.IDs()), nodes: make([]*reference.Node, t.Len()), drafts: t.Len()}
	r.root = r.note(t, method.Root)
	*s.rounds = append(*s.rounds, r)
	return err
}

func (s *spy) Wants() (w method.Wants) {
	if d, ok := s.Drafter.(method.Wanter); ok {
		w = d.Wants()
	}
	w.Rows.Top = max(w.Rows.Top, 1) // so that it is told which drafts were run
	return w
}

func (s *spy) Work(ctx context.Context) {
	if d, ok := s.Drafter.(method.Ahead); ok {
		d.Work(ctx)
	}
}

func (s *spy) Close() error {
	if d, ok := s.Drafter.(method.Closer); ok {
		return d.Close()
	}
	return nil
}

// spied is a method whose drafters are spied on.
type spied struct {
	method.Method
	rounds *[]round
}

func (s spied) NewDrafter(own method.Trunk) (method.Drafter, error) {
	d, err := s.Method.NewDrafter(own)
	return &spy{Drafter: d, rounds: s.rounds}, err
}

// note copies what hangs from a node of a tree.
func (r *round) note(t *method.Tree, node int) *reference.Node {
	n := &reference.Node{Token: -1}
	if node != method.Root {
		n.Token, r.nodes[node] = int(t.Nodes()[node].ID), n
	}
	children := t.Children(nil, node)
	for _, c := range children {
		n.Next = append(n.Next, r.note(t, c))
	}
	d := t.DraftDistribution(node)
	if len(d.IDs) == 0 {
		return n
	}
	n.Q, n.Next = make([]float64, known), nil
	for i, id := range d.IDs {
		n.Q[id] = float64(d.P[i])
	}
	for k := 0; ; k++ {
		at := slices.IndexFunc(children, func(c int) bool { return t.Samples(c)>>k&1 == 1 })
		if at < 0 {
			return n
		}
		n.Next = append(n.Next, r.nodes[children[at]])
	}
}

// drawn are the distributions of a model behind its tokens as the sampling leaves them, and its random numbers.
type drawn struct {
	*sample.Chain
	logits [known][]float32
	probs  [known][]float64
	states [known][]float32
}

// behind computes what a model gives behind each token.
func (s *subject) behind(t testing.TB, m model.Model, p sample.Params) *drawn {
	t.Helper()
	e := s.engineOf(m, engine.Config{})
	d, all := &drawn{}, []token.ID{}
	for id := range token.ID(known) {
		all = append(all, id)
	}
	var err error
	if d.Chain, err = sample.NewChain(sample.Settings{Params: p}, known); err != nil {
		t.Fatal(err)
	}
	d.Begin(nil)
	n := 0
	err = e.Logits(s.ctx, all, 0, func(row []float32) error {
		d.logits[n], d.probs[n] = slices.Clone(row), make([]float64, known)
		n++
		return d.Probs(d.probs[n-1], 0, row, 0)
	})
	if err != nil {
		t.Fatal(err)
	}
	n = 0
	if err := e.States(s.ctx, all, reading.Reading{}, func(row []float32) error { d.states[n] = slices.Clone(row); n++; return nil }); err != nil {
		t.Fatal(err)
	}
	return d
}

// behind implements [reference.Model].
func (d *drawn) behind(text []int) []float64 { return d.probs[text[len(text)-1]] }

// Draw implements [reference.Dice] by the numbers of the engine.
func (d *drawn) Draw(text []int, _ []float64) int {
	got, err := d.Chain.Draw(0, d.logits[text[len(text)-1]], len(text))
	if err != nil {
		panic(err)
	}
	return int(got.ID)
}

// Pick implements [reference.Dice].
func (d *drawn) Pick(p []float64, place int) int {
	return int(d.Chain.Pick(p, place, verify.PurposeNext))
}

// Pass implements [reference.Dice].
func (d *drawn) Pass(probability float64, place, test int) bool {
	return d.Number(place, verify.PurposeTest+verify.NodePurposes*verify.Purpose(test)) < probability
}

// TestReference decodes by every method and every rule that takes its drafts, of random tables, and expects the tokens and the number of
// accepted drafts of package reference, which has the same random numbers and the trees that the method grew. What a second model's drafts
// are drawn from must be that model's table.
func TestReference(t *testing.T) {
	l := newLab(t)
	l.target, l.other, l.between = l.tabular(t, 1, 2), l.tabular(t, 1, 3), l.tabular(t, 1, 4)
	l.modules = l.openModules()
	head := &verify.Head{Weight: make([]float32, known), Bias: 0.3, Threshold: 0.5}
	for i := range head.Weight {
		head.Weight[i] = 0.2 * float32(i%3-1)
	}
	compared, rounds, accepted := 0, 0, 0
	for n, p := range []sample.Params{{Temperature: 1, Seed: 1}, {Temperature: 0.7, TopK: 5, Seed: 3}, {}} {
		target, draft := (&subject{lab: l, ctx: t.Context()}).behind(t, l.target, p), (&subject{lab: l, ctx: t.Context()}).behind(t, l.other, p)
		for i, info := range method.All() {
			if !l.offers(info) || n > 0 && !long && (i+n)%2 != 0 { // the short run has the second and the third sampling by turns
				continue
			}
			for _, rule := range verify.Rules() {
				if n > 0 && rule.Name == verify.Threshold.Name {
					continue // the reference has it at temperature 1
				}
				words := reference.Rules(func(text []int) float64 { return head.Importance(target.states[text[len(text)-1]]) }, head.Threshold)[rule.Name]
				if words == nil {
					t.Fatalf("package reference has no rule %s", rule.Name)
				}
				texts := 1
				if rule.Needs.Distributions {
					texts = brief(4, 2)
				}
				for range texts {
					c := &comparison{subject: subject{lab: l, info: info, ctx: t.Context()}, rule: verify.WithHead(rule, head), inWords: words, target: target, draft: draft}
					if err := c.run(t, p, token.ID(compared%tables*tabled+compared%tabled)); err != nil {
						t.Errorf("%s by %s, temperature %v: %v", info.Name, rule.Name, p.Temperature, err)
					}
					rounds, accepted = rounds+c.at, accepted+c.accepted
					if c.at == 0 {
						break // the rule does not take the method's drafts
					}
					compared++
				}
			}
		}
	}
	if t.Logf("%d texts: %d drafts accepted in %d rounds", compared, accepted, rounds); accepted < rounds/4 {
		t.Error("the drafts that are accepted are so few that the test shows little")
	}
}

// comparison is a method and a rule under test, with what the two models give.
type comparison struct {
	subject
	rule          verify.Rule
	inWords       reference.Rule
	target, draft *drawn
	rounds        []round
	at, accepted  int // rounds of the reference, and drafts that it accepted
}

// run decodes behind a token, by the engine and by the reference. It does nothing where the rule does not take the drafts.
func (c *comparison) run(t testing.TB, p sample.Params, first token.ID) error {
	t.Helper()
	open := c.info.Open
	c.info.Open = func(e method.Env) (method.Method, error) {
		m, err := open(e)
		return spied{m, &c.rounds}, err
	}
	e := c.engine(engine.Config{})
	d, err := c.open(e, true)
	if err != nil {
		return err
	}
	q, err := c.begin(e, d, p, 0)
	if err != nil {
		return err
	}
	if q.SetRule(c.rule) != nil {
		return q.Close()
	}
	got, err := c.follow(q, []move{{[]token.ID{first}, written}})
	for err == nil && q.Drafted() { // to the end of a round
		var more []sample.Token
		more, err = c.follow(q, []move{{nil, 1}})
		got = append(got, more...)
	}
	stats := q.SpecStats()
	if err == nil {
		_, err = q.Next(c.ctx) // the drafter is told of the last round
	}
	if err := errors.Join(err, q.Close()); err != nil {
		return err
	}
	drafts := 0
	grown := func(text []int) *reference.Node {
		r := c.rounds[min(c.at, len(c.rounds)-1)]
		if r.length != len(text) {
			err = fmt.Errorf("round %d is behind %d tokens; the engine's is behind %d", c.at, len(text), r.length)
			return &reference.Node{}
		}
		c.at, drafts = c.at+1, drafts+r.drafts
		err = errors.Join(err, c.tabled(r.root, text))
		return r.root
	}
	if c.rule.Grade == verify.Lossy && slices.ContainsFunc(c.rounds[:stats.Rounds], func(r round) bool { return r.cut }) {
		return nil // such a rule may accept a draft that was not run, which the reference does not have
	}
	text := []int{int(first)}
	text = append(text, c.target.Draw(text, nil)) // before anything is drafted
	text, c.accepted = reference.Decode(text, len(got)-1, c.target.behind, grown, c.inWords, c.target)
	var want, have []int
	for i, s := range got {
		want, have = append(want, text[1+i]), append(have, int(s.ID))
	}
	if d := cmp.Diff(want, have); d != "" {
		return fmt.Errorf("tokens (-reference +engine):\n%s", d)
	}
	if stats.Accepted != c.accepted || stats.Rounds != c.at || stats.Drafted != drafts {
		return fmt.Errorf("%d of %d drafts are accepted in %d rounds; the reference accepts %d of %d in %d", stats.Accepted, stats.Drafted, stats.Rounds, c.accepted, drafts, c.at)
	}
	return err
}

// tabled expects the distributions that a second model's drafts are drawn from to be those of its table.
func (c *comparison) tabled(n *reference.Node, text []int) error {
	if n.Q == nil || c.info.Kind != method.KindModel {
		return nil
	}
	for id, p := range c.draft.behind(text) {
		if math.Abs(n.Q[id]-p) > 1e-6 {
			return fmt.Errorf("behind %v token %d is drawn with probability %v; the table says %v", text, id, n.Q[id], p)
		}
	}
	for _, child := range n.Next {
		if err := c.tabled(child, append(slices.Clip(text), child.Token)); err != nil {
			return err
		}
	}
	return nil
}
