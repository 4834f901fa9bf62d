package front_test

import (
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/constrain/grammar"
	"grove/constrain/regex"
	"grove/internal/gopher"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
	"grove/internal/weights/gguf"
)

// openGopher opens the model inside the package, which runs every draft.
func openGopher(t testing.TB) *grove.Model {
	t.Helper()
	m, err := grove.OpenBytes(gopher.Model(), threaded(grove.Options{Eager: true, Forget: true}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func (a answer) text() string {
	var b strings.Builder
	for _, t := range a.Tokens {
		b.WriteString(t.Text)
	}
	return b.String()
}

var functions = []string{"func (s *Server) ListenAndServe() error {", "func (s *Server) ListenAndServeTLS(certFile string) error {", "func main() {\n"}

// TestConstraint expects answers that are legal and complete, the same with every way of drafting and beside others, greedily and
// sampled, and forced text to cost fewer steps than tokens.
func TestConstraint(t *testing.T) {
	m := openGopher(t)
	seed := uint64(3)
	for _, s := range []grove.Sampling{{}, {Temperature: 1.5}, {Temperature: 1, TopK: 3, TopP: 0.5}} {
		r := grove.Request{Prompt: "package main\n\n", Constraint: &grove.Constraint{Choices: functions}, Sampling: s, Seed: &seed, Method: grove.MethodOff, Top: 3, PostSampling: s.TopK > 0}
		want, _ := generate(t, m, r)
		if !slices.Contains(functions, want.text()) || want.Finish != grove.FinishStop {
			t.Errorf("%+v: %q, %s", s, want.text(), want.Finish)
		}
		for _, method := range []string{grove.MethodAuto, "lookup", "sam", "swift"} {
			r.Method = method
			got, stats := generate(t, m, r)
			if d := cmp.Diff(want, got, sameBits); d != "" {
				t.Errorf("%+v, %s: (-plain +drafts)\n%s", s, method, d)
			}
			if method == grove.MethodAuto && stats.Drafting.Rounds >= stats.Tokens {
				t.Errorf("%+v: %d rounds for %d tokens: forced text is not drafted", s, stats.Drafting.Rounds, stats.Tokens)
			}
		}
	}
}

// TestConstraintEnds says what becomes of a constraint beside what else ends a text or keeps it from ending.
func TestConstraintEnds(t *testing.T) {
	m := openGopher(t)
	for _, c := range []struct {
		name string
		r    grove.Request
		want string
		end  grove.Finish
	}{
		{"a minimum length beyond all texts", grove.Request{Penalties: grove.Penalties{MinTokens: 200}}, functions[2], grove.FinishStop},
		{"ends that are ignored", grove.Request{IgnoreEnd: true}, functions[2], grove.FinishStop},
		{"a stop string inside", grove.Request{Stop: []string{"main"}}, "func ", grove.FinishStop},
		{"a length", grove.Request{MaxTokens: 1}, "func", grove.FinishLength},
	} {
		c.r.Prompt, c.r.Constraint = "package main\n\n", &grove.Constraint{Choices: functions[2:]}
		got, stats := generate(t, m, c.r)
		if !strings.HasPrefix(got.text(), c.want) || c.name != "a length" && got.text() != c.want || got.Finish != c.end {
			t.Errorf("%s: %q, %s; want %q, %s", c.name, got.text(), got.Finish, c.want, c.end)
		}
		if stats.Tokens != len(got.Tokens) && c.end == grove.FinishStop && stats.StopText == "" {
			t.Errorf("%s: %d tokens counted, %d given", c.name, stats.Tokens, len(got.Tokens))
		}
	}
	// A bias makes a text likelier, and forbids: what it forbids stays forbidden, though nothing else is legal.
	ids, err := m.Tokenize("x", false, true)
	if err != nil {
		t.Fatal(err)
	}
	r := grove.Request{Prompt: "a", Constraint: &grove.Constraint{Choices: []string{"x"}}}
	r.Penalties.Bias = []grove.Bias{{ID: ids[0], Add: -1e6}}
	if got, _ := generate(t, m, r); got.text() != "x" {
		t.Errorf("a bias against the legal token: %q", got.text())
	}
	for id := range token.ID(m.Vocabulary()) {
		if piece, err := m.Piece(id); err == nil && string(piece) == "x" {
			r.Penalties.Bias = append(r.Penalties.Bias, grove.Bias{ID: id, Add: float32(math.Inf(-1))})
		}
	}
	g, err := m.Generate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = g.Text(); !errors.Is(err, grove.ErrAllMasked) || !strings.Contains(err.Error(), "stage constraint") {
		t.Errorf("a ban of the legal token: %v", err)
	}
}

// TestConstraintRefused expects constraints that make no sense to be refused before anything is computed.
func TestConstraintRefused(t *testing.T) {
	m := openGopher(t)
	for _, c := range []struct {
		r    grove.Request
		want string
	}{
		{grove.Request{Prompt: "a", Constraint: &grove.Constraint{}}, "says nothing"},
		{grove.Request{PromptIDs: []token.ID{5}, Heal: true}, "Request.Heal"},
	} {
		_, err := m.Generate(t.Context(), c.r)
		var option *grove.OptionError
		if !errors.As(err, &option) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want an option error with %q", err, c.want)
		}
	}
}

// tokenizerOf returns the tokenizer of the model inside the package.
func tokenizerOf(t *testing.T) *tokenizer.Tokenizer {
	t.Helper()
	f, err := gguf.Parse(gopher.Model())
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// TestCheckText expects the place where a text leaves a language, and what was possible there.
func TestCheckText(t *testing.T) {
	tok := tokenizerOf(t)
	c := grove.Constraint{Choices: []string{"one\ntwo", "one\nten"}}
	if err := grove.CheckText(tok, c, "one\nten"); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"one\ntäg":  `byte 5 (line 2): found "ä", expected`,
		"one\nt":    "byte 5 (line 2): found the end of the text, expected",
		"one\ntwo ": `byte 7 (line 2): found " ", expected`,
	} {
		err := grove.CheckText(tok, c, text)
		var at *grove.TextError
		if !errors.As(err, &at) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestHeal expects a prompt that ends inside a token to go on as if the token had not been cut.
func TestHeal(t *testing.T) {
	m := openGopher(t)
	for _, prompt := range []string{"package main\n\nfunc main() {\n\tfmt.Prin", "package main\n\nfun", "package ma", "http:", "if err != nil {\n\treturn "} {
		g, err := m.Generate(t.Context(), grove.Request{Prompt: prompt, Heal: true, MaxTokens: 12})
		if err != nil {
			t.Fatal(err)
		}
		a, err := answerOf(g)
		if err != nil {
			t.Fatal(err)
		}
		ids := slices.Clone(g.Prompt())
		for _, tok := range a.Tokens {
			if tok.ID != token.None {
				ids = append(ids, tok.ID)
			}
		}
		text, err := m.Detokenize(ids)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(strings.TrimPrefix(text, "<|begin_of_text|>"), prompt) || !strings.HasSuffix(text, a.text()) {
			t.Errorf("%q: the text is %q, of which %q is the answer", prompt, text, a.text())
		}
		t.Logf("%q: %d tokens of the prompt, then %q", prompt, len(g.Prompt()), a.text())
	}
	c := grove.Constraint{Choices: []string{"ln(1)\n"}}
	got, _ := generate(t, m, grove.Request{Prompt: "package main\n\nfunc main() {\n\tfmt.Print", Heal: true, Constraint: &c})
	if got.text() != c.Choices[0] || got.Finish != grove.FinishStop {
		t.Errorf("a healed prompt and a constraint: %q", got.text())
	}
}

const person = `{"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0, "maximum": 120},
	"state": {"enum": ["open", "closed"]}}, "required": ["name", "age", "state"], "additionalProperties": false}`

// TestConstraintEverywhere expects the same text under a schema for every type of cache, beside others, with a session, with prompts cut
// anywhere, by a sequence of a program's own, and with every exact way of drafting.
func TestConstraintEverywhere(t *testing.T) {
	seed := uint64(9)
	base := grove.Request{Prompt: "The person as JSON: ", Constraint: &grove.Constraint{Schema: []byte(person)}, Sampling: grove.Sampling{Temperature: 1}, Seed: &seed, Method: grove.MethodOff}
	for _, cache := range []string{"f32", "f16", "q8_0"} {
		m, err := grove.OpenBytes(gopher.Model(), threaded(grove.Options{Eager: true, Forget: true, CacheType: cache, Parallel: 3}))
		if err != nil {
			t.Fatal(err)
		}
		want, _ := generate(t, m, base)
		var v map[string]any
		if err := json.Unmarshal([]byte(want.text()), &v); err != nil || len(v) != 3 || want.Finish != grove.FinishStop {
			t.Errorf("%s: %q, %s: %v", cache, want.text(), want.Finish, err)
		}
		if err := grove.CheckText(tokenizerOf(t), *base.Constraint, want.text()); err != nil {
			t.Error(err)
		}
		same := func(what string, got answer) {
			if d := cmp.Diff(want, got, sameBits); d != "" {
				t.Errorf("%s, %s: (-want +got)\n%s", cache, what, d)
			}
		}
		var group sync.WaitGroup
		for i, method := range []string{"auto", "sam", "recycle", "lookup", "goose", "swift"} {
			group.Go(func() {
				r := base
				r.Method = method
				if i%2 == 0 {
					r.Session = filepath.Join(t.TempDir(), "session")
				}
				g, err := m.Generate(t.Context(), r)
				if err != nil {
					t.Error(err)
					return
				}
				got, err := answerOf(g)
				if err != nil {
					t.Error(err)
					return
				}
				same(method, got)
			})
		}
		group.Wait()
		s, err := m.NewSequence(t.Context(), base)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; !s.Ended(); i++ {
			d, err := s.Next(t.Context())
			if err != nil || d.ID != want.Tokens[i].ID {
				t.Fatalf("%s: a sequence draws %v, %v at %d", cache, d, err, i)
			}
		}
		if err := errors.Join(s.Close(), m.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestConstraintLogprobs expects the model's own probabilities beside tokens, illegal ones among the likeliest, and with PostSampling
// those of the draw: of legal tokens alone, which sum to 1.
func TestConstraintLogprobs(t *testing.T) {
	m := openGopher(t)
	r := grove.Request{Prompt: "func main", Constraint: &grove.Constraint{Choices: []string{"7", "8", "9"}}, Sampling: grove.Sampling{Temperature: 1}, Top: 5}
	own, _ := generate(t, m, r)
	r.PostSampling = true
	drawn, _ := generate(t, m, r)
	sum := func(all []grove.TopLogprob) (sum float64, legal int) {
		for _, l := range all {
			piece, err := m.Piece(l.ID)
			if err != nil {
				t.Fatal(err)
			}
			if p := math.Exp(float64(l.Logprob)); p > 0 {
				sum += p
				if strings.Contains("789", string(piece)) {
					legal++
				}
			}
		}
		return sum, legal
	}
	if _, legal := sum(own.Tokens[0].Top); legal > 0 || own.Tokens[0].Logprob > -1 {
		t.Errorf("the model's own: %+v", own.Tokens[0])
	}
	if p, legal := sum(drawn.Tokens[0].Top); math.Abs(p-1) > 1e-5 || legal != 3 {
		t.Errorf("of the draw: %+v sum to %v, %d are legal", drawn.Tokens[0].Top, p, legal)
	}
}

// TestConstraintFails expects a text that no token goes on with to fail by name, with the byte and what was expected, and another answer
// beside it to be as ever.
func TestConstraintFails(t *testing.T) {
	m := openGopher(t)
	dead := &grove.Constraint{Source: func() (grammar.Source, error) {
		s := regex.New(regex.Limits{})
		return grammar.Lexeme(s, s.Literal("main\xff[99999]"))
	}}
	r := grove.Request{Prompt: "func ", MaxTokens: 30}
	want, _ := generate(t, m, r)
	var group sync.WaitGroup
	for _, method := range []string{grove.MethodOff, grove.MethodAuto} {
		group.Go(func() {
			g, err := m.Generate(t.Context(), grove.Request{Prompt: "func ", Constraint: dead, Method: method})
			if err != nil {
				t.Error(err)
				return
			}
			text, err := g.Text()
			if !errors.Is(err, grove.ErrConstraint) || text != "main" || !strings.Contains(err.Error(), "byte 4: no token of the vocabulary may follow; expected ") {
				t.Errorf("%s: %q, %v", method, text, err)
			}
		})
		group.Go(func() {
			g, err := m.Generate(t.Context(), r)
			if err != nil {
				t.Error(err)
				return
			}
			if got, err := answerOf(g); err != nil || cmp.Diff(want, got, sameBits) != "" {
				t.Errorf("an answer beside it: %v, %v", got.text(), err)
			}
		})
	}
	group.Wait()
}
