package bench

import (
	"os"
	"slices"
	"testing"
	"time"

	"grove/internal/engine"
	"grove/internal/model"
	"grove/internal/par"
	"grove/internal/stat"
	"grove/internal/text/tokenizer"
	"grove/internal/weights/gguf"
	"grove/internal/weights/heads"
	"grove/method/layers"
)

// Chunks of the text of BenchmarkPlaces: a prompt, and tokens that skip layers.
const (
	placesPrompt = 64
	placesTokens = 128
	placesChunks = 8
)

// BenchmarkPlaces has the figures of docs/methods/layers.md (skipping layers, LoRA-Drop): nats of a text's tokens, the share of places whose likeliest token is that of all layers, and tokens a second.
func BenchmarkPlaces(b *testing.B) {
	f, err := gguf.Open("../internal/gopher/testdata/gopher-deep/gopher-deep.q8_0.gguf")
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	pool := par.New(1)
	defer pool.Close()
	m, err := model.Open(f, pool, model.Options{})
	if err != nil {
		b.Fatal(err)
	}
	adapters, err := heads.OpenFor("../internal/gopher/testdata/substitutes/gopher-deep-lora-drop", f, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer adapters.Close()
	substitutes, _, err := model.OpenSubstitutes(adapters, pool, m.Info())
	if err != nil {
		b.Fatal(err)
	}
	e, err := engine.New(m, pool, engine.Config{Substitutes: substitutes})
	if err != nil {
		b.Fatal(err)
	}
	t, err := tokenizer.FromGGUF(f)
	if err != nil {
		b.Fatal(err)
	}
	var text []byte
	for _, name := range []string{"../internal/forest/verbs.go", "../internal/kv/verbs.go"} {
		more, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		text = append(text, more...)
	}
	ids, err := t.Encode(nil, string(text), tokenizer.Options{Plain: true})
	if err != nil {
		b.Fatal(err)
	}
	var full []int
	for _, options := range []string{"to=12", "to=10,over=128", "to=8,over=128", "to=6,over=128", "to=10,over=128,first=3", "to=8,over=128,first=3", "to=6,over=128,first=3", "to=8,over=128,first=5", "to=6,over=128,first=5", "to=9,over=1,first=5", "to=6,over=1,first=5", "period=1", "period=2", "period=4"} {
		p, err := layers.ParsePlaces(options)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(options, func(b *testing.B) {
			for b.Loop() {
				var loss float64
				var best []int
				var spent time.Duration
				for c := range placesChunks {
					s, err := e.NewSequence(engine.Answer{Places: p})
					if err != nil {
						b.Fatal(err)
					}
					at := c * (placesPrompt + placesTokens)
					if err := s.Append(b.Context(), ids[at:at+placesPrompt]); err != nil {
						b.Fatal(err)
					}
					begun := time.Now()
					for _, id := range ids[at+placesPrompt:][:placesTokens] {
						logits, err := s.Logits(b.Context())
						if err != nil {
							b.Fatal(err)
						}
						loss += stat.LogSumExp(logits) - float64(logits[id])
						best = append(best, slices.Index(logits, slices.Max(logits)))
						if err := s.Follow(id); err != nil {
							b.Fatal(err)
						}
					}
					spent += time.Since(begun)
					if err := s.Close(); err != nil {
						b.Fatal(err)
					}
				}
				if full == nil {
					full = best
				}
				kept := 0
				for i := range best {
					if best[i] == full[i] {
						kept++
					}
				}
				n := float64(len(best))
				b.ReportMetric(loss/n, "nats")
				b.ReportMetric(100*float64(kept)/n, "%kept")
				b.ReportMetric(n/spent.Seconds(), "tokens/s")
			}
		})
	}
}
