package engine_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"grove/internal/engine"
	"grove/internal/engine/plan"
	"grove/internal/sample"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
	"grove/method"
)

// drafting opens drafters that want the largest logits of every row, and hold what they are given to what it must be.
func drafting(t *testing.T, e *engine.Engine, drafters ...*drafter) *engine.Drafting {
	t.Helper()
	var all []each
	for _, d := range drafters {
		d.wants.Rows.Top = 3
		d.rows = func(d *drafter, run method.Update) {
			for i, r := range run.Rows {
				d.watched++
				if len(r.Top) != 3 || int(r.Parent) >= i || r.Accepted && i > 0 && !run.Rows[r.Parent].Accepted {
					d.faults = append(d.faults, "a row's result makes no sense")
				}
			}
		}
		all = append(all, func() *drafter { return d })
	}
	return openDrafters(t, e, false, all...)
}

// cheapRows makes the engine think that further rows cost next to nothing, so that every draft is run.
func cheapRows(e *engine.Engine) {
	e.SetCost(&engine.Cost{
		Rows: []int{1, 32}, Layers: []float64{1, 1.0001}, Head: plan.Curve{X: []int{1, 32}, Y: []float64{0, 0}},
		Correction: []float64{1, 1},
	})
}

// characters returns drafters of a text: one that is always right, one that is always wrong, one that is sometimes right and
// drafts what is no token too, and one that drafts nothing.
func characters(whole []token.ID) (right, wrong, mixed, silent *drafter) {
	right = &drafter{draft: func(d *drafter, tree *method.Tree) {
		at := method.Root
		for _, id := range whole[len(d.h.IDs()):] {
			if at = tree.Add(at, id, 0, 0.9); at == method.Root {
				return
			}
		}
	}}
	wrong = &drafter{draft: func(d *drafter, tree *method.Tree) {
		at := method.Root
		for i := range 5 {
			at = tree.Add(at, (whole[len(d.h.IDs())]+1+token.ID(i))%48, 1, 0.9)
		}
	}}
	r := rand.New(rand.NewPCG(1, 2))
	mixed = &drafter{draft: func(d *drafter, tree *method.Tree) {
		for range 20 {
			parent := r.IntN(tree.Len()+1) - 1
			id := token.ID(r.IntN(60) - 6) // some of them no tokens
			if at := len(d.h.IDs()) + depth(tree, parent); r.IntN(2) == 0 && at < len(whole) {
				id = whole[at]
			}
			tree.Add(parent, id, r.IntN(70)-3, r.Float32())
		}
	}}
	return right, wrong, mixed, &drafter{draft: func(*drafter, *method.Tree) {}}
}

// namedAnswer is an answer with settings of the draw.
type namedAnswer struct {
	name   string
	answer engine.Answer
}

// draftAnswers are answers of every kind of draw.
func draftAnswers() []namedAnswer {
	hot := sample.Params{Temperature: 1.2, TopK: 7, TopP: 0.9, Seed: 4}
	warm := func(change func(p *sample.Params)) engine.Answer {
		p := sample.Params{Temperature: 1, Seed: 3}
		change(&p)
		return engine.Answer{Sampling: p}
	}
	return []namedAnswer{
		{"greedy", engine.Answer{}},
		{"tempered", engine.Answer{Sampling: sample.Params{Temperature: 0.7, Seed: 3}}},
		{"truncated, the third answer", engine.Answer{Sampling: hot, SampleIndex: 2}},
		{"penalties", engine.Answer{Penalties: sample.Penalties{Repeat: 1.3, RepeatWindow: 20, Presence: 0.2, Frequency: 0.1}}},
		{"biases", engine.Answer{Sampling: hot, Penalties: sample.Penalties{
			Repeat: 1.1, RepeatWindow: -1, Bias: []sample.Bias{{ID: 3, Add: 2}, {ID: 5, Add: float32(math.Inf(-1))}},
		}}},
		{"a minimum of tokens", engine.Answer{Sampling: hot, Penalties: sample.Penalties{
			MinTokens: 60, Ends: []token.ID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, Frequency: -0.1,
		}}},
		{"DRY", engine.Answer{Sampling: hot, Penalties: sample.Penalties{DRY: sample.DRY{Multiplier: 0.8, Base: 1.75, AllowedLength: 1, Window: -1}}}},
		{"typical-p and XTC", warm(func(p *sample.Params) { p.TypicalP, p.XTC = 0.9, sample.XTC{Probability: 0.5, Threshold: 0.05} })},
		{"top-n-sigma and a dynamic temperature", warm(func(p *sample.Params) {
			p.Order, p.TopNSigma, p.DynamicTemperature = sample.TemperFirst, 2, sample.DynamicTemperature{Range: 0.5}
		})},
		{"mirostat 1", warm(func(p *sample.Params) { p.Mirostat = sample.Mirostat{Version: 1, Tau: 3, Eta: 0.1} })},
		{"mirostat 2", warm(func(p *sample.Params) { p.Mirostat = sample.Mirostat{Version: 2, Tau: 3, Eta: 0.1} })},
		{"a thinking budget", engine.Answer{Sampling: hot, Thinking: sample.Thinking{Budget: 3, Begin: []token.ID{1}, End: []token.ID{2, 3}}}},
	}
}

