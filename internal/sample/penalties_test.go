package sample

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"grove/internal/text/token"
)

func TestPenalties(t *testing.T) {
	const banned = -1 << 20
	logits := []float32{2, -2, 1, 0, 4}
	text, prompt := []token.ID{0, 1, 0, 2, 2, 1}, 3
	for _, tt := range []struct {
		name      string
		penalties Penalties
		want      []float32
	}{
		{"off", Penalties{Repeat: 1, Window: 7, MinTokens: 9}, []float32{2, -2, 1, 0, 4}},
		{"bias", Penalties{Bias: []Bias{{3, 1.5}, {4, -inf}}}, []float32{2, -2, 1, 1.5, banned}},
		{"repeat, the answer", Penalties{Repeat: 2}, []float32{2, -4, 0.5, 0, 4}},
		{"repeat, the last two", Penalties{Repeat: 2, RepeatWindow: 2}, []float32{2, -4, 0.5, 0, 4}},
		{"repeat, the last one", Penalties{Repeat: 2, RepeatWindow: 1}, []float32{2, -4, 1, 0, 4}},
		{"repeat, the last three", Penalties{Repeat: 2, RepeatWindow: 3}, []float32{2, -4, 0.5, 0, 4}},
		{"repeat, the last four", Penalties{Repeat: 2, RepeatWindow: 4}, []float32{1, -4, 0.5, 0, 4}},
		{"frequency, the last one", Penalties{Frequency: 0.5, Window: 1}, []float32{2, -2.5, 1, 0, 4}},
		{"frequency, the last two", Penalties{Frequency: 0.5, Window: 2}, []float32{2, -2.5, 0.5, 0, 4}},
		{"frequency, the last three", Penalties{Frequency: 0.5, Window: 3}, []float32{2, -2.5, 0, 0, 4}},
		{"frequency, the last four", Penalties{Frequency: 0.5, Window: 4}, []float32{1.5, -2.5, 0, 0, 4}},
		{"repeat, all", Penalties{Repeat: 2, RepeatWindow: -1}, []float32{1, -4, 0.5, 0, 4}},
		{"repeat, more than there is", Penalties{Repeat: 2, RepeatWindow: 100}, []float32{1, -4, 0.5, 0, 4}},
		{"repeat behind a bias", Penalties{Repeat: 2, Bias: []Bias{{1, 3}}}, []float32{2, 0.5, 0.5, 0, 4}},
		{"presence", Penalties{Presence: 0.5}, []float32{2, -2.5, 0.5, 0, 4}},
		{"frequency", Penalties{Frequency: 0.5}, []float32{2, -2.5, 0, 0, 4}},
		{"frequency, all", Penalties{Frequency: 0.5, Window: -1}, []float32{1, -3, 0, 0, 4}},
		{"all penalties", Penalties{Repeat: 2, Presence: 0.25, Frequency: 0.5, Window: -1}, []float32{0.75, -5.25, -0.75, 0, 4}},
		{"an end too early", Penalties{MinTokens: 4, Ends: []token.ID{4}}, []float32{2, -2, 1, 0, banned}},
		{"an end in time", Penalties{MinTokens: 3, Ends: []token.ID{4}}, []float32{2, -2, 1, 0, 4}},
	} {
		c := chainBehind(t, tt.penalties, len(logits), text, prompt)
		for range 2 { // Process changes nothing
			got := slices.Clone(c.Process(0, logits))
			for i := range got {
				got[i] = max(got[i], banned)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", tt.name, d)
			}
		}
	}
	if !newChain(t, Settings{Penalties: Penalties{Repeat: 1, MinTokens: 3}}, 5).Plain() {
		t.Error("penalties that change nothing make a step")
	}
}

// chainBehind returns a chain with penalties behind a text, of which the first prompt tokens are a prompt.
func chainBehind(t testing.TB, p Penalties, vocab int, text []token.ID, prompt int) *Chain {
	t.Helper()
	c := newChain(t, Settings{Penalties: p}, vocab)
	c.Begin(text[:prompt])
	c.Append(text[prompt:], false)
	return c
}

