package diffuse

import (
	"math"
	"slices"
	"strings"
	"testing"

	"grove/internal/sample"
	"grove/internal/text/token"
)

// chains returns a sampler of the random model's eight tokens; penalised, it is a follower.
func chains(t *testing.T, seed uint64, penalised bool, top int, drawn bool) Sampler {
	t.Helper()
	free := sample.Settings{Params: sample.Params{Temperature: float32(seed%3) / 2, Seed: seed}}
	if penalised {
		free.Penalties.Presence, free.Penalties.Frequency = 1.5, 0.5
	}
	d := Draws{Settings: free, Prompt: []token.ID{5, 6}, Vocabulary: 8, Top: top, Drawn: drawn}
	by, err := NewSampler(d, penalised)
	if err != nil || d.ReadText() != penalised {
		t.Fatal(d.ReadText(), err)
	}
	return by
}

// complete fills a canvas, and reports what the last pass fixed after each.
func complete(t *testing.T, s Settings, m Board, by Sampler, each func(before, now []Place)) []Place {
	t.Helper()
	g, err := New([]token.ID{5, 6}, s, m, by)
	if err != nil {
		t.Fatal(err)
	}
	for !g.Done() {
		before := slices.Clone(g.canvas)
		if err := g.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if each != nil {
			each(before, g.canvas)
		}
	}
	return g.canvas
}

// placeByPlace is the reference of a canvas that is filled from the left, one place a pass: each is drawn from the logits of the whole canvas, by the text before it.
func placeByPlace(t *testing.T, s Settings, m Board, by Follower) (ids []token.ID) {
	t.Helper()
	text := slices.Concat([]token.ID{5, 6}, slices.Repeat([]token.ID{s.Mask}, s.Length))
	for at := range s.Length {
		rows := make([]Row, len(text))
		for place, id := range text {
			rows[place] = Row{Place: place, ID: id, Want: true}
		}
		if err := m.Pass(t.Context(), [][]Row{rows}, 0); err != nil {
			t.Fatal(err)
		}
		logits := m.Logits(0, 2+at)
		logits[s.Mask] = masked
		id, err := by.Follow(logits, at, at)
		if err != nil {
			t.Fatal(err)
		}
		by.Add(id)
		text[2+at] = id
		ids = append(ids, id)
	}
	return ids
}

// TestLeft: with penalties of repetitions the order left has the tokens of the reference, other policies fix runs from the first mask on, and each of their tokens is
// what the text before it gives with the logits of its pass.
func TestLeft(t *testing.T) {
	runs, passes := 0, 0
	for seed := range uint64(24) {
		s := Settings{Length: 12, Left: true, Policy: "static:order=left"}
		follower := func() Follower { return chains(t, seed, true, 0, false).(Follower) }
		got := complete(t, s, &random{seed: seed, prompt: 2}, follower(), nil)
		want := placeByPlace(t, s, &random{seed: seed, prompt: 2}, follower())
		for at, id := range want {
			if got[at].ID != id {
				t.Fatalf("seed %d: place %d is %d, want %d", seed, at, got[at].ID, id)
			}
		}
		for _, policy := range []string{"threshold:p=0.3", "factor:f=2", "entropy:h=1.9", "static", "timestep", "credit:p=0.3", "hierarchical", "dimple", "ccd"} {
			s := Settings{Length: 12, Block: 6, Left: true, Policy: policy, Passes: 6}
			complete(t, s, &random{seed: seed, prompt: 2}, follower(), func(before, now []Place) {
				first := slices.IndexFunc(before, func(p Place) bool { return p.ID == s.Mask })
				end := slices.IndexFunc(now, func(p Place) bool { return p.ID == s.Mask })
				if end < 0 {
					end = len(now)
				}
				if end <= first || !slices.Equal(before[:first], now[:first]) || slices.ContainsFunc(now[end:], func(p Place) bool { return p.ID != s.Mask }) {
					t.Errorf("%s: %v\nbecomes %v", policy, before, now)
				}
				passes++
				runs += end - first
			})
		}
	}
	if runs == passes {
		t.Error("no pass fixed several places")
	}
}

// abcd is a follower whose text is 1 2 3 4 1 2 3 4 and so on, in which 3 must follow 2, and which ends behind so many tokens.
type abcd struct {
	greedy
	n, end int
}

func (f *abcd) Follow([]float32, int, int) (token.ID, error) { return token.ID(1 + f.n%4), nil }
func (f *abcd) Must() token.ID {
	if f.n%4 == 2 {
		return 3
	}
	return token.None
}
func (f *abcd) Add(token.ID) { f.n++ }
func (f *abcd) Ended() bool  { return f.n == f.end }