// TestDraftsChangeNothing draws by drafters of every character, alone and together, greedily and not, and
// expects the tokens and log-probabilities of plain decoding.
func TestDraftsChangeNothing(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	const n = 120
	for _, tt := range draftAnswers() {
		prompt := text(30)
		plain, err := newEngine(t, engine.Config{}).NewSequence(tt.answer)
		if err != nil {
			t.Fatal(err)
		}
		want := draw(t, plain, n, prompt)
		whole := slices.Clone(prompt)
		for _, c := range want {
			whole = append(whole, c.ID)
		}
		right, wrong, mixed, silent := characters(whole)
		forced := len(tt.answer.Thinking.End) // drafts that are accepted whatever drafters do
		for _, c := range []struct {
			name     string
			drafters []*drafter
			rounds   int // at most, where rows are cheap
			accepted int // drafts, at most
		}{
			{"right", []*drafter{right}, 20, n},
			{"wrong", []*drafter{wrong}, n, forced},
			{"mixed", []*drafter{mixed}, n, n},
			{"silent", []*drafter{silent}, n, forced},
			{"all", []*drafter{wrong, right, mixed, silent}, n, n},
		} {
			for _, cheap := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/cheap=%v", tt.name, c.name, cheap), func(t *testing.T) {
					e := newEngine(t, engine.Config{})
					d := drafting(t, e, c.drafters...)
					if cheap {
						cheapRows(e)
					}
					s, err := e.NewSequence(tt.answer)
					if err != nil {
						t.Fatal(err)
					}
					if err := s.SetDrafting(d, nil); err != nil {
						t.Fatal(err)
					}
					if got := draw(t, s, n, prompt); !slices.Equal(got, want) {
						t.Errorf("%v, want %v", got, want)
					}
					if st := s.SpecStats(); cheap && st.Rounds > c.rounds || st.Accepted > c.accepted {
						t.Errorf("%d rounds and %d accepted drafts for %d tokens; at most %d where rows are cheap, and %d", st.Rounds, st.Accepted, n, c.rounds, c.accepted)
					}
					for _, d := range c.drafters {
						if len(d.faults) > 0 || d.watched == 0 {
							t.Errorf("%d rows seen: %v", d.watched, d.faults)
						}
					}
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
				})
			}
		}
	}
}

func depth(t *method.Tree, node int) int {
	if node == method.Root {
		return 0
	}
	return int(t.Nodes()[node].Depth)
}

