package logits

import (
	"fmt"
	"go/build"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"grove/internal/engine"
	"grove/internal/gopher"
	_ "grove/internal/model/all" // links the architecture
	"grove/internal/par"
	"grove/internal/suite/gophertest"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
	"grove/internal/weights/gguf"
	"grove/method"
)

// firstTokens is how many tokens of an answer a cold start is measured by.
const firstTokens = 50

// cold is the method with a table that was primed on some layers, and what became of its drafts.
type cold struct {
	info           method.Info
	hits, n        int
	eager, planned engine.SpecStats
}

// BenchmarkCold reports, for a table that begins empty and for those that were primed on the first layers of gopher-target, by how many layers, the
// share of next tokens of Go source that are among the successors (hit), and the tokens a round and a second of the first 50 tokens of greedy
// answers, each with a table of its own: tokens a round where every draft is run, then with those that the planner chooses.
func BenchmarkCold(b *testing.B) {
	pool := par.New(2)
	defer pool.Close()
	e := gophertest.Open(b, pool, gopher.Name)
	prompts, begin := goPrompts(b)
	var ways []*cold
	for layers := range e.Model().Size().Layers + 1 {
		primed := prime(b, e, begin, layers)
		w := &cold{info: primedInfo(b, primed)}
		for _, prompt := range prompts {
			for i := len(prompt) - firstTokens; i < len(prompt); i++ {
				var row method.SuccessorRow
				if w.n++; primed.Of(&row, token.None, prompt[i-1]) && slices.ContainsFunc(row[:], func(s method.Successor) bool { return s.P > 0 && s.ID == prompt[i] }) {
					w.hits++
				}
			}
		}
		ways = append(ways, w)
	}
	for b.Loop() {
		for _, prompt := range prompts {
			for _, w := range ways {
				w.eager.Add(first(b, e, w.info, true, prompt[:len(prompt)-firstTokens]))
				w.planned.Add(first(b, e, w.info, false, prompt[:len(prompt)-firstTokens]))
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	for layers, w := range ways {
		report := func(x float64, name string) { b.ReportMetric(x, fmt.Sprintf("%s-%d", name, layers)) }
		report(float64(w.hits)/float64(w.n), "hit")
		report(float64(w.eager.Tokens)/float64(w.eager.Rounds), "tok/round")
		report(float64(w.planned.Tokens)/float64(w.planned.Rounds), "planned")
		report(float64(w.planned.Tokens)/(w.planned.Drafting+w.planned.Stepping).Seconds(), "tok/s")
	}
}

// prime returns the successors of all tokens by the first layers; none by no layers.
func prime(tb testing.TB, e *engine.Engine, begin token.ID, layers int) *method.Successors {
	tb.Helper()
	ids := make([]token.ID, e.Model().Size().Vocabulary)
	for i := range ids {
		ids[i] = token.ID(i)
	}
	primed := method.NewSuccessors(len(ids), 0)
	if layers == 0 {
		return primed
	}
	if err := method.Prime(tb.Context(), e.Model(), begin, ids, layers, func(rows []method.RowResult) { primed.Learn(rows, token.None) }); err != nil {
		tb.Fatal(err)
	}
	return primed
}

// primedInfo returns the method with successors to begin with.
func primedInfo(tb testing.TB, primed *method.Successors) method.Info {
	tb.Helper()
	state, err := primed.MarshalBinary()
	if err != nil {
		tb.Fatal(err)
	}
	info, err := method.Find("recycle")
	if err != nil {
		tb.Fatal(err)
	}
	info.Open = func(env method.Env) (method.Method, error) {
		m := recycle{method.NewSuccessors(env.Vocabulary, 0)}
		return m, m.Prime(state)
	}
	return info
}

// TestCold: successors of the first layer make the first tokens of answers cheaper than none.
func TestCold(t *testing.T) {
	pool := par.New(1)
	defer pool.Close()
	e := gophertest.Open(t, pool, gopher.Name)
	rate := func(s *method.Successors) float64 {
		var all engine.SpecStats
		for number := range token.ID(6) {
			all.Add(first(t, e, primedInfo(t, s), true, []token.ID{1, 300 + 40*number, 301, 500}))
		}
		return float64(all.Tokens) / float64(all.Rounds)
	}
	if cold, with := rate(prime(t, e, 1, 0)), rate(prime(t, e, 1, 1)); with < 1.2*cold {
		t.Errorf("%.2f tokens a round, and %.2f without the cold start", with, cold)
	}
}

// first draws the first tokens of an answer with a method, all of whose drafts are run where it is eager.
func first(b testing.TB, e *engine.Engine, info method.Info, eager bool, prompt []token.ID) engine.SpecStats {
	d, err := e.OpenDrafting(b.Context(), []method.Info{info}, method.Env{})
	if err != nil {
		b.Fatal(err)
	}
	if eager {
		d.Eager()
	}
	s, err := e.NewSequence(engine.Answer{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if err := s.SetDrafting(d, nil); err != nil {
		b.Fatal(err)
	}
	if err := s.Append(b.Context(), prompt); err != nil {
		b.Fatal(err)
	}
	for range firstTokens {
		if _, err := s.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	return s.SpecStats()
}

// goPrompts returns texts of Go source, and the token that begins a text.
func goPrompts(b *testing.B) (all [][]token.ID, begin token.ID) {
	f, err := gguf.Parse(gopher.Named(gopher.Name))
	if err != nil {
		b.Fatal(err)
	}
	words, err := tokenizer.FromGGUF(f)
	if err != nil {
		b.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(build.Default.GOROOT, "src", "*", "*.go"))
	if err != nil || len(files) < 100 {
		b.Skip("the sources of the Go distribution are not here")
	}
	for i := 0; i < len(files) && len(all) < 30; i += 10 {
		text, err := os.ReadFile(files[i])
		if err != nil {
			b.Fatal(err)
		}
		ids, err := words.Encode(nil, string(text), tokenizer.Options{Special: true})
		if err != nil {
			b.Fatal(err)
		}
		if at := len(ids) / 2; len(ids) > 400 {
			all = append(all, ids[at:at+32+firstTokens])
		}
	}
	return all, words.BOS()
}
