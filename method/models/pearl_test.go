package models

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"grove/internal/forest"
	"grove/internal/sample"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
)

const pearlVocabulary = 10

// openPearl returns a text with a drafter that makes so many drafts a step.
func openPearl(t testing.TB, m *growtest.Model, window int) (*growtest.Text, *pearlDrafter) {
	t.Helper()
	d := newDrafter(method.Env{Vocabulary: pearlVocabulary, Draft: m})
	d.least, d.most = window, window
	return &growtest.Text{Drafter: d}, d
}

// TestModes follows a text through both modes: the drafts that a step leaves are the next tree where the first one was accepted.
func TestModes(t *testing.T) {
	m := growtest.Cycle(pearlVocabulary, 1)
	x, d := openPearl(t, m, 3)
	x.Begin(t, 1, 2)
	drafts := func(want ...token.ID) {
		t.Helper()
		if got := growtest.IDs(x.Draft(t, 64)); !slices.Equal(got, want) {
			t.Errorf("drafts %v, want %v", got, want)
		}
		d.Work(t.Context())
	}
	drafts()       // pre-verify: 3, 4, 5 are made
	x.Add(3)       // the first was right
	drafts(4, 5)   // post-verify: 6, 7, 8 are made
	x.Add(4, 5, 6) // all were, and the first of the new ones
	drafts(7, 8)   // 9, 0, 1
	x.Add(7, 2)    // a rejection
	drafts()       // 3, 4, 5
	x.Add(9)       // another
	drafts()       // 0, 1, 2
	x.Add(0)       // the first was right
	drafts(1, 2)   // 3, 4, 5
	x.Add(1)       // the step had room for no draft
	drafts(2, 3, 4, 5)
	if s := d.model.Trunk.(*growtest.Sequence); len(s.Trunk) >= d.certain || s.Most > method.MaxLive {
		t.Errorf("a trunk of %d of %d tokens, %d rows", len(s.Trunk), d.certain, s.Most)
	}
	x.Begin(t, 5)
	drafts()
	x.Add(6)
	drafts(7, 8)
	m.Fail = errors.New("broken")
	d.Work(t.Context())
	if err := d.Draft(t.Context(), method.NewTree(4, pearlVocabulary)); !errors.Is(err, m.Fail) {
		t.Errorf("error %v", err)
	}
	if err := d.Close(); err != nil || !d.model.Trunk.(*growtest.Sequence).Shut {
		t.Errorf("closed: %v", err)
	}
}

// TestWindow expects a step that is over to have its least drafts, one that goes on its most, and few drafts to wait.
func TestWindow(t *testing.T) {
	d := newDrafter(method.Env{Vocabulary: pearlVocabulary, Draft: growtest.Cycle(pearlVocabulary, 1)})
	x := &growtest.Text{Drafter: d}
	over, end := context.WithCancel(t.Context())
	end()
	for _, c := range []struct {
		ctx  context.Context
		want int
	}{{over, pearlLeast}, {t.Context(), pearlLeast + pearlMost}, {t.Context(), pearlLongest}, {over, pearlLongest}} {
		if c.want == pearlLeast {
			x.Begin(t, 3)
		}
		d.Work(c.ctx)
		if len(d.probs) != c.want {
			t.Errorf("%d drafts wait, want %d", len(d.probs), c.want)
		}
	}
}

// TestPearlCoupled expects the drafts to be the tokens that the target would draw, where the draft model is the target.
func TestPearlCoupled(t *testing.T) {
	m := growtest.Random(pearlVocabulary, 2)
	p := sample.Params{Temperature: 1, Seed: 8}
	x, d := openPearl(t, m, 9)
	x.Noise.Sampling = p
	x.Begin(t, 4, 1)
	d.Work(t.Context())
	chain, err := sample.NewChain(sample.Settings{Params: p}, pearlVocabulary)
	if err != nil {
		t.Fatal(err)
	}
	last := token.ID(1)
	for i, id := range growtest.IDs(x.Draft(t, 64)) {
		want, err := chain.Draw(0, m.Next([]token.ID{last}, forest.Row{}), 2+i)
		if err != nil || id != want.ID {
			t.Fatalf("draft %d is %d, the target draws %d (%v)", i, id, want.ID, err)
		}
		last = id
	}
}

