package speculate

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"grove/internal/compute"
	"grove/internal/engine/plan"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/method"
)

// step is the cost of steps of the synthetic model 0.5b and of gopher-target, of one row and of many.
var step = map[string]*plan.Cost{
	"0.5b":   {Rows: []int{1, 2, 4, 16}, Layers: []float64{17e-3, 17e-3, 18e-3, 28e-3}, Correction: []float64{1, 1, 1, 1}},
	"gopher": {Rows: []int{1, 2, 4, 16}, Layers: []float64{104e-6, 105e-6, 134e-6, 420e-6}, Correction: []float64{1, 1, 1, 1}},
}

// stub is a method that drafts a chain of tokens, and takes some time.
type stub struct {
	chain       []token.ID
	takes       time.Duration
	texts, asks *int
}

func (s stub) NewDrafter(method.Trunk) (method.Drafter, error) { return s, nil }

func (s stub) Begin(*method.History) error { *s.texts++; return nil }

func (s stub) Committed(method.Update) {}

func (s stub) Draft(_ context.Context, t *method.Tree) error {
	*s.asks++
	for start := time.Now(); time.Since(start) < s.takes; {
	}
	at := method.Root
	for i, id := range s.chain {
		if at = t.Add(at, id, i, 0.5); at == method.Root {
			break
		}
	}
	return nil
}

