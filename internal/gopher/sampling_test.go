package gopher_test

import (
	"fmt"
	"go/parser"
	"go/scanner"
	"go/token"
	"strings"
	"testing"

	"grove"
	"grove/internal/gopher"
	ids "grove/internal/text/token"
)

// The command that README shows first.
const (
	firstPrompt = "func (f *File) Close() error"
	firstStop   = "func"
)

// TestFirstText: what the first command of the README writes is Go, whatever its seed, and ends by itself.
func TestFirstText(t *testing.T) {
	m, err := grove.Open(gopher.Name, grove.Options{Forget: true})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	good, ended := 0, 0
	const seeds = 50
	for seed := range uint64(seeds) {
		text, g := draw(t, m, firstPrompt, m.DefaultSampling(), m.DefaultPenalties(), seed)
		if parses(firstPrompt + text) {
			good++
		}
		if g.Stats().Finish == grove.FinishStop {
			ended++
		}
	}
	t.Logf("%d of %d texts parse, %d end by themselves", good, seeds, ended)
	if good < seeds*8/10 || ended < seeds*8/10 {
		t.Errorf("%d of %d texts parse, and %d end; want 80 of 100", good, seeds, ended)
	}
	var plain int
	for seed := range uint64(seeds) {
		if text, _ := draw(t, m, firstPrompt, grove.DefaultSampling(), grove.Penalties{}, seed); parses(firstPrompt + text) {
			plain++
		}
	}
	if plain >= good {
		t.Errorf("%d texts parse with what the file recommends, %d with the customary sampling", good, plain)
	}
}

// BenchmarkSampling measures, for the choice of what the files recommend: the share of texts that parse, and of the fours of
// tokens that a text has twice.
func BenchmarkSampling(b *testing.B) {
	m, err := grove.Open(gopher.Name, grove.Options{Forget: true})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	prompts := []string{
		firstPrompt, "func (s *Server) Close() error", "func (r *Reader) Read(p []byte) (n int, err error)",
		"func (b *Buffer) Write(p []byte) (n int, err error)", "func Contains(s, substr string) bool",
	}
	type setting struct{ temperature, repeat float32 }
	for _, c := range []setting{{0, 1}, {0.2, 1}, {0.4, 1}, {0.8, 1}, {0.3, 1.1}, {0.4, 1.1}, {0.5, 1.1}, {0.4, 1.2}} {
		b.Run(fmt.Sprintf("temp=%v,repeat=%v", c.temperature, c.repeat), func(b *testing.B) {
			good, all, twice, fours := 0, 0, 0, 0
			for seed := range uint64(20 * b.N) {
				for _, prompt := range prompts {
					s := grove.Sampling{Temperature: c.temperature, TopP: 0.9}
					text, _ := draw(b, m, prompt, s, grove.Penalties{Repeat: c.repeat, RepeatWindow: 64}, seed)
					if all++; parses(prompt + text) {
						good++
					}
					n, again := repeated(b, m, text)
					fours, twice = fours+n, twice+again
				}
			}
			b.ReportMetric(float64(good)/float64(all), "parse")
			b.ReportMetric(float64(twice)/float64(fours), "repeated")
		})
	}
}

// draw returns a text as the first command writes it.
func draw(t testing.TB, m *grove.Model, prompt string, s grove.Sampling, p grove.Penalties, seed uint64) (string, *grove.Generation) {
	t.Helper()
	g, err := m.Generate(t.Context(), grove.Request{Prompt: prompt, MaxTokens: 256, Stop: []string{firstStop}, Sampling: s, Penalties: p, Seed: &seed})
	if err != nil {
		t.Fatal(err)
	}
	text, err := g.Text()
	if err != nil {
		t.Fatal(err)
	}
	return text, g
}

// repeated returns how many runs of four tokens a text has, and how many of them stand in it before.
func repeated(t testing.TB, m *grove.Model, text string) (all, again int) {
	t.Helper()
	tokens, err := m.Tokenize(text, false, true)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[[4]ids.ID]bool{}
	for ; all+4 <= len(tokens); all++ {
		four := [4]ids.ID(tokens[all : all+4])
		if seen[four] {
			again++
		}
		seen[four] = true
	}
	return all, again
}

// parses reports whether go/parser takes a text as declarations, once its last, unfinished line is cut off and what is open is
// closed.
func parses(text string) bool {
	end := strings.LastIndexByte(text, '\n') + 1
	if end == 0 {
		return false
	}
	text = text[:end]
	set := token.NewFileSet()
	var s scanner.Scanner
	s.Init(set.AddFile("", -1, len(text)), []byte(text), nil, 0)
	ends := map[token.Token]token.Token{token.LBRACE: token.RBRACE, token.LPAREN: token.RPAREN, token.LBRACK: token.RBRACK}
	var open []token.Token
	for _, t, _ := s.Scan(); t != token.EOF; _, t, _ = s.Scan() {
		if end, ok := ends[t]; ok {
			open = append(open, end)
		} else if n := len(open); n > 0 && t == open[n-1] {
			open = open[:n-1]
		}
	}
	for i := len(open) - 1; i >= 0; i-- {
		text += open[i].String() + "\n"
	}
	_, err := parser.ParseFile(set, "", "package p\n\n"+text, parser.SkipObjectResolution)
	return err == nil
}