func TestPenaltiesRefuses(t *testing.T) {
	nan := float32(math.NaN())
	for want, s := range map[string]Penalties{
		"bias: token 5 is out of range; the vocabulary has 5 tokens": {Bias: []Bias{{5, 1}}},
		"bias: token -1 is out of range":                             {Bias: []Bias{{-1, 1}}},
		"bias: token 1 has NaN":                                      {Bias: []Bias{{1, nan}}},
		"bias: token 1 has +Inf":                                     {Bias: []Bias{{1, inf}}},
		"the repeat penalty is -1":                                   {Repeat: -1},
		"the repeat penalty is NaN":                                  {Repeat: nan},
		"the presence penalty is +Inf":                               {Presence: inf},
		"the frequency penalty is NaN":                               {Frequency: nan},
		"the window of a penalty is -2 tokens":                       {Window: -2},
		"the minimum length is -1 tokens":                            {MinTokens: -1},
		"token 9 is said to end a text":                              {Ends: []token.ID{9}},
	} {
		if _, err := NewChain(Settings{Penalties: s}, 5); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
	}
}

// TestPenaltiesIsFinite: whatever is allowed leaves finite logits, or masked ones.
func TestPenaltiesIsFinite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		logits := rapid.SliceOfN(rapid.Float32Range(-1e30, 1e30), 4, 4).Draw(t, "logits")
		s := Penalties{
			Bias:     []Bias{{1, rapid.Float32Range(-maxBias, maxBias).Draw(t, "bias")}},
			Repeat:   rapid.Float32Range(minRepeat, maxRepeat).Draw(t, "repeat"),
			Presence: rapid.Float32Range(-maxPenalty, maxPenalty).Draw(t, "presence"), Frequency: rapid.Float32Range(-maxPenalty, maxPenalty).Draw(t, "frequency"),
		}
		c, err := NewChain(Settings{Penalties: s}, 4)
		if err != nil {
			t.Fatal(err)
		}
		c.Append([]token.ID{0, 1, 2, 1, 1}, false)
		for _, l := range c.Process(0, logits) {
			if l != l || l > math.MaxFloat32 {
				t.Fatalf("%v", l)
			}
		}
	})
}

func TestTop(t *testing.T) {
	for _, p := range []Params{{}, {Temperature: 1, TopK: 2}} {
		s := newDrawer(t, p, len(five))
		got, err := s.Top(five, 3)
		if err != nil {
			t.Fatal(err)
		}
		for i, id := range []token.ID{0, 1, 2} {
			if got[i].ID != id || got[i].Logprob != s.Logprob(five, id) {
				t.Errorf("place %d: %v", i, got[i])
			}
		}
		if all, err := s.Top([]float32{-inf, 0, 0, -inf, 0}, 100); err != nil || len(all) != 3 || all[0].ID != 1 || all[2].ID != 4 {
			t.Errorf("equal and masked tokens: %v, %v", all, err)
		}
		if none, err := s.Top(five, 0); err != nil || len(none) != 0 {
			t.Errorf("none: %v, %v", none, err)
		}
	}
	s := newDrawer(t, Params{Temperature: 1, TopK: 2}, len(five))
	top, logprob, err := s.TopDrawn(0, five, 0, 5, 1)
	if err != nil || len(top) != 2 || top[0].ID != 0 || top[1].Logprob != logprob {
		t.Fatalf("%v, %v, %v", top, logprob, err)
	}
	if sum := math.Exp(float64(top[0].Logprob)) + math.Exp(float64(logprob)); math.Abs(sum-1) > 1e-6 {
		t.Errorf("the probabilities of what is drawn sum to %v", sum)
	}
	if _, logprob, err := newDrawer(t, Params{}, len(five)).TopDrawn(0, five, 0, 1, 0); err != nil || logprob != 0 {
		t.Errorf("greedy: %v, %v", logprob, err)
	}
}
