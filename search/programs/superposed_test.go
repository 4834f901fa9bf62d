package programs

import (
	stdcmp "cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"grove/internal/engine"
	"grove/internal/forest"
	"grove/internal/gopher"
	"grove/internal/model"
	_ "grove/internal/model/all" // links the architectures
	"grove/internal/par"
	"grove/internal/sample"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
	"grove/internal/weights/gguf"
	"grove/method"
	"grove/method/datastore"
	"grove/search"
)

func near(x float64) cmp.Option { return cmpopts.EquateApprox(0, x) }

// contextSize is the context of the gophers.
const contextSize = 256

// newEngine opens a model for n sequences.
func newEngine(tb testing.TB, f *gguf.File, threads, n int) *engine.Engine {
	tb.Helper()
	pool := par.New(threads)
	tb.Cleanup(pool.Close)
	m, err := model.Open(f, pool, model.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	e, err := engine.New(m, pool, engine.Config{Seqs: n, Context: contextSize})
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// parse reads an embedded model.
func parse(tb testing.TB, name string) *gguf.File {
	tb.Helper()
	f, err := gguf.Parse(gopher.Named(name))
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// superposedBegin opens a sequence behind a prompt.
func superposedBegin(tb testing.TB, e *engine.Engine, a engine.Answer, ids []token.ID) *engine.Sequence {
	tb.Helper()
	s, err := e.NewSequence(a)
	if err == nil {
		err = s.Append(tb.Context(), ids)
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() }) // of one that a test has closed an error
	return s
}

// prompts are the tokens of texts.
func prompts(tb testing.TB, texts ...string) (all [][]token.ID) {
	tb.Helper()
	t, err := tokenizer.FromGGUF(parse(tb, gopher.Name))
	if err != nil {
		tb.Fatal(err)
	}
	for _, text := range texts {
		ids, err := t.Encode(nil, text, tokenizer.Options{Special: true})
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, ids)
	}
	return all
}

var goTexts = []string{
	"package main\n\nfunc main() {\n", "// Sum returns the sum of a.\nfunc Sum(a []int) int {\n", "for i := 0; i < n; i++ {",
	"if err != nil {\n\treturn", "type Reader struct {\n", "switch x := v.(type) {\ncase int:",
}

// ending ends answers with certain tokens.
func ending(ends ...token.ID) func() func(engine.SampledToken) bool {
	return func() func(engine.SampledToken) bool {
		return func(d engine.SampledToken) bool { return slices.Contains(ends, d.ID) }
	}
}

func mustOpen(t *testing.T, options string) search.Program {
	t.Helper()
	p, err := search.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestSuperposedLikeliest: the probabilities of the tokens that are considered, and their order.
func TestSuperposedLikeliest(t *testing.T) {
	got := likeliest([]float32{1, 2, 1.9, float32(math.Inf(-1))}, 3, 0.06)
	for i, want := range []superposedChoice{{1, .841}, {2, .159}, {0, 0}} {
		if got[i].id != want.id || math.Abs(math.Exp(got[i].logprob)-want.logprob) > 5e-4 {
			t.Errorf("token %d with %v, want %v", got[i].id, math.Exp(got[i].logprob), want)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		logits := make([]float32, 1+rng.IntN(50))
		order := make([]int, len(logits))
		for i := range logits {
			logits[i], order[i] = float32(rng.IntN(8)), i
		}
		slices.SortStableFunc(order, func(a, b int) int { return int(logits[b] - logits[a]) })
		n, sum := 1+rng.IntN(10), 0.0
		list := likeliest(logits, n, 2)
		for i, c := range list {
			sum += math.Exp(c.logprob)
			if int(c.id) != order[i] {
				t.Fatalf("place %d has token %d, want %d", i, c.id, order[i])
			}
		}
		if len(list) != min(n, len(logits)) || math.Abs(sum-1) > 1e-12 {
			t.Fatalf("%d tokens with %v", len(list), sum)
		}
	}
}

func drafts(last []token.ID, p ...float64) (all []draft) {
	for i := range p {
		all = append(all, draft{drawn: []engine.SampledToken{{Token: sample.Token{ID: last[i]}}}, score: math.Log(p[i])})
	}
	return all
}

// TestMixture: weights are the drafts' shares, and those of equal tokens are added.
func TestMixture(t *testing.T) {
	want := []forest.Weighted{{ID: 4, Weight: .625}, {ID: 9, Weight: .375}}
	if d := cmp.Diff(want, mixture(drafts([]token.ID{4, 9}, .5, .3)), near(1e-6)); d != "" {
		t.Error(d)
	}
	want = []forest.Weighted{{ID: 4, Weight: .7}, {ID: 9, Weight: .3}}
	if d := cmp.Diff(want, mixture(drafts([]token.ID{4, 9, 4}, .5, .3, .2)), near(1e-6)); d != "" {
		t.Error(d)
	}
}

// TestBest: of drafts with .5 and .3 and the distribution (.1, .6, .2, .1), both go on with token 1.
func TestBest(t *testing.T) {
	var logits []float32
	for _, p := range []float64{.1, .6, .2, .1} {
		logits = append(logits, float32(math.Log(p)))
	}
	row := likeliest(logits, 4, 1)
	got := superposedBest(drafts([]token.ID{4, 9}, .5, .3), [][]superposedChoice{row, row}, 2)
	for i, want := range []float64{.30, .18} {
		if got[i].draft != i || got[i].id != 1 || math.Abs(math.Exp(got[i].score)-want) > 1e-6 {
			t.Errorf("%+v with %v, want %v", got[i], math.Exp(got[i].score), want)
		}
	}
}

// store makes a datastore of texts.
func store(tb testing.TB, texts ...[]token.ID) *datastore.Store {
	tb.Helper()
	words, err := tokenizer.FromGGUF(parse(tb, gopher.Name))
	if err != nil {
		tb.Fatal(err)
	}
	return growtest.Store(tb, words, texts...)
}

// TestGrams compares scores with the definition, counted in the text.
func TestGrams(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 40 {
		text := make([]token.ID, 200)
		for i := range text {
			text[i] = token.ID(rng.IntN(1 + rng.IntN(6)))
		}
		g := newGrams(store(t, text), []token.ID{1, 0, 2, 0, 1, 0}[:rng.IntN(7)])
		d := drafts([]token.ID{token.ID(rng.IntN(4))}, 1)
		for range rng.IntN(7) {
			d[0].drawn = append(d[0].drawn, engine.SampledToken{Token: sample.Token{ID: token.ID(rng.IntN(3))}})
		}
		row := []superposedChoice{{0, -.1}, {1, -2}, {5, -3}, {99, -4}}
		scores := [][]superposedChoice{slices.Clone(row)}
		const alpha = 0.54
		if err := g.weigh(scores, d, alpha); err != nil {
			t.Fatal(err)
		}
		whole := slices.Clone(g.before)
		for _, x := range d[0].drawn {
			whole = append(whole, x.ID)
		}
		shares, known := make([]float64, len(row)), false
		for j, c := range row {
			for n := 1; n <= min(5, len(whole)); n++ {
				context, count, with := whole[len(whole)-n:], 0, 0
				for i := range len(text) - n + 1 {
					if slices.Equal(text[i:i+n], context) {
						count++
						if i+n < len(text) && text[i+n] == c.id {
							with++
						}
					}
				}
				if count > 0 {
					shares[j] += weights[n-1] * float64(with) / float64(count)
				}
			}
			known = known || shares[j] > 0
		}
		for j, c := range row {
			want := (1-alpha)*c.logprob + alpha*math.Log(shares[j])
			if !known {
				want = (1-alpha)*c.logprob - 200
			}
			if got := scores[0][j].logprob; got != want && !(math.Abs(got-want) < 1e-9) {
				t.Fatalf("behind %v token %d: %v, want %v", whole, c.id, got, want)
			}
		}
	}
}

// TestSuperposedGreedy: one draft without n-grams is the answer of plain greedy decoding, bit for bit, with stages too, and ends where that does.
func TestSuperposedGreedy(t *testing.T) {
	e := newEngine(t, parse(t, gopher.Name), 1, 2)
	const most = 40
	for _, a := range []engine.Answer{{}, {Penalties: sample.Penalties{Repeat: 1.2, RepeatWindow: 64}, Top: 3}} {
		for _, ids := range prompts(t, goTexts...) {
			plain := superposedBegin(t, e, a, ids)
			var want []engine.SampledToken
			for range most {
				d, err := plain.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, d)
			}
			end := want[25].ID
			want = want[:1+slices.IndexFunc(want, func(d engine.SampledToken) bool { return d.ID == end })]
			s := superposedBegin(t, e, a, ids)
			for _, p := range []*search.Problem{
				{First: s, MaxTokens: most, Ender: ending(end)}, {First: s, MaxTokens: len(want), Ender: ending()}, {First: s, MaxTokens: most, Ender: ending(end), Datastore: store(t, ids)},
			} {
				r, err := mustOpen(t, "superposed,k=1,alpha=0").Run(t.Context(), p)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, r.Tokens); d != "" {
					t.Fatalf("%v (-want +got):\n%s", a, d)
				}
			}
			if s.Len() != len(ids) {
				t.Errorf("the text has %d tokens, want %d", s.Len(), len(ids))
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := plain.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// superposedReference is the search by its definition, without n-grams: each step runs the prompt and all mixtures anew, and every draft with every
// token is a candidate. It returns the tokens and scores of the drafts.
func superposedReference(t *testing.T, e *engine.Engine, prompt []token.ID, k, steps int, temperature float64) (texts [][]token.ID, scores []float64) {
	t.Helper()
	texts, scores = [][]token.ID{nil}, []float64{0}
	var mixtures [][]forest.Weighted
	for range steps {
		b, err := e.Model().Open()
		if err != nil {
			t.Fatal(err)
		}
		var rows []method.Row
		for i := range len(prompt) + len(mixtures) {
			r := method.Row{After: i}
			if i < len(prompt) {
				r.ID = prompt[i]
			} else {
				r.Mix = mixtures[i-len(prompt)]
			}
			r.Want.Logits = i == len(prompt)+len(mixtures)-1
			rows = append(rows, r)
		}
		results, err := b.Grow(t.Context(), rows)
		if err != nil {
			t.Fatal(err)
		}
		logits := results[len(rows)-1].Logits
		type pair struct {
			text  []token.ID
			score float64
		}
		var ids []int
		for id := range logits {
			ids = append(ids, id)
		}
		slices.SortStableFunc(ids, func(a, b int) int { return stdcmp.Compare(logits[b], logits[a]) })
		sum := 0.0
		for _, id := range ids[:3*k] {
			sum += math.Exp(float64(logits[id]) / temperature)
		}
		var all []pair
		for d := range texts {
			for _, id := range ids[:3*k] {
				all = append(all, pair{append(slices.Clip(texts[d]), token.ID(id)), scores[d] + float64(logits[id])/temperature - math.Log(sum)})
			}
		}
		slices.SortStableFunc(all, func(a, b pair) int { return stdcmp.Compare(b.score, a.score) })
		texts, scores = nil, nil
		total := 0.0
		for _, p := range all[:k] {
			texts, scores = append(texts, p.text), append(scores, p.score)
			total += math.Exp(p.score)
		}
		var mix []forest.Weighted
		for d, text := range texts {
			id, weight := text[len(text)-1], float32(math.Exp(scores[d])/total)
			if at := slices.IndexFunc(mix, func(w forest.Weighted) bool { return w.ID == id }); at >= 0 {
				mix[at].Weight += weight
			} else {
				mix = append(mix, forest.Weighted{ID: id, Weight: weight})
			}
		}
		mixtures = append(mixtures, mix)
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return texts, scores
}

// TestSuperposedReference compares drafts with the definition. At a high temperature the drafts differ.
func TestSuperposedReference(t *testing.T) {
	e := newEngine(t, parse(t, gopher.Name), 1, 5)
	for _, ids := range prompts(t, goTexts[:3]...) {
		texts, scores := superposedReference(t, e, ids, 3, 8, 2)
		r, err := mustOpen(t, "superposed,temperature=2,alpha=0").Run(t.Context(), &search.Problem{First: superposedBegin(t, e, engine.Answer{}, ids), MaxTokens: 8, Ender: ending()})
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range r.Attempts {
			if want := math.Exp(-scores[i] / 8); !slices.Equal(a.IDs, texts[i]) || math.Abs(a.Perplexity/want-1) > 1e-4 {
				t.Errorf("draft %d: %v with %v, want %v with %v", i, a.IDs, a.Perplexity, texts[i], want)
			}
		}
	}
}

// TestShared: searches beside each other give the drafts that each gives alone, by the n-grams of a datastore; the sequence then
// draws as if there had been none, and drafts that end are ranked with the others.
func TestShared(t *testing.T) {
	e := newEngine(t, parse(t, gopher.Name), 2, len(goTexts))
	all := prompts(t, goTexts...)
	grams := store(t, all...)
	end := all[0][len(all[0])-1]
	run := func(ids []token.ID) *search.Result {
		s := superposedBegin(t, e, engine.Answer{}, ids)
		r, err := mustOpen(t, "superposed,k=4,top=20").Run(t.Context(), &search.Problem{First: s, MaxTokens: 20, Ender: ending(end), Datastore: grams})
		if err != nil {
			t.Error(err)
			return nil
		}
		after, err := s.Next(t.Context())
		if err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		s = superposedBegin(t, e, engine.Answer{}, ids)
		if plain, err := s.Next(t.Context()); err != nil || !cmp.Equal(plain, after) {
			t.Errorf("behind the search %v, without it %v (%v)", after, plain, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		return r
	}
	var want []*search.Result
	ended := 0
	for _, ids := range all {
		r := run(ids)
		want = append(want, r)
		for i, a := range r.Attempts {
			if a.Ended {
				ended++
			}
			if i > 0 && a.Perplexity < r.Attempts[i-1].Perplexity || a.Logprob >= 0 {
				t.Errorf("attempt %d: %+v", i, a)
			}
		}
	}
	if ended == 0 {
		t.Error("no draft ends")
	}
	var work sync.WaitGroup
	for i, ids := range all {
		work.Go(func() {
			if d := cmp.Diff(want[i], run(ids)); d != "" {
				t.Errorf("text %d (-alone +beside):\n%s", i, d)
			}
		})
	}
	work.Wait()
	if l := e.Load(); l.Open != 0 || l.Admitted != 0 {
		t.Errorf("behind the searches there are %+v", l)
	}
}

// TestSuperposedContext: without a bound of tokens the drafts fill the context.
func TestSuperposedContext(t *testing.T) {
	e := newEngine(t, parse(t, gopher.NanoName), 1, 1)
	ids := make([]token.ID, contextSize-20)
	for i := range ids {
		ids[i] = token.ID(300 + i)
	}
	r, err := mustOpen(t, "superposed").Run(t.Context(), &search.Problem{First: superposedBegin(t, e, engine.Answer{}, ids), Ender: ending()})
	if err != nil || len(r.Tokens) != 20 {
		t.Errorf("%d tokens, %v", len(r.Tokens), err)
	}
}

// TestSuperposedOpen reads options and refuses n-grams without a datastore.
func TestSuperposedOpen(t *testing.T) {
	for text, want := range map[string]superposed{
		"superposed":                    {3, -1, .06, 9},
		"superposed,k=10":               {10, -1, .12, 30},
		"superposed,k=2,alpha=.3,top=8": {2, .3, .06, 8},
		"superposed,k=6,temperature=1":  {6, -1, 1, 18},
		"superposed,k=1,alpha=0,top=2":  {1, 0, .06, 2},
	} {
		if p := mustOpen(t, text); p != search.Program(want) || p.Samples() != 1 {
			t.Errorf("%s: %+v, want %+v", text, p, want)
		}
	}
	for _, bad := range []string{"k=0", "k=65", "alpha=1", "alpha=-1", "alpha=NaN", "temperature=0", "top=5", "n=3"} {
		if _, err := search.Open("superposed," + bad); err == nil || !strings.Contains(err.Error(), bad[:strings.Index(bad, "=")]) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if err := mustOpen(t, "superposed").Check(&search.Problem{}); err != nil {
		t.Error(err)
	}
	if err := mustOpen(t, "superposed,alpha=.5").Check(&search.Problem{}); err == nil || !strings.Contains(err.Error(), "there is no datastore") {
		t.Error(err)
	}
}
