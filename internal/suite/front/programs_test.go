package front_test

import (
	"bytes"
	"errors"
	"math"
	"regexp"
	"strings"
	"testing"

	"grove"
	"grove/constrain"
	"grove/constrain/gosource"
	"grove/constrain/hmm"
	"grove/internal/gopher"
	"grove/internal/text/token"
)

func openNano(t *testing.T) *grove.Model {
	m, err := grove.OpenBytes(gopher.Named(gopher.NanoName), threaded(grove.Options{Forget: true, Parallel: 8}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// probabilities returns the model's distribution behind tokens.
func probabilities(t *testing.T, m *grove.Model, ids []token.ID) []float64 {
	var last []float32
	err := m.Logits(t.Context(), ids, func(row []float32) error { last = append(last[:0], row...); return nil })
	if err != nil {
		t.Fatal(err)
	}
	p, sum := make([]float64, len(last)), 0.0
	for id, l := range last {
		p[id] = math.Exp(float64(l))
		sum += p[id]
	}
	for id := range p {
		p[id] /= sum
	}
	return p
}

// rival is two answers of two tokens. The first begins with the likelier token and has an unlikely end, the second has a likely end.
type rival struct {
	legal  map[string]bool // the answers and their beginnings
	first  string          // the beginning of the first
	masked float64         // probability of the first, where masks alone draw
	truth  float64         // and given that the answer is one of the two
}

// rivals finds such answers behind a prompt.
func rivals(t *testing.T, m *grove.Model, prompt []token.ID) rival {
	piece := func(id int) string {
		s, err := m.Detokenize([]token.ID{token.ID(id)})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	// likeliest returns the likeliest token that is a text of two bytes or more, and passes.
	likeliest := func(p []float64, passes func(id int) bool) int {
		best := -1
		for id := range p {
			if s := piece(id); len(s) > 1 && !strings.ContainsRune(s, '\uFFFD') && passes(id) && (best < 0 || p[id] > p[best]) {
				best = id
			}
		}
		if best < 0 {
			t.Fatal("there is no such example")
		}
		return best
	}
	p := probabilities(t, m, prompt)
	behind := func(id int) []float64 {
		return probabilities(t, m, append(prompt[:len(prompt):len(prompt)], token.ID(id)))
	}
	every := func(int) bool { return true }
	a := likeliest(p, every)
	b := likeliest(p, func(id int) bool { return id != a })
	pa, pb := behind(a), behind(b)
	order := make([]float64, len(pa)) // by which the last of the unlikely ends is chosen
	for id := range order {
		order[id] = float64(id)
	}
	endA, endB := likeliest(order, func(id int) bool { return pa[id] > .001 && pa[id] < .003 }), likeliest(pb, every)
	return rival{
		legal: map[string]bool{piece(a): true, piece(a) + piece(endA): true, piece(b): true, piece(b) + piece(endB): true},
		first: piece(a), masked: p[a] / (p[a] + p[b]), truth: p[a] * pa[endA] / (p[a]*pa[endA] + p[b]*pb[endB]),
	}
}

// TestWeighed draws answers of two tokens under a check. Masks alone begin with the likelier token; resampling by
// weights comes near the model's distribution, given that the answer is legal.
func TestWeighed(t *testing.T) {
	m := openNano(t)
	prompt, err := m.Tokenize("func", true, true)
	if err != nil {
		t.Fatal(err)
	}
	pair := rivals(t, m, prompt)
	const runs = 60
	count := 0.0
	for seed := range uint64(runs) {
		r := weighed(&grove.Constraint{Check: func(text []byte) bool { return pair.legal[string(text)] }, Ends: func([]byte) bool { return false }, Weights: true})
		r.Seed = &seed
		text := ""
		for range 2 - int(min(seed, 1)) { // the first seed twice
			g, err := m.Generate(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			again, err := g.Text()
			if err != nil {
				t.Fatal(err)
			}
			if text != "" && again != text {
				t.Fatalf("seed %d gives %q and %q", seed, text, again)
			}
			text = again
			sum := 0.0
			for _, a := range g.Stats().Attempts {
				sum += a.Weight
			}
			if !pair.legal[text] || math.Abs(sum-1) > 1e-9 {
				t.Fatalf("%q, with attempts of weights that sum to %v", text, sum)
			}
		}
		if strings.HasPrefix(text, pair.first) {
			count++
		}
	}
	t.Logf("%q begins %.3f of the answers; %.3f by masks alone, %.3f given that they are legal", pair.first, count/runs, pair.masked, pair.truth)
	if math.Abs(count/runs-pair.truth) > math.Abs(count/runs-pair.masked) {
		t.Error("the answers are distributed as masks alone have them")
	}
}

// weighed returns a request whose answers are drawn by their weights.
func weighed(c *grove.Constraint) grove.Request {
	return grove.Request{Prompt: "func", MaxTokens: 2, Sampling: grove.Sampling{Temperature: 1}, Search: "awrs,n=8", Constraint: c}
}

// TestWeighedRefused expects a constraint that weighs nothing, and one that allows nothing, to end the answer by their errors.
func TestWeighedRefused(t *testing.T) {
	m := openNano(t)
	tests := []struct {
		name       string
		constraint *grove.Constraint
		is         func(error) bool
	}{
		{"without weights", &grove.Constraint{Choices: []string{"a"}}, func(err error) bool {
			option := new(grove.OptionError)
			return errors.As(err, &option) && strings.Contains(err.Error(), "nothing weighs the answers")
		}},
		{"nothing is legal", &grove.Constraint{Check: func([]byte) bool { return false }, Weights: true}, func(err error) bool { return errors.Is(err, constrain.ErrNothingLegal) }},
	}
	for _, tt := range tests {
		g, err := m.Generate(t.Context(), weighed(tt.constraint))
		if err == nil {
			_, err = g.Text()
		}
		if !tt.is(err) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestGroups lets groups write paths of a graph: all of them exist, they differ, and the first group's is the likeliest
// path token by token.
func TestGroups(t *testing.T) {
	m := openNano(t)
	triples := []constrain.PathTriple{
		{Head: "Reader", Relation: "reads", Tail: "File"}, {Head: "Reader", Relation: "reads", Tail: "Buffer"}, {Head: "File", Relation: "has", Tail: "Name"},
		{Head: "Buffer", Relation: "holds", Tail: "bytes"}, {Head: "Reader", Relation: "returns", Tail: "error"},
	}
	g, err := constrain.PathNewGraph(triples, []string{"Reader"}, 2, "\n")
	if err != nil {
		t.Fatal(err)
	}
	exist := map[string]bool{}
	for _, a := range triples {
		if a.Head != "Reader" {
			continue
		}
		one := a.Head + constrain.PathArrow + a.Relation + constrain.PathArrow + a.Tail
		exist[one+"\n"] = true
		for _, b := range triples {
			if b.Head == a.Tail {
				exist[one+constrain.PathArrow+b.Relation+constrain.PathArrow+b.Tail+"\n"] = true
			}
		}
	}
	r := grove.Request{Prompt: "// A path: ", Constraint: &grove.Constraint{Automaton: g}}
	greedy, err := m.Generate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	first, err := greedy.Text()
	if err != nil {
		t.Fatal(err)
	}
	for _, penalty := range []string{"0", "5"} {
		r.Search = "groups,n=4,penalty=" + penalty
		answer, err := m.Generate(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := answer.Text()
		if err != nil {
			t.Fatal(err)
		}
		different, found := map[string]bool{}, false
		for i, a := range answer.Stats().Attempts {
			path, err := m.Detokenize(a.IDs)
			if err != nil {
				t.Fatal(err)
			}
			path, _, _ = strings.Cut(path, "<|") // the token of the end
			if !exist[path] || !a.Ended || i == 0 && path != first {
				t.Errorf("penalty %s, group %d: %q (ended: %v); the likeliest path is %q", penalty, i, path, a.Ended, first)
			}
			different[path], found = true, found || path == text
		}
		if !found || (len(different) > 1) != (penalty != "0") {
			t.Errorf("penalty %s: the answer is %q; the groups have %v", penalty, text, different)
		}
	}
}

// TestProgramsDraft: a check and a monitor give the same tokens with drafts and without.
func TestProgramsDraft(t *testing.T) {
	m := openNano(t)
	odd := func(text []byte) bool { return !bytes.ContainsAny(text, "aeiou") && len(text) < 200 }
	for name, c := range map[string]*grove.Constraint{
		"a check":   {Check: odd},
		"weighed":   {Check: odd, Weights: true},
		"a monitor": {Monitor: gosource.New(false)},
	} {
		for seed := range uint64(4) {
			var texts []string
			for _, method := range []string{grove.MethodOff, "lookup", grove.MethodAuto} {
				r := grove.Request{Prompt: "type T struct{ a, b int }\n\nfunc (t T) sum() int { return t.a + t.b + t.", Constraint: c, Method: method, MaxTokens: 40, Seed: &seed}
				if r.Sampling.Temperature = .8; seed == 3 {
					r.Sampling.TopP = .9
				}
				g, err := m.Generate(t.Context(), r)
				if err != nil {
					t.Fatal(err)
				}
				text, err := g.Text()
				if err != nil {
					t.Fatal(name, err)
				}
				texts = append(texts, text)
			}
			if texts[0] != texts[1] || texts[0] != texts[2] {
				t.Errorf("%s, seed %d: %q", name, seed, texts)
			}
			if c.Check != nil && !odd([]byte(texts[0])) {
				t.Errorf("%s: %q is not legal", name, texts[0])
			}
		}
	}
}

// TestAhead lets a regular expression look ahead: answers are legal, the same with drafts and without, and other than by
// masks alone for some seed.
func TestAhead(t *testing.T) {
	m := openNano(t)
	var texts [][]token.ID
	for range 12 {
		for _, name := range []string{"main", "open", "readAll", "close", "next", "write"} {
			for _, result := range []string{"error", "string", "int"} {
				ids, err := m.Tokenize("func "+name+"() "+result+" {\n", false, false)
				if err != nil {
					t.Fatal(err)
				}
				texts = append(texts, ids)
			}
		}
	}
	h, err := hmm.Fit(texts, m.Vocabulary(), hmm.FitOptions{States: 8, Iterations: 8})
	if err != nil {
		t.Fatal(err)
	}
	c := grove.Constraint{Regex: `[a-z]+\(\) (error|string|int) \{\n`}
	ahead, legal := c, regexp.MustCompile("^"+c.Regex+"$")
	ahead.Lookahead = &grove.Lookahead{Model: h, Tokens: 12}
	other := 0
	for seed := range uint64(12) {
		var texts []string
		for _, r := range []grove.Request{{Constraint: &c}, {Constraint: &ahead, Method: grove.MethodOff}, {Constraint: &ahead, Method: "lookup"}} {
			r.Prompt, r.Sampling, r.Seed, r.MaxTokens = "func ", grove.Sampling{Temperature: 1}, &seed, 12
			g, err := m.Generate(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			text, err := g.Text()
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, text)
			if r.Constraint == &ahead && !legal.MatchString(text) {
				t.Errorf("%q is not legal within 12 tokens", text)
			}
		}
		if texts[1] != texts[2] {
			t.Errorf("%q, and with drafts %q", texts[1], texts[2])
		}
		if texts[0] != texts[1] {
			other++
		}
	}
	if other == 0 {
		t.Error("looking ahead changes no text")
	}
	for name, bad := range map[string]grove.Constraint{
		"no model": {Regex: "a", Lookahead: &grove.Lookahead{Tokens: 4}}, "no tokens": {Regex: "a", Lookahead: &grove.Lookahead{Model: h}},
		"a schema":  {Schema: []byte("{}"), Lookahead: &grove.Lookahead{Model: h, Tokens: 4}},
		"a check":   {Check: func([]byte) bool { return true }, Lookahead: &grove.Lookahead{Model: h, Tokens: 4}},
		"a trigger": {Regex: "a", Triggers: []string{"a"}, Lookahead: &grove.Lookahead{Model: h, Tokens: 4}},
		"no checks": {Regex: "a", Weights: true},
	} {
		var spec *grove.SpecError
		if err := m.CheckConstraint(bad); !errors.As(err, &spec) {
			t.Errorf("%s: %v", name, err)
		}
	}
	healed := grove.Request{Prompt: "func ma", Heal: true, Constraint: &grove.Constraint{Regex: "a", Lookahead: &grove.Lookahead{Model: h, Tokens: 4}}}
	var option *grove.OptionError
	if _, err := m.Generate(t.Context(), healed); !errors.As(err, &option) || !strings.Contains(err.Error(), "Request.Heal: the constraint looks ahead") {
		t.Errorf("a prompt that is healed: %v", err)
	}
}
