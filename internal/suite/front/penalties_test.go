package front_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/sample"
	"grove/internal/text/token"
)

// TestPenaltiesWithDrafts expects penalties, biases and the rest to give the same tokens, log-probabilities and
// likeliest tokens with every guess run and with none.
func TestPenaltiesWithDrafts(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	m := open(t, goldenModel, grove.Options{Eager: true})
	hot := grove.DefaultSampling()
	for name, r := range map[string]grove.Request{
		"penalties":       {Penalties: grove.Penalties{Repeat: 1.2, RepeatWindow: 64, Presence: 0.3, Frequency: 0.2, Window: -1}},
		"rewards":         {Penalties: grove.Penalties{Frequency: -0.5}, Sampling: hot},
		"bias":            {Penalties: grove.Penalties{Bias: []sample.Bias{{ID: 'a', Add: 3}, {ID: 'e', Add: float32(math.Inf(-1))}}}, Sampling: hot, Top: 4},
		"at least":        {Penalties: grove.Penalties{MinTokens: 50}, StopTokens: []token.ID{'a', 'b', 'c', 32}, Sampling: hot},
		"post sampling":   {Penalties: grove.Penalties{Repeat: 1.2}, Sampling: hot, Top: 3, PostSampling: true},
		"the third":       {SampleIndex: 2, Sampling: hot, IgnoreEnd: true},
		"prompt of ids":   {PromptIDs: []token.ID{bos, 'a', 'b', 'a', 'b', 'a'}, CacheSalt: "salt"},
		"stop at borders": {Stop: []string{"ab", "e "}, Penalties: grove.Penalties{Frequency: -0.3}},
	} {
		r.Prompt, r.MaxTokens, r.Seed = strings.Repeat("abab", 20), 80, new(uint64)
		r.Method = grove.MethodOff
		want, _ := generate(t, m, r)
		r.Method = grove.MethodAuto
		got, stats := generate(t, m, r)
		if d := cmp.Diff(want, got, sameBits); d != "" {
			t.Errorf("%s: drafts change the answer (-want +got):\n%s", name, d)
		}
		if stats.Drafting.Rounds == 0 {
			t.Errorf("%s: nothing was drafted", name)
		}
	}
}

func TestEnds(t *testing.T) {
	alphabet := open(t, script(t, ids("Abcdefghijklmnop", eos), nil), grove.Options{})
	for _, tt := range []struct {
		name string
		r    grove.Request
		want string
		last grove.Stats
	}{
		{"stop token", grove.Request{StopTokens: []token.ID{'e', 'd'}}, "bc", grove.Stats{Finish: "stop", StopToken: 'd'}},
		{"stop string", grove.Request{Stop: []string{"de", "ef"}}, "bc", grove.Stats{Finish: "stop", StopText: "de", StopToken: token.None}},
		{"end of text", grove.Request{}, "bcdefghijklmnop", grove.Stats{Finish: "stop", StopToken: eos}},
		{"stop string too early", grove.Request{Stop: []string{"d", "g"}, Penalties: grove.Penalties{MinTokens: 4}}, "bcdef",
			grove.Stats{Finish: "stop", StopText: "g", StopToken: token.None}},
		{"prompt of ids", grove.Request{PromptIDs: ids("n")}, "op", grove.Stats{Finish: "stop", StopToken: eos}},
	} {
		tt.r.Prompt = "A"
		g, err := alphabet.Generate(t.Context(), tt.r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := g.Text()
		s := g.Stats()
		got := grove.Stats{Finish: s.Finish, StopText: s.StopText, StopToken: s.StopToken}
		if d := cmp.Diff(tt.last, got); d != "" || err != nil || text != tt.want {
			t.Errorf("%s: %q, %v (-want +got):\n%s", tt.name, text, err, d)
		}
	}
	for _, r := range []grove.Request{{IgnoreEnd: true}, {Penalties: grove.Penalties{MinTokens: 30}}} {
		r.Prompt, r.MaxTokens = "A", 30
		if _, s := generate(t, alphabet, r); s.Tokens != 30 || s.Finish != grove.FinishLength {
			t.Errorf("%d tokens, finish %s, although the end was not to be drawn", s.Tokens, s.Finish)
		}
	}
}

func TestRefusedRequests(t *testing.T) {
	m := open(t, goldenModel, grove.Options{})
	for want, r := range map[string]grove.Request{
		"token id -1 at index 0 is out of range: the vocabulary has 320":  {PromptIDs: []token.ID{-1}},
		"token id 320 at index 1 is out of range: the vocabulary has 320": {StopTokens: []token.ID{0, 320}},
		"bias: token 320 is out of range":                                 {Penalties: grove.Penalties{Bias: []sample.Bias{{ID: 320}}}},
		"-1 likely tokens":                                                {Top: -1},
		"answer number -3":                                                {SampleIndex: -3},
		"the repeat penalty":                                              {Penalties: grove.Penalties{Repeat: -1}},
	} {
		if _, err := m.Generate(t.Context(), r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	option := new(grove.OptionError)
	if _, err := grove.Open(goldenModel, threaded(grove.Options{Memory: 1000})); !errors.As(err, &option) || !strings.Contains(err.Error(), "may be used") {
		t.Errorf("a limit of 1000 bytes: %v", err)
	}
}