// TestAllocations expects what runs no rows to allocate nothing.
func TestAllocations(t *testing.T) {
	x, d := openPearl(t, growtest.Cycle(pearlVocabulary, 1), 3)
	x.Begin(t, slices.Repeat([]token.ID{1}, 200)...)
	tree, rates := method.NewTree(8, pearlVocabulary), method.NewRates(1)
	if n := testing.AllocsPerRun(50, func() {
		d.text, d.probs = append(d.text[:d.certain], 3, 4, 5), append(d.probs[:0], 1, 1, 1)
		tree.Reset(8, rates)
		if err := d.Draft(t.Context(), tree); err != nil || tree.Len() != 3 {
			t.Fatal(err)
		}
		d.Committed(method.Update{IDs: d.text[d.certain : d.certain+2]})
	}); n > 0.1 { // the text's own growth
		t.Errorf("%v allocations a round", n)
	}
}

// speed returns how many tokens are decoded in the time of a step of the target where a draft is accepted with probability alpha, a step makes g
// drafts, and a draft takes c steps, by the formula: post-verify gives (1-alpha^g)/(1-alpha) tokens, pre-verify one, and a share alpha/(1+alpha-alpha^g)
// of the steps is post-verify.
func speed(alpha, c float64, g int) float64 {
	all := math.Pow(alpha, float64(g))
	post := alpha / (1 + alpha - all)
	return (post*(1-all)/(1-alpha) + 1 - post) / max(1, float64(g)*c)
}

// sequential is the same of drafting before each step.
func sequential(alpha, c float64, g int) float64 {
	return (1 - math.Pow(alpha, float64(g+1))) / (1 - alpha) / (1 + float64(g)*c)
}

// TestSpeed decodes texts whose tokens agree with the draft model by chance, and holds the tokens a step to the formula; a window of one draft
// gives one token a step.
func TestSpeed(t *testing.T) {
	for _, c := range []struct {
		alpha, c   float64
		g          int
		want       float64 // speed-up
		before     int     // drafts before each step
		sequential float64
	}{
		{0.8, 0.2, 5, 2.283, 4, 1.868},
		{0.6, 0.1, 10, 1.559, 3, 1.674}, // where drafting is cheap and acceptance low, drafting ahead loses
		{0.8, 0.2, 1, 1, 4, 1.868},
	} {
		if got := speed(c.alpha, c.c, c.g); math.Abs(got-c.want) > 0.0006 {
			t.Errorf("%+v: the formula gives %.4f", c, got)
		}
		if got := sequential(c.alpha, c.c, c.before); math.Abs(got-c.sequential) > 0.0006 {
			t.Errorf("%+v: drafting before each step gives %.4f", c, got)
		}
		m := growtest.Cycle(pearlVocabulary, 1)
		m.Dims.Context = 1 << 30
		x, d := openPearl(t, m, c.g)
		rng, last := rand.New(rand.NewPCG(3, 3)), token.ID(1)
		const steps = 20_000
		tokens := 0
		for step := range steps {
			if step%100 == 0 {
				// A short text: the scripted model is slow behind a long one. The mode stays that of a rejection, one step in a hundred.
				x.Begin(t, last)
			}
			drafts := growtest.IDs(x.Draft(t, 64))
			d.Work(t.Context())
			var got []token.ID
			for right := true; right && len(got) <= len(drafts); {
				right = rng.Float64() < c.alpha
				if last = (last + 1) % pearlVocabulary; !right {
					last = (last + 1 + token.ID(rng.IntN(pearlVocabulary-1))) % pearlVocabulary
				}
				got = append(got, last)
				right = right && len(got) <= len(drafts)
			}
			x.Add(got...)
			tokens += len(got)
		}
		got := float64(tokens) / steps / max(1, float64(c.g)*c.c)
		if math.Abs(got-c.want) > 0.03*c.want {
			t.Errorf("%+v: %.3f in %d steps", c, got, steps)
		}
		t.Logf("alpha %.1f, a draft in %.1f steps, %d drafts: %.3f (formula %.3f), before each step %.3f", c.alpha, c.c, c.g, got, c.want, c.sequential)
	}
}