// TestDraftsAtTheEnds expects a text to go on after it was added to between the tokens of a round, and to end
// where the context does, as without drafts.
func TestDraftsAtTheEnds(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	copies := func(d *drafter, tree *method.Tree) { // of what plain decoding says: the text repeats
		at, text := method.Root, d.h.IDs()
		for i := range 12 {
			at = tree.Add(at, text[len(text)/2+i%3], 0, 0.9)
			tree.Add(method.Root, token.ID(i), 1, 0.5)
		}
	}
	run := func(d *drafter) (got []sample.Token, err error) {
		e := newEngine(t, engine.Config{Context: 100})
		s := sequence(t, e)
		if d != nil {
			all := drafting(t, e, d)
			cheapRows(e)
			if err := s.SetDrafting(all, nil); err != nil {
				t.Fatal(err)
			}
		}
		got = draw(t, s, 7, text(20))
		got = append(got, draw(t, s, 4, text(3))...)
		got = append(got, draw(t, s, 2, nil)...)
		for {
			c, err := s.Next(t.Context())
			if err != nil {
				return got, err
			}
			got = append(got, c.Token)
		}
	}
	want, wantErr := run(nil)
	got, err := run(&drafter{draft: copies})
	if !slices.Equal(got, want) || !errors.Is(err, engine.ErrContext) || err.Error() != wantErr.Error() {
		t.Errorf("%v, %v\nwant %v, %v", got, err, want, wantErr)
	}
}

// TestRoundAllocatesNothing holds rounds in the steady state to no allocation.
func TestRoundAllocatesNothing(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	e := newEngine(t, engine.Config{Context: 300})
	s := sequence(t, e)
	all := drafting(t, e, &drafter{draft: func(d *drafter, tree *method.Tree) {
		for i := range 6 {
			tree.Add(tree.Add(method.Root, token.ID(i), 0, 0.5), token.ID(i), 0, 0.5)
		}
	}})
	cheapRows(e)
	if err := s.SetDrafting(all, nil); err != nil {
		t.Fatal(err)
	}
	draw(t, s, 80, text(100))
	next := func() {
		if _, err := s.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(50, next); n > 0 {
		t.Errorf("%v allocations a token", n)
	}
}

// TestDraftsLeaveRoom expects the rows that a round leaves behind, until its tokens are taken, not to be in the way of
// another sequence's prompt.
func TestDraftsLeaveRoom(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	prompt := text(100)
	want := draw(t, sequence(t, newEngine(t, engine.Config{})), 5, prompt)
	e := newEngine(t, engine.Config{Chunk: 64, Seqs: 3})
	for range 2 {
		all := drafting(t, e, &drafter{draft: func(d *drafter, tree *method.Tree) {
			for id := range token.ID(48) {
				tree.Add(method.Root, id, 0, 0.5)
			}
		}})
		all.Eager()
		s := sequence(t, e)
		if err := s.SetDrafting(all, nil); err != nil {
			t.Fatal(err)
		}
		draw(t, s, 2, text(10))
	}
	if got := draw(t, sequence(t, e), 5, prompt); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestFollowAmongDrafts: where another token follows while a round's tokens are not all taken, the stages know those that were taken alone.
func TestFollowAmongDrafts(t *testing.T) {
	b := newBed(t, 1, modeltest.Spec{Context: 300}.File(t))
	open := func() (*engine.Engine, *engine.Sequence) {
		e := b.engine(t, engine.Config{})
		s, err := e.NewSequence(engine.Answer{Penalties: sample.Penalties{Presence: 5, Frequency: 2, Window: -1}})
		if err != nil {
			t.Fatal(err)
		}
		return e, s
	}
	prompt := text(20)
	_, plain := open()
	answer := slices.Clone(prompt)
	for _, c := range draw(t, plain, 60, prompt) {
		answer = append(answer, c.ID)
	}
	e, s := open()
	if err := s.SetDrafting(openDrafters(t, e, true, oracles), answer); err != nil {
		t.Fatal(err)
	}
	n := len(draw(t, s, 20, prompt))
	for ; !s.Drafted(); n++ {
		if n == 50 {
			t.Fatal("no draft was accepted")
		}
		draw(t, s, 1)
	}
	_, plain = open()
	draw(t, plain, n, prompt)
	other := (answer[20+n] + 1) % 48
	if err := errors.Join(plain.Follow(other), s.Follow(other)); err != nil {
		t.Fatal(err)
	}
	if want, got := draw(t, plain, 20), draw(t, s, 20); !slices.Equal(got, want) {
		t.Errorf("behind %d tokens: %v, want %v", n, got, want)
	}
}
