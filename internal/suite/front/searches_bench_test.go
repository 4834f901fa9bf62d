package front_test

import (
	"cmp"
	"context"
	"go/build"
	"go/parser"
	"go/scanner"
	"go/token"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"grove"
	"grove/internal/gopher"
	tokens "grove/internal/text/token"
)

// headers returns the beginnings of functions of the Go distribution: comment and header.
func headers(b *testing.B, n int) (all []string) {
	files, err := filepath.Glob(filepath.Join(build.Default.GOROOT, "src", "*", "*.go"))
	if err != nil || len(files) < 100 {
		b.Skip("the sources of the Go distribution are not here")
	}
	head := regexp.MustCompile(`(?m)(^//.*\n){1,3}^func [A-Z]\w*\(.*\{\n`)
	for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(len(files)) {
		if len(all) == n {
			break
		}
		text, err := os.ReadFile(files[i])
		if err != nil {
			b.Fatal(err)
		}
		if f := head.Find(text); f != nil && len(f) < 300 && !strings.HasSuffix(files[i], "_test.go") {
			all = append(all, "package p\n\n"+string(f))
		}
	}
	return all
}

// parses reports whether a file is Go, and else whether it is the beginning of one as far as its last line.
func parses(file string) (whole, beginning bool) {
	_, err := parser.ParseFile(token.NewFileSet(), "", file, parser.SkipObjectResolution)
	if err == nil {
		return true, true
	}
	first := err.(scanner.ErrorList)[0].Pos.Line
	return false, first >= strings.Count(strings.TrimRight(file, " \t\n"), "\n")+1
}

// BenchmarkParses tells how many answers of the embedded model, functions of up to 64 tokens, end and are Go, by ways to sample, with the tokens
// that an answer takes and the interval of 95 % (Wilson's).
func BenchmarkParses(b *testing.B) {
	m, err := grove.OpenBytes(gopher.Named(gopher.Name), grove.Options{Forget: true, Parallel: 8})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	prompts := headers(b, 150)
	for _, way := range []struct {
		name, search string
		scored       bool
	}{
		{"plain", "", false}, {"greedy", "beam,n=1", false}, {"adadec", "adadec,threshold=2.3192", false}, {"adadec-1", "adadec", false}, {"best-8", "best,n=8", false}, {"best-8-sum", "best,n=8,by=sum", false}, {"best-8-parser", "best,n=8,by=score", true},
		{"beam-8", "beam,n=8", false}, {"cntp-8", "cntp,n=8", false}, {"cntp-8-text", "cntp,n=8,clause=text", false}, {"smc-8-power-2", "smc,n=8,power=2", false},
		{"smc-8-power-4", "smc,n=8,power=4", false}, {"smc-8-parser", "smc,n=8,block=8", true}, {"smc-8-parser-best", "smc,n=8,block=8,pick=best", true}, {"smc-4-parser-moves", "smc,n=4,block=8,threshold=1,moves=1,pick=best", true},
	} {
		b.Run(way.name, func(b *testing.B) {
			clean, all, rows := 0.0, 0.0, 0
			for b.Loop() {
				for i, prompt := range prompts {
					seed := uint64(i)
					r := grove.Request{Prompt: prompt, MaxTokens: 64, Stop: []string{"\n}"}, Sampling: grove.Sampling{Temperature: 1}, Seed: &seed, Search: way.search, Method: grove.MethodOff}
					if way.scored {
						r.Scorer = &grove.Scorer{Score: func(_ context.Context, text string) (float64, error) {
							if whole, _ := parses(prompt + text + "\n}\n"); whole {
								return 0, nil
							}
							if _, beginning := parses(prompt + text); beginning {
								return -1, nil
							}
							return -5, nil
						}}
					}
					before := m.Load().Rows
					g, err := m.Generate(b.Context(), r)
					if err != nil {
						b.Fatal(err)
					}
					text, err := g.Text()
					if err != nil {
						b.Fatal(err)
					}
					rows += m.Load().Rows - before - g.Stats().PromptTokens
					if whole, _ := parses(prompt + text + "\n}\n"); whole && g.Stats().Finish == grove.FinishStop {
						clean++
					}
					all++
				}
			}
			p, z := clean/all, 1.96
			middle, half := (p+z*z/(2*all))/(1+z*z/all), z*math.Sqrt(p*(1-p)/all+z*z/(4*all*all))/(1+z*z/all)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(100*p, "%")
			b.ReportMetric(float64(rows)/all, "tokens")
			b.Logf("%s: %.1f %% [%.1f, %.1f] of %.0f", way.name, 100*p, 100*(middle-half), 100*(middle+half), all)
		})
	}
}

// repeated returns the share of the runs of four tokens that stood before in the text.
func repeated(ids []tokens.ID) float64 {
	seen, again := map[[4]tokens.ID]bool{}, 0.0
	for i := 4; i <= len(ids); i++ {
		run := [4]tokens.ID(ids[i-4 : i])
		if seen[run] {
			again++
		}
		seen[run] = true
	}
	return again / float64(max(1, len(ids)-3))
}

// BenchmarkRepeats tells how much answers of the embedded model, of 200 tokens, repeat themselves by ways to decode that are not random, and how long a token takes. The ways take
// turns in each prompt.
func BenchmarkRepeats(b *testing.B) {
	m, err := grove.OpenBytes(gopher.Named(gopher.Name), grove.Options{Forget: true})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	ways := []string{"", "contrastive", "contrastive,alpha=0.4", "contrastive,alpha=0.2", "contrastive,alpha=0", "dola", "dola,layers=high"}
	share, seconds := make([]float64, len(ways)), make([]float64, len(ways))
	prompts, n := headers(b, 40), 0.0
	for b.Loop() {
		for _, prompt := range prompts {
			for i, search := range ways {
				g, err := m.Generate(b.Context(), grove.Request{Prompt: prompt, MaxTokens: 200, IgnoreEnd: true, Search: search, Method: grove.MethodOff})
				if err != nil {
					b.Fatal(err)
				}
				var ids []tokens.ID
				start := time.Now()
				for t, err := range g.Tokens() {
					if err != nil {
						b.Fatal(err)
					}
					ids = append(ids, t.ID)
				}
				share[i] += repeated(ids)
				seconds[i] += time.Since(start).Seconds() / float64(len(ids))
			}
			n++
		}
	}
	b.ReportMetric(0, "ns/op")
	for i, search := range ways {
		b.Logf("%-22s %4.1f %% of the runs of 4 tokens are repeated; %.2f ms a token", cmp.Or(search, "greedy"), 100*share[i]/n, 1000*seconds[i]/n)
	}
}
