package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"grove/internal/engine"
	"grove/internal/forest"
	"grove/internal/sample"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
	"grove/method"
)

// These drafters are of kinds that methods to come need. What they draft is of no interest; the text is that of plain
// decoding, alone and among other sequences.

// deep is a model of four layers.
func deep(t *testing.T) *bed {
	return newBed(t, few(), modeltest.Spec{Context: 300, Layers: 4}.File(t))
}

// among draws a text by a drafting and, at the same time, three others plainly, and expects the texts that plain
// decoding gives alone.
func among(t *testing.T, b *bed, d each, eager bool) engine.SpecStats {
	t.Helper()
	return amongAll(t, b, eager, d)
}

// amongAll is among for several drafters of one text.
func amongAll(t *testing.T, b *bed, eager bool, all ...each) engine.SpecStats {
	t.Helper()
	const n = 60
	answer := engine.Answer{Sampling: sample.Params{Temperature: 1, Seed: 9}}
	prompt := func(i int) []token.ID { return text(40 + 13*i)[i:] }
	var want [4][]sample.Token
	for i := range want {
		s, err := b.engine(t, engine.Config{}).NewSequence(answer)
		if err != nil {
			t.Fatal(err)
		}
		want[i] = draw(t, s, n, prompt(i))
	}
	e := b.engine(t, engine.Config{Seqs: 4})
	var stats engine.SpecStats
	var group sync.WaitGroup
	for i := range want {
		s, err := e.NewSequence(answer)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			whole := slices.Clone(prompt(0))
			for _, c := range want[0] {
				whole = append(whole, c.ID)
			}
			if err := s.SetDrafting(openDrafters(t, e, eager, all...), whole); err != nil {
				t.Fatal(err)
			}
		}
		group.Go(func() {
			if err := s.Append(t.Context(), prompt(i)); err != nil {
				t.Error(err)
				return
			}
			for k := range want[i] {
				got, err := s.Next(t.Context())
				if err != nil || got.Token != want[i][k] {
					t.Errorf("sequence %d, token %d: %v, want %v: %v", i, k, got, want[i][k], err)
					return
				}
			}
			if i == 0 {
				stats = s.SpecStats()
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if u, live, open := e.Held(); u.Used != 0 || live != 0 || open != 0 {
		t.Errorf("%d pages, %d rows and %d sequences are left", u.Used, live, open)
	}
	return stats
}

// copies drafts what the prediction says, for drafters that do so besides.
func copies(d *drafter, t *method.Tree) {
	at := method.Root
	for _, id := range d.answer(len(d.h.IDs()))[:min(4, len(d.answer(len(d.h.IDs()))))] {
		if at = t.Add(at, id, 0, 0.9); at == method.Root {
			return
		}
	}
}

// TestHiddenStates: a drafter sees the stream after two layers behind every row of its rounds and of its prompt, and
// nothing of a prefix that the cache had.
func TestHiddenStates(t *testing.T) {
	b := deep(t)
	layers := forest.Layers{}.With(0).With(2)
	var prompts, rounds atomic.Int32
	d := func() *drafter {
		return &drafter{
			draft: copies,
			wants: method.Wants{Rows: forest.Want{Hidden: layers}, Prompt: forest.Want{Hidden: layers}},
			rows: func(_ *drafter, r method.Update) {
				for i, row := range r.Rows {
					switch {
					case len(row.Hidden) != 2 || len(row.Hidden[0]) != 64 || slices.Equal(row.Hidden[0], row.Hidden[1]):
						t.Errorf("row %d of %d has %d hidden states", i, len(r.Rows), len(row.Hidden))
					case len(r.IDs) > 20:
						prompts.Add(1)
					default:
						rounds.Add(1)
					}
				}
			},
		}
	}
	if st := among(t, b, d, true); st.Accepted < 20 {
		t.Errorf("%d drafts accepted", st.Accepted)
	}
	if rounds.Load() < 60 {
		t.Errorf("%d rows of rounds were seen", rounds.Load())
	}
}

// TestResumed: a drafter runs the first two layers of what it drafts on the text's own trunk, reads logits there, and
// leaves the rows to the verifying step, which takes them further. Two thirds of the drafts are right.
func TestResumed(t *testing.T) {
	if st := among(t, deep(t), resumer(2, 5), true); st.Accepted < 20 || st.Accepted == st.Drafted {
		t.Errorf("%d of %d drafts accepted", st.Accepted, st.Drafted)
	}
}

// resumer drafts length tokens by rows that it leaves at a layer.
func resumer(exit, length int) each {
	return func() *drafter {
		return &drafter{draft: func(d *drafter, tree *method.Tree) {
			ids := d.h.IDs()
			next := d.answer(len(ids))
			rows := []method.Row{{Row: forest.Row{ID: d.h.Last(0), To: exit, Want: forest.Want{Logits: true}}}}
			at := method.Root
			var places []int
			for i, id := range next[:min(length, len(next))] {
				if (len(ids)+i)%3 == 0 {
					id = (id + 1) % 48
				}
				if at = tree.Add(at, id, 0, 0.9); at == method.Root {
					break
				}
				places = append(places, at)
				rows = append(rows, method.Row{Row: forest.Row{ID: id, To: exit, Want: forest.Want{Logits: true}}, After: len(rows)})
			}
			got, err := d.own.Grow(context.Background(), rows)
			if errors.Is(err, method.ErrPreempted) || errors.Is(err, forest.ErrScratch) {
				return
			}
			if err != nil {
				panic(err)
			}
			for i, r := range got {
				if len(r.Logits) != 48 {
					panic(fmt.Sprintf("row %d has %d logits", i, len(r.Logits)))
				}
				node, parent := method.Root, forest.Trunk
				if i > 0 {
					node, parent = places[i-1], got[i-1].Node
				}
				tree.Resume(node, method.Live{Node: r.Node, Parent: parent, Layer: exit})
			}
		}}
	}
}

// TestResumedBeside: rows that drafters leave are taken further or run anew, whatever other drafters of the text do: leave rows of the same
// drafts at other layers, drop all rows, want states of layers that the rows have passed, leave as many as there is room for.
func TestResumedBeside(t *testing.T) {
	drops := each(func() *drafter {
		return &drafter{draft: func(d *drafter, tree *method.Tree) {
			if len(d.h.IDs())%2 == 0 {
				if err := d.own.Drop(); err != nil {
					panic(err)
				}
			}
			copies(d, tree)
		}}
	})
	states := each(func() *drafter {
		return &drafter{draft: copies, wants: method.Wants{Rows: forest.Want{Hidden: forest.Layers{}.With(1)}}, rows: func(_ *drafter, r method.Update) {
			for i, row := range r.Rows {
				if len(r.IDs) < 20 && (len(row.Hidden) != 1 || len(row.Hidden[0]) != 64) {
					t.Errorf("row %d has %d hidden states", i, len(row.Hidden))
				}
			}
		}}
	})
	crowd := each(func() *drafter {
		return &drafter{draft: func(d *drafter, tree *method.Tree) {
			for err := error(nil); err == nil; {
				_, err = d.own.Grow(context.Background(), []method.Row{{Row: forest.Row{ID: d.h.Last(0), To: 1}}, {Row: forest.Row{ID: 3, To: 1}}})
				if err != nil && !errors.Is(err, method.ErrPreempted) && !errors.Is(err, forest.ErrScratch) {
					panic(err)
				}
			}
			copies(d, tree)
		}}
	})
	b := deep(t)
	for name, all := range map[string][]each{
		"layers": {resumer(2, 1), resumer(1, 5), resumer(3, 3)}, "drops": {resumer(2, 5), drops, resumer(1, 5)}, "states": {resumer(2, 5), states, resumer(1, 5)},
		"crowd": {resumer(2, 5), crowd, resumer(1, 5)}, "behind a crowd": {crowd, resumer(2, 5)},
	} {
		for _, eager := range []bool{true, false} {
			if st := amongAll(t, b, eager, all...); eager && st.Accepted < 30 && name != "behind a crowd" { // which leaves no room
				t.Errorf("%s: %d drafts accepted", name, st.Accepted)
			}
		}
	}
}

// TestVectorRows: rows that a drafter feeds with vectors, behind the text and behind each other, are dropped and
// leave no trace.
func TestVectorRows(t *testing.T) {
	b := deep(t)
	d := func() *drafter {
		return &drafter{draft: func(d *drafter, tree *method.Tree) {
			vector := make([]float32, 64)
			for i := range vector {
				vector[i] = float32(i%7) - 3
			}
			rows := []method.Row{
				{Row: forest.Row{ID: d.h.Last(0)}},
				{Row: forest.Row{Vector: vector, Want: forest.Want{Top: 3}}, After: 1},
				{Row: forest.Row{Vector: vector, Shift: 1, Want: forest.Want{Top: 3}}, After: 2},
				{Row: forest.Row{Mix: []forest.Weighted{{ID: 3, Weight: 0.5}, {ID: 9, Weight: 0.5}}, Want: forest.Want{Top: 1}}, After: 1},
			}
			got, err := d.own.Grow(context.Background(), rows)
			if errors.Is(err, method.ErrPreempted) {
				return
			}
			if err != nil {
				panic(err)
			}
			for _, r := range got[1:] {
				tree.Add(method.Root, r.Top[0].ID, 1, 0.5)
			}
			if err := d.own.Drop(); err != nil {
				panic(err)
			}
			copies(d, tree)
		}}
	}
	if st := among(t, b, d, true); st.Accepted < 20 {
		t.Errorf("%d drafts accepted", st.Accepted)
	}
}

// TestAhead: a drafter works while the target's step runs; its work has ended before its next call.
func TestAhead(t *testing.T) {
	b := deep(t)
	var worked, running atomic.Int32
	d := func() *drafter {
		return &drafter{
			draft: func(d *drafter, tree *method.Tree) {
				if running.Load() != 0 {
					t.Error("the drafter drafts while it works")
				}
				copies(d, tree)
			},
			ahead: func(ctx context.Context) {
				running.Add(1)
				defer running.Add(-1)
				<-ctx.Done() // the step has ended
				worked.Add(1)
			},
		}
	}
	st := among(t, b, d, true)
	if int(worked.Load()) != st.Rounds {
		t.Errorf("it worked %d times in %d rounds", worked.Load(), st.Rounds)
	}
}

// words is a stage that allows some tokens only, and knows what follows one of them.
type words struct {
	legal  []token.ID
	forced map[token.ID][]token.ID
}

func (words) Start([]token.ID) sample.StageState { return 0 }

func (words) Next(_ sample.StageState, id token.ID) sample.StageState {
	return sample.StageState(id) + 1
}

func (w words) Apply(s sample.StageState, logits []float32) {
	for id := range logits {
		if !w.Allows(s, token.ID(id)) {
			logits[id] = float32(math.Inf(-1))
		}
	}
}

func (w words) Allows(s sample.StageState, id token.ID) bool {
	if next := w.Forced(s); len(next) > 0 {
		return id == next[0]
	}
	return slices.Contains(w.legal, id)
}

func (w words) Forced(s sample.StageState) []token.ID {
	if s == 0 {
		return nil
	}
	return w.forced[token.ID(s)-1]
}

// TestWords: a stage says which tokens are legal; no other is drafted or drawn, what is forced is drafted for free,
// and drafts change nothing.
func TestWords(t *testing.T) {
	b := deep(t)
	stage := words{legal: []token.ID{3, 5, 8, 13, 21, 34}, forced: map[token.ID][]token.ID{8: {40, 41, 42}, 40: {41, 42}, 41: {42}}}
	run := func(draft bool) ([]sample.Token, engine.SpecStats) {
		e := b.engine(t, engine.Config{})
		s, err := e.NewSequence(engine.Answer{Sampling: sample.Params{Temperature: 1, Seed: 4}, Stages: []sample.Stage{stage}})
		if err != nil {
			t.Fatal(err)
		}
		if draft {
			d := func() *drafter {
				return &drafter{draft: func(d *drafter, tree *method.Tree) {
					for id := range token.ID(48) {
						if at := tree.Add(method.Root, id, 0, 0.5); at != method.Root && !stage.Allows(sample.StageState(d.h.Last(0))+1, id) {
							t.Errorf("token %d was drafted behind %d", id, d.h.Last(0))
						}
					}
				}}
			}
			if err := s.SetDrafting(openDrafters(t, e, true, d), nil); err != nil {
				t.Fatal(err)
			}
		}
		return draw(t, s, 80, text(20)), s.SpecStats()
	}
	want, _ := run(false)
	got, st := run(true)
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for i, c := range got {
		if !slices.Contains(stage.legal, c.ID) && (c.ID < 40 || c.ID > 42) {
			t.Errorf("token %d is %d", i, c.ID)
		}
	}
	if st.Rounds > 70 {
		t.Errorf("%d rounds for 80 tokens: what is forced costs rounds", st.Rounds)
	}
	nothing := words{}
	s, err := b.engine(t, engine.Config{}).NewSequence(engine.Answer{Stages: []sample.Stage{nothing}})
	if err != nil {
		t.Fatal(err)
	}
	draw(t, s, 0, text(5))
	if _, err := s.Next(t.Context()); !errors.Is(err, sample.ErrAllMasked) {
		t.Errorf("a mask that forbids every token: %v", err)
	}
}

// faulty is a stage that panics behind some token.
type faulty struct{ words }

func (faulty) Apply(s sample.StageState, _ []float32) {
	if s > 30 {
		panic("the stage has a fault")
	}
}

// TestPanics: a stage, a method or its work that panics fails its own sequence and no other, whoever makes the step.
func TestPanics(t *testing.T) {
	b := deep(t)
	want := draw(t, sequence(t, b.engine(t, engine.Config{})), 40, text(30))
	broken := func(where string) each {
		return func() *drafter {
			d := &drafter{draft: func(d *drafter, tree *method.Tree) {
				if where == "draft" && len(d.h.IDs()) > 36 {
					panic("the method has a fault")
				}
				oracles().draft(d, tree)
			}}
			if where == "ahead" {
				d.ahead = func(context.Context) { panic("its work has a fault") }
			}
			return d
		}
	}
	for _, where := range []string{"stage", "stage with drafts", "draft", "ahead"} {
		e := b.engine(t, engine.Config{Seqs: 3})
		answer := engine.Answer{Sampling: sample.Params{Temperature: 1, Seed: 9}}
		if where == "stage" || where == "stage with drafts" {
			answer.Stages = []sample.Stage{faulty{}}
		}
		s, err := e.NewSequence(answer)
		if err != nil {
			t.Fatal(err)
		}
		if where != "stage" {
			if err := s.SetDrafting(openDrafters(t, e, true, broken(where)), nil); err != nil {
				t.Fatal(err)
			}
		}
		var all sync.WaitGroup
		for range 2 {
			o := sequence(t, e)
			all.Go(func() {
				if err := o.Append(t.Context(), text(30)); err != nil {
					t.Error(err)
				}
				for k := range want {
					if got, err := o.Next(t.Context()); err != nil || got.Token != want[k] {
						t.Errorf("%s: token %d of another sequence: %v, want %v: %v", where, k, got, want[k], err)
						break
					}
				}
				if err := o.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		err = s.Append(t.Context(), text(30))
		for i := 0; i < 60 && err == nil; i++ {
			_, err = s.Next(t.Context())
		}
		if !errors.Is(err, engine.ErrPanic) {
			t.Errorf("%s: %v", where, err)
		}
		all.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if u, live, open := e.Held(); u.Used != 0 || live != 0 || open != 0 {
			t.Errorf("%s: %d pages, %d rows and %d sequences are left", where, u.Used, live, open)
		}
	}
}

// TestForkLimits: a fork beyond the slots is refused, a cancelled sequence ends and is refused later, and a fork
// shares its pages.
func TestForkLimits(t *testing.T) {
	e := newEngine(t, engine.Config{Seqs: 3})
	s := sequence(t, e)
	draw(t, s, 3, text(150))
	before, _, _ := e.Held()
	var forks []*engine.Sequence
	for i := range 2 {
		f, err := s.Fork(i + 1)
		if err != nil {
			t.Fatal(err)
		}
		forks = append(forks, f)
	}
	if u, _, _ := e.Held(); u.Used != before.Used+2 { // the page that is not full is copied
		t.Errorf("%d pages before, %d after two forks", before.Used, u.Used)
	}
	if _, err := s.Fork(9); !errors.Is(err, engine.ErrBusy) {
		t.Errorf("a fork beyond the slots: %v", err)
	}
	if slices.Equal(draw(t, forks[0], 20), draw(t, forks[1], 20)) {
		t.Error("two sample indices give the same text")
	}
	g := newGate(t, 1, nil)
	var end sync.WaitGroup
	end.Go(func() {
		if _, err := forks[1].Next(g); !errors.Is(err, engine.ErrCancelled) {
			t.Errorf("a call that was cancelled: %v", err)
		}
	})
	<-g.held
	forks[0].CancelSiblings()
	close(g.open)
	end.Wait()
	if _, err := s.Next(t.Context()); !errors.Is(err, engine.ErrCancelled) {
		t.Errorf("a later call: %v", err)
	}
	draw(t, forks[0], 3)
	for _, q := range append(forks, s) {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Fork(1); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("a fork of a closed sequence: %v", err)
	}
	if err := s.Truncate(1); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("a closed sequence is cut: %v", err)
	}
}

// TestGrowthLeft: rows that a drafter left on the text's own trunk when it failed are gone when the text goes on.
func TestGrowthLeft(t *testing.T) {
	b := deep(t)
	failed := errors.New("the drafter has failed")
	for _, panics := range []bool{false, true} {
		fails := true
		d := func() *drafter {
			return &drafter{draft: func(d *drafter, tree *method.Tree) {
				if _, err := d.own.Grow(context.Background(), []method.Row{{Row: forest.Row{ID: d.h.Last(0), To: 1}}}); err != nil {
					panic(err)
				}
				if fails && panics {
					panic(failed)
				}
				copies(d, tree)
			}}
		}
		whole := text(30)
		plain := sequence(t, b.engine(t, engine.Config{}))
		want := append(draw(t, plain, 3, text(30)), draw(t, plain, 9, text(70)[50:])...)
		for _, c := range want {
			whole = append(whole, c.ID)
		}
		e := b.engine(t, engine.Config{})
		s := sequence(t, e)
		if err := s.SetDrafting(openDrafters(t, e, true, d), whole); err != nil {
			t.Fatal(err)
		}
		draw(t, s, 1, text(30))
		got := want[:1:1]
		if panics {
			if _, err := s.Next(t.Context()); !errors.Is(err, engine.ErrPanic) {
				t.Fatal(err)
			}
		}
		fails = false
		got = append(got, draw(t, s, 2)...)
		got = append(got, draw(t, s, 9, text(70)[50:])...)
		if !slices.Equal(got, want) {
			t.Errorf("panics %v: %v, want %v", panics, got, want)
		}
	}
}

// TestLent: a drafter gets the embedding of a token, and the head's logits behind a state of its own, by rows that pass over every layer: so a
// draft module borrows both from the target.
func TestLent(t *testing.T) {
	b := deep(t)
	all := forest.LayerRange(0, 4)
	d := func() *drafter {
		return &drafter{draft: func(d *drafter, tree *method.Tree) {
			ctx := context.Background()
			row := func(r forest.Row) method.Row {
				r.Skip, r.Want = all, forest.Want{Logits: true, Hidden: forest.Layers{}.With(3)}
				return method.Row{Row: r}
			}
			got, err := d.own.Grow(ctx, []method.Row{row(forest.Row{ID: d.h.Last(0)})})
			if errors.Is(err, method.ErrPreempted) {
				return
			}
			if err != nil {
				panic(err)
			}
			embedding, logits := slices.Clone(got[0].Hidden[0]), slices.Clone(got[0].Logits)
			got, err = d.own.Grow(ctx, []method.Row{row(forest.Row{Vector: embedding})})
			if err != nil {
				panic(err)
			}
			if !slices.Equal(got[0].Logits, logits) || len(embedding) != 64 {
				panic("the head gives other logits behind the same state")
			}
			if err := d.own.Drop(); err != nil {
				panic(err)
			}
			copies(d, tree)
		}}
	}
	if st := among(t, b, d, true); st.Accepted < 20 {
		t.Errorf("%d drafts accepted", st.Accepted)
	}
}

// TestStreams: the streams that a row had behind its layers, as the vectors of rows that pass over all layers, give the logits of rows that stop
// there, bit for bit, beside a row that runs layers.
func TestStreams(t *testing.T) {
	b := deep(t)
	d := func() *drafter {
		return &drafter{draft: func(d *drafter, tree *method.Tree) {
			ctx, last, head := context.Background(), d.h.Last(0), forest.Want{Logits: true}
			got, err := d.own.Grow(ctx, []method.Row{{Row: forest.Row{ID: last, To: 3, Want: forest.Want{Logits: true, Hidden: forest.LayerRange(0, 2)}}}})
			if errors.Is(err, method.ErrPreempted) {
				return
			}
			if err != nil {
				panic(err)
			}
			rows := []method.Row{{Row: forest.Row{ID: last, Want: head}}}
			for _, stream := range got[0].Hidden {
				rows = append(rows, method.Row{Row: forest.Row{Vector: slices.Clone(stream), Skip: forest.LayerRange(0, 4), Want: head}})
			}
			for to := range 2 {
				rows = append(rows, method.Row{Row: forest.Row{ID: last, To: to + 1, Want: head}})
			}
			if got, err = d.own.Grow(ctx, rows); err != nil {
				panic(err)
			}
			if len(got) != 5 || !slices.Equal(got[1].Logits, got[3].Logits) || !slices.Equal(got[2].Logits, got[4].Logits) || slices.Equal(got[1].Logits, got[2].Logits) {
				panic("the head gives other logits behind the streams")
			}
			if err := d.own.Drop(); err != nil {
				panic(err)
			}
			copies(d, tree)
		}}
	}
	if st := among(t, b, d, true); st.Accepted < 20 {
		t.Errorf("%d drafts accepted", st.Accepted)
	}
}

// TestPassesThatDoNotPay: a method that takes passes and is never right is asked in a few rounds of a text, and then seldom.
func TestPassesThatDoNotPay(t *testing.T) {
	b := deep(t)
	asked := 0
	info := method.Info{Name: "test", RunsRows: true, Open: func(method.Env) (method.Method, error) {
		return each(func() *drafter {
			return &drafter{draft: func(d *drafter, tree *method.Tree) {
				asked++
				rows := []method.Row{{Row: forest.Row{ID: d.h.Last(0), Skip: forest.LayerRange(1, 2)}}}
				if _, err := d.own.Grow(context.Background(), rows); err != nil {
					panic(err)
				}
				tree.Add(method.Root, 0, 0, 0.3)
			}}
		}), nil
	}}
	e := b.engine(t, engine.Config{})
	all, err := e.OpenDrafting(t.Context(), []method.Info{info}, method.Env{})
	if err != nil {
		t.Fatal(err)
	}
	s := sequence(t, e)
	if err := s.SetDrafting(all, nil); err != nil {
		t.Fatal(err)
	}
	draw(t, s, 200, text(20))
	if asked == 0 || asked > 20 {
		t.Errorf("asked in %d of %d rounds", asked, s.SpecStats().Rounds)
	}
}