// TestLeftMust: what must follow is fixed in the pass that fixes what is before it, and a text that has ended leaves masks.
func TestLeftMust(t *testing.T) {
	m := &random{seed: 3, prompt: 2}
	g, err := New([]token.ID{5, 6}, Settings{Length: 12, Left: true, Policy: "static:order=left"}, m, &abcd{end: 7})
	if err != nil {
		t.Fatal(err)
	}
	var fixed []int
	for !g.Done() {
		if err := g.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		fixed = append(fixed, len(g.Finished()))
	}
	for more := true; more && err == nil; _, more, err = g.Next(t.Context()) {
		if n := g.given; g.Ended() != (n == 7) {
			t.Errorf("behind %d tokens the text has ended: %v", n, g.Ended())
		}
	}
	if want := []int{1, 3, 4, 5, 7}; !slices.Equal(fixed, want) || !g.Ended() || len(g.canvas) != 12 {
		t.Errorf("%v places are fixed, want %v; ended: %v", fixed, want, g.Ended())
	}
}

// TestLeftRefused names what fixes places in another order.
func TestLeftRefused(t *testing.T) {
	for _, c := range []struct {
		setting string
		s       Settings
	}{
		{"policy", Settings{Policy: "rcr"}}, {"policy", Settings{Policy: "ete"}}, {"drafts", Settings{Policy: "static", Drafts: 2}}, {"early", Settings{Early: "prophet"}},
		{"cache", Settings{Policy: "static", Cache: "recap"}},
	} {
		s, setting := c.s, c.setting
		s.Length, s.Left = 8, true
		_, err := New(nil, s, &toy{}, &abcd{})
		named, ok := err.(*SettingError)
		if !ok || named.Setting != setting || !strings.Contains(err.Error(), "constraint or a penalty") {
			t.Errorf("%s: error %v", setting, err)
		}
	}
	if _, err := New(nil, Settings{Length: 8, Left: true}, &toy{}, greedy{}); err == nil {
		t.Error("a sampler that knows no text fills from the left")
	}
	if _, err := New(nil, Settings{Length: 8, Likely: true}, &toy{}, greedy{}); err == nil {
		t.Error("a sampler that tells nothing is asked for likely tokens")
	}
}

// recorded is a board that keeps the logits that it gave, by place.
type recorded struct {
	*random
	logits map[int][]float32 // of the last pass that gave some
}

func (m *recorded) Logits(branch, i int) []float32 {
	logits := m.random.Logits(branch, i)
	m.logits[m.last[branch][i].Place-2] = logits
	return logits
}

// TestLikely compares the likeliest tokens of each place with a sort of the probabilities of the pass that fixed it, over policies and orders.
func TestLikely(t *testing.T) {
	for seed := range uint64(12) {
		for _, s := range []Settings{
			{Policy: "static"}, {Policy: "threshold:p=0.3"}, {Policy: "credit"}, {Policy: "static:order=left", Left: true}, {Policy: "threshold:p=0.3", Left: true}, {Policy: "rcr", Passes: 4}, {Early: "prophet"},
		} {
			s.Length, s.Likely = 12, true
			m := &recorded{&random{seed: seed, prompt: 2}, map[int][]float32{}}
			complete(t, s, m, chains(t, seed, s.Left, 3, false), func(before, now []Place) {
				for at, p := range now {
					if p != before[at] && p.ID != s.Mask {
						likely(t, p, m.logits[at])
					}
				}
			})
		}
	}
}

// likely compares what is told of a place with the softmax of its logits.
func likely(t *testing.T, p Place, logits []float32) {
	t.Helper()
	sum, order := 0.0, []int{}
	for id, l := range logits {
		sum += math.Exp(float64(l))
		order = append(order, id)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if logits[a] > logits[b] {
			return -1
		}
		return 1
	})
	near := func(got float32, id int) bool {
		return math.Abs(float64(got)-(float64(logits[id])-math.Log(sum))) < 1e-5
	}
	for i, top := range p.Likely.Top {
		if int(top.ID) != order[i] || !near(top.Logprob, order[i]) {
			t.Fatalf("%d of %v; want %v of %v", i, p.Likely.Top, order, logits)
		}
	}
	if len(p.Likely.Top) != 3 || !near(p.Likely.Logprob, int(p.ID)) {
		t.Fatalf("place %+v has %+v, of %v", p, *p.Likely, logits)
	}
}

// TestLikelyDrafts: drafts of a canvas tell what static decoding does, also of probabilities of the draw.
func TestLikelyDrafts(t *testing.T) {
	for seed := range uint64(12) {
		s := Settings{Length: 12, Policy: "static", Likely: true}
		want := complete(t, s, &random{seed: seed, prompt: 2}, chains(t, seed, false, 3, seed%2 == 0), nil)
		s.Drafts = 4
		got := complete(t, s, &random{seed: seed, prompt: 2}, chains(t, seed, false, 3, seed%2 == 0), nil)
		for at := range want {
			if got[at].ID != want[at].ID || got[at].Likely.Logprob != want[at].Likely.Logprob || !slices.Equal(got[at].Likely.Top, want[at].Likely.Top) {
				t.Fatalf("seed %d, place %d: %+v, want %+v", seed, at, *got[at].Likely, *want[at].Likely)
			}
		}
	}
}