// set opens stubs as methods.
func set(t testing.TB, stubs ...stub) *Methods {
	var infos []method.Info
	for i, s := range stubs {
		infos = append(infos, method.Info{
			Name: fmt.Sprint("stub", i), Replays: true, Open: func(method.Env) (method.Method, error) { return s, nil },
		})
	}
	d, err := New(infos, method.Env{}, "")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestQuick replays texts of one token with three drafters: of the two that are right, the quicker one is asked, and the slow one that is
// never right takes part in few texts. Where all drafts are to be run, all are asked.
func TestQuick(t *testing.T) {
	const texts, tokens = 40, 100
	text := make([]token.ID, tokens)
	for _, eager := range []bool{false, true} {
		var counts [3][2]int
		stubs := []stub{
			{chain: []token.ID{0, 0}, takes: 40 * time.Microsecond},
			{chain: []token.ID{0, 0}},
			{chain: []token.ID{7}, takes: 40 * time.Microsecond},
		}
		for i := range stubs {
			stubs[i].texts, stubs[i].asks = &counts[i][0], &counts[i][1]
		}
		d := set(t, stubs...)
		if eager {
			d.Eager()
		}
		rounds := 0
		for range texts {
			st, _, err := d.Replay(t.Context(), step["gopher"], plan.Mixture{}, 10, Recorded{Prompt: text[:1], Output: text})
			if err != nil {
				t.Fatal(err)
			}
			rounds += st.Rounds
		}
		t.Logf("eager %v: %d rounds; texts and calls %v", eager, rounds, counts)
		for i, c := range counts {
			all, few := c == [2]int{texts, rounds}, c[0] < texts/2 && c[1] < rounds/5
			if eager && !all || !eager && (i == 1 && !all || i != 1 && !few) {
				t.Errorf("eager %v: drafter %d took part in %d of %d texts and was asked %d times in %d rounds", eager, i, c[0], texts, c[1], rounds)
			}
		}
	}
}

// round is what a sequence does in a round but for the step; all drafts in the tree that the text has are accepted.
func (x *Text) round(t testing.TB, c *plan.Cost, text []token.ID, at int) {
	if err := x.Tell(text[:at], 1); err != nil {
		t.Fatal(err)
	}
	x.Plan.Begin(c, at)
	if err := x.Draft(t.Context(), len(text)-at-1, nil); err != nil {
		t.Fatal(err)
	}
	x.Outcome.Accepted = x.Outcome.Accepted[:0]
	for node, ok := x.Tree.Child(method.Root, text[at]); ok; node, ok = x.Tree.Child(node, text[at+len(x.Outcome.Accepted)]) {
		x.Outcome.Accepted = append(x.Outcome.Accepted, node)
	}
	last := method.Root
	for _, node := range x.Outcome.Accepted {
		x.Tree.Learn(last, x.Tree.Nodes()[node].ID)
		last = node
	}
	x.Tree.Learn(last, text[at+len(x.Outcome.Accepted)])
	c.Observe(plan.StepSize{Rows: 1 + len(x.Plan.Chosen()), Depth: at}, c.Seconds(plan.StepSize{Rows: 1 + len(x.Plan.Chosen()), Depth: at}))
	n := 1 + len(x.Outcome.Accepted)
	x.Account(n, 0, time.Duration(1e9*x.Plan.StepSeconds(1+len(x.Plan.Chosen()))))
}

// twenty opens a text for twenty drafters, and counts their calls: each with a chain of three tokens of which some share the beginning.
func twenty(t testing.TB) (x *Text, asks *int) {
	stubs, asks := make([]stub, 20), new(int)
	for i := range stubs {
		stubs[i] = stub{chain: []token.ID{token.ID(i % 4), token.ID(i % 5), token.ID(i)}, texts: new(int), asks: asks}
	}
	x, err := set(t, stubs...).Open(nil, "", false, 100, plan.Mixture{})
	if err == nil {
		err = x.Fit(MemoryLimits{Drafts: plan.MaxDraft}, method.Size{Vocabulary: 100}, sample.Params{})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	return x, asks
}

// listener is a drafter that keeps what it is told.
type listener struct {
	stub
	runs []method.Update
}

func (l *listener) NewDrafter(method.Trunk) (method.Drafter, error) { return l, nil }

func (l *listener) Committed(r method.Update) { l.runs = append(l.runs, r) }

// TestTold: drafters are told of each token and of each row once.
func TestTold(t *testing.T) {
	l := &listener{stub: stub{texts: new(int), asks: new(int)}}
	d, err := New([]method.Info{{Name: "listener", Open: func(method.Env) (method.Method, error) { return l, nil }}}, method.Env{}, "")
	if err != nil {
		t.Fatal(err)
	}
	x, err := d.Open(nil, "", false, 100, plan.Mixture{})
	if err != nil {
		t.Fatal(err)
	}
	text := []token.ID{1, 2, 3, 4, 5}
	for _, n := range []int{2, 2, 4, 4, 5} {
		if n == 4 {
			x.Keep(&compute.Result{}, method.RowResult{})
		}
		if err := x.Tell(text[:n], 2); err != nil {
			t.Fatal(err)
		}
	}
	var told [][2]int // tokens and rows
	for _, r := range l.runs {
		told = append(told, [2]int{len(r.IDs), len(r.Rows)})
	}
	if want := [][2]int{{2, 1}, {0, 1}, {1, 0}}; !slices.Equal(told, want) || *l.texts != 1 {
		t.Errorf("tokens and rows %v, want %v; %d texts began", told, want, *l.texts)
	}
}

// TestForced: tokens that must follow are drafts, each behind the one before it.
func TestForced(t *testing.T) {
	x, _ := twenty(t)
	text := make([]token.ID, 10)
	x.round(t, step["0.5b"], text, 1)
	if err := x.Draft(t.Context(), 8, []token.ID{50, 51, 52}); err != nil {
		t.Fatal(err)
	}
	at := method.Root
	for _, id := range []token.ID{50, 51, 52} {
		var ok bool
		if at, ok = x.Tree.Child(at, id); !ok || x.Tree.Drafter(at) != 20 {
			t.Fatalf("token %d is no draft behind the one before it", id)
		}
	}
}

// TestChoosingAllocates: rounds of twenty drafters allocate nothing.
func TestChoosingAllocates(t *testing.T) {
	x, _ := twenty(t)
	text := make([]token.ID, 4096)
	for at := 1; at < 200; at++ {
		x.round(t, step["0.5b"], text, at)
	}
	at := 200
	if n := testing.AllocsPerRun(200, func() { x.round(t, step["0.5b"], text, at); at++ }); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
}

// BenchmarkChoosing measures rounds of twenty drafters without the step: all of it, and the drafters' own part, which adds to the tree. The
// difference is what choosing takes: the turns, the planner, and learning from the outcome.
func BenchmarkChoosing(b *testing.B) {
	text := make([]token.ID, 1024)
	for name, c := range step {
		b.Run(name, func(b *testing.B) {
			x, asks := twenty(b)
			at := 0
			var own time.Duration
			for b.Loop() {
				at = at%1000 + 1
				if at == 1 {
					x.Restart()
				}
				x.round(b, c, text, at)
			}
			all := b.Elapsed().Seconds() / float64(b.N)
			asked := float64(*asks) / float64(b.N)
			for range b.N {
				start := time.Now()
				x.Tree.Reset(1000, x.rates)
				for _, i := range x.quick {
					x.Tree.SetDrafter(int(i))
					_ = x.drafters[i].Draft(b.Context(), x.Tree)
				}
				own += time.Since(start)
			}
			choosing := all - asked*own.Seconds()/float64(b.N*len(x.quick))
			b.ReportMetric(asked, "asked")
			b.ReportMetric(1e9*choosing, "choosing-ns")
			b.ReportMetric(100*choosing/c.Seconds(plan.StepSize{Rows: 1, Logits: 1}), "%step")
			b.ReportMetric(float64(x.Tree.Len()), "drafts")
		})
	}
}
