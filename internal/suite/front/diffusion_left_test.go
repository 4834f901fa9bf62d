package front_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"grove"
	"grove/internal/model/synthetic"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
)

// constraints are of each kind.
var constraints = map[string]grove.Constraint{
	"schema":  {Schema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","maxLength":4},"n":{"type":"integer","minimum":0,"maximum":99},"ok":{"type":"boolean"}},"required":["name","n","ok"],"additionalProperties":false}`)},
	"choices": {Choices: []string{"yes", "no", "perhaps"}}, "regex": {Regex: `[a-c]{3}-[0-9]{2}`}, "grammar": {Grammar: `root ::= "(" root ")" | "x"`},
}

// TestDiffusionConstraint: with random weights an answer is legal in full, or legal up to where the canvas ends; whatever policy, cache and temperature there are.
func TestDiffusionConstraint(t *testing.T) {
	m, f := randomModel(t, synthetic.Spec{Arch: "llada"}, grove.Options{CacheType: "f32", Threads: 2}, nil)
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	whole, cut, fewer := 0, 0, 0
	for name, c := range constraints {
		for i, d := range []grove.Diffusion{{}, {Policy: "static:order=left"}, {Policy: "threshold:p=0.001", Block: 5}, {Block: 4, Cache: "prefix"}, {Block: 5, Cache: "dual", Policy: "entropy:h=100"}} {
			for _, length := range []int{5, 72} {
				seed := uint64(i)
				r := grove.Request{Prompt: "an answer: ", MaxTokens: length, Seed: &seed, Diffusion: &d, Constraint: &c, Top: 2}
				r.Sampling.Temperature, r.IgnoreEnd = float32(i%3)/2, i == 3
				got, stats := generate(t, m, r)
				err := grove.CheckText(tok, c, got.text())
				if wrong := new(grove.TextError); errors.As(err, &wrong) && wrong.Found == "" && got.Finish == grove.FinishLength {
					cut++
				} else if err != nil || got.Finish != grove.FinishStop {
					t.Errorf("%s, %+v, %d tokens: %q, %s: %v", name, d, length, got.text(), got.Finish, err)
				} else {
					whole++
				}
				if stats.Passes < len(got.Tokens) {
					fewer++
				}
				if again, _ := generate(t, m, r); again.text() != got.text() {
					t.Errorf("%s, %+v: %q, and then %q", name, d, got.text(), again.text())
				}
			}
		}
	}
	if whole < 30 || cut == 0 || fewer == 0 {
		t.Errorf("%d answers are whole, %d are cut, %d have fewer passes than tokens", whole, cut, fewer)
	}
}

// TestDiffusionText: what needs the text before a token works on a canvas that is filled from the left.
func TestDiffusionText(t *testing.T) {
	m, _ := randomModel(t, synthetic.Spec{Arch: "llada"}, grove.Options{CacheType: "f32", Threads: 2}, nil)
	ask := func(change func(r *grove.Request)) (answer, grove.Stats) {
		seed := uint64(5)
		r := grove.Request{Prompt: "aaaa", MaxTokens: 24, Seed: &seed, IgnoreEnd: true, Sampling: grove.Sampling{Temperature: 0.5}}
		change(&r)
		return generate(t, m, r)
	}
	distinct := func(a answer) int {
		ids := map[any]bool{}
		for _, t := range a.Tokens {
			ids[t.ID] = true
		}
		return len(ids)
	}
	bias := func(r *grove.Request) { // two tokens are likely, so that there are repetitions
		r.Penalties.Bias = append(r.Penalties.Bias, grove.Bias{ID: 70, Add: 30}, grove.Bias{ID: 71, Add: 30})
	}
	plain, _ := ask(bias)
	if n := distinct(plain); n > 2 {
		t.Fatalf("%d tokens", n)
	}
	for name, change := range map[string]func(p *grove.Penalties){
		"presence": func(p *grove.Penalties) { p.Presence = 40 }, "frequency": func(p *grove.Penalties) { p.Frequency = 10 },
		"dry": func(p *grove.Penalties) { p.DRY = grove.DRY{Multiplier: 50, Base: 2, AllowedLength: 1, Window: -1} },
	} {
		got, _ := ask(func(r *grove.Request) { bias(r); change(&r.Penalties) })
		if distinct(got) <= 2 {
			t.Errorf("%s: %d tokens", name, distinct(got))
		}
	}
	if got, _ := ask(func(r *grove.Request) { bias(r); r.Sampling.Mirostat = grove.Mirostat{Version: 2, Tau: 3, Eta: 0.1} }); len(got.Tokens) != 24 {
		t.Errorf("mirostat: %d tokens", len(got.Tokens))
	}
	ends := func(r *grove.Request) { // the end is by far the likeliest
		r.IgnoreEnd, r.StopTokens = false, []token.ID{70}
		r.Penalties.Bias = append(r.Penalties.Bias, grove.Bias{ID: 70, Add: 60})
	}
	if got, stats := ask(ends); len(got.Tokens) != 0 || stats.StopToken != 70 {
		t.Errorf("%d tokens before the end", len(got.Tokens))
	}
	for _, least := range []int{1, 9} {
		if got, stats := ask(func(r *grove.Request) { ends(r); r.Penalties.MinTokens = least }); len(got.Tokens) != least || stats.StopToken != 70 {
			t.Errorf("%d tokens, want %d; the end is %d", len(got.Tokens), least, stats.StopToken)
		}
	}
}

// TestDiffusionHeal: the answer begins with the end of the prompt that was taken back.
func TestDiffusionHeal(t *testing.T) {
	m, _ := randomModel(t, synthetic.Spec{Arch: "llada"}, grove.Options{CacheType: "f32"}, nil)
	r := grove.Request{Prompt: "some <", MaxTokens: 8, Heal: true, IgnoreEnd: true, Diffusion: &grove.Diffusion{Policy: "threshold:p=0.001"}}
	g, err := m.Generate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	a, err := answerOf(g)
	if err != nil {
		t.Fatal(err)
	}
	ids := slices.Clone(g.Prompt())
	for _, t := range a.Tokens {
		ids = append(ids, t.ID)
	}
	if text, err := m.Detokenize(ids); err != nil || !strings.Contains(text, r.Prompt) || len(g.Prompt()) != 1+len("some ") {
		t.Errorf("%q, error %v: it must begin with %q, of which %d tokens are left", text, err, r.Prompt, len(g.Prompt()))
	}
}

// TestDiffusionTop: likely tokens are as many as are asked for, in order, each with the log-probability of the token where it is among them; and of the draw where this is
// asked for.
func TestDiffusionTop(t *testing.T) {
	m, _ := randomModel(t, synthetic.Spec{Arch: "dream"}, grove.Options{CacheType: "f32"}, nil)
	for _, drawn := range []bool{false, true} {
		for _, d := range []grove.Diffusion{{}, {Policy: "static", Drafts: 3}, {Policy: "credit"}, {Block: 6, Cache: "dual"}, {Early: "prophet"}} {
			seed := uint64(9)
			r := grove.Request{Prompt: "text", MaxTokens: 12, Seed: &seed, IgnoreEnd: true, Top: 5, PostSampling: drawn, Sampling: grove.Sampling{Temperature: 0.7, TopK: 4}, Diffusion: &d}
			got, _ := generate(t, m, r)
			most := 5
			if drawn {
				most = 4 // no other is drawn
			}
			for i, tok := range got.Tokens {
				name := fmt.Sprintf("%+v, drawn: %v, token %d: %+v", d, drawn, i, tok)
				if len(tok.Top) != most || !slices.IsSortedFunc(tok.Top, func(a, b grove.TopLogprob) int { return int(b.Logprob - a.Logprob) }) {
					t.Fatal(name)
				}
				at := slices.IndexFunc(tok.Top, func(l grove.TopLogprob) bool { return l.ID == tok.ID })
				if at >= 0 && tok.Top[at].Logprob != tok.Logprob || at < 0 && (drawn || tok.Logprob > tok.Top[most-1].Logprob) {
					t.Fatal(name)
				}
			}
			r.Top, r.PostSampling = 0, false
			if plain, _ := generate(t, m, r); plain.text() != got.text() {
				t.Errorf("%+v: %q, without likely tokens %q", d, got.text(), plain.text())
			}
		}
	}
}
