package front_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
)

// filled is an answer of a model of masked diffusion.
type filled struct {
	Text   string
	Passes int
	Rows   int
	Grade  grove.Grade
}

func fill(t *testing.T, m *grove.Model, r grove.Request) filled {
	t.Helper()
	g, err := m.Generate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := g.Text()
	if err != nil {
		t.Fatal(err)
	}
	s := g.Stats()
	return filled{text, s.Passes, s.Rows, s.Grade}
}

// TestDiffusion fills canvases with random models of each architecture, by themselves and beside others, with any threads: the tokens depend on the request alone.
func TestDiffusion(t *testing.T) {
	for _, arch := range []string{"llada", "llada-moe", "dream", "rnd1"} {
		t.Run(arch, func(t *testing.T) {
			one, _ := randomModel(t, synthetic.Spec{Arch: arch}, grove.Options{Threads: 1, CacheType: "f32"}, nil)
			m, _ := randomModel(t, synthetic.Spec{Arch: arch}, grove.Options{Threads: 2, Parallel: 4, CacheType: "f32"}, nil)
			var requests []grove.Request
			for i, d := range []grove.Diffusion{{}, {Block: 8}, {Block: 8, Cache: "prefix"}, {Block: 8, Cache: "dual"}, {Cache: "delayed"}, {Policy: "static", Steps: 6}, {Policy: "factor", Block: 5}, {Policy: "timestep", Steps: 12}, {Cache: "vicinity:before=2,behind=2,warm=0", Block: 8}, {Cache: "window:masks=8,active=3,every=4"}, {Cache: "recap", Policy: "static"}, {Policy: "smooth:p=0.3", Block: 8}, {Policy: "smooth:p=0.3", Cache: "dual", Block: 8}} {
				seed := uint64(7 + i)
				r := grove.Request{Prompt: fmt.Sprint("text ", i), MaxTokens: 24, Seed: &seed, IgnoreEnd: true, Diffusion: &d}
				if i%2 == 1 {
					r.Sampling.Temperature = 0.8
				}
				requests = append(requests, r)
			}
			alone := make([]filled, len(requests))
			for i, r := range requests {
				alone[i] = fill(t, one, r)
				if d := r.Diffusion; (d.Cache != "") != (alone[i].Grade == grove.Lossy) {
					t.Errorf("%+v has the grade %v", *d, alone[i].Grade)
				}
			}
			beside := make([]filled, len(requests))
			var all sync.WaitGroup
			for i, r := range requests {
				all.Go(func() { beside[i] = fill(t, m, r) })
			}
			all.Wait()
			if diff := cmp.Diff(alone, beside); diff != "" {
				t.Error(diff)
			}
			if p := alone[5].Passes; p != 6 {
				t.Errorf("%d passes of 6 steps", p)
			}
		})
	}
}

// TestDiffusionCaches: a cache that is made anew in every pass gives the answer of none, bit by bit, and others run fewer rows.
func TestDiffusionCaches(t *testing.T) {
	for _, arch := range []string{"llada", "dream"} {
		m, _ := randomModel(t, synthetic.Spec{Arch: arch}, grove.Options{}, nil)
		ask := func(cache string, block int) (answer, grove.Stats) {
			r := grove.Request{Prompt: "a prompt of more than one token", MaxTokens: 80, IgnoreEnd: true, Diffusion: &grove.Diffusion{Cache: cache, Block: block, Policy: "static", Steps: 40}}
			if block == 1 {
				r.MaxTokens, r.Diffusion.Steps = 12, 0
			}
			return generate(t, m, r)
		}
		for cache, block := range map[string]int{ // blocks of one token have one pass each
			"prefix": 1, "dual": 1, "delayed:1": 0, "vicinity:every=1": 20, "vicinity:warm=999": 0, "window:masks=80,active=80,every=1": 0, "recap:more=0": 20,
		} {
			want, all := ask("", block)
			got, stats := ask(cache, block)
			if d := cmp.Diff(want, got, sameBits); d != "" || stats.Rows != all.Rows {
				t.Errorf("%s, %s: %d rows, without it %d (-want +got):\n%s", arch, cache, stats.Rows, all.Rows, d)
			}
		}
		smoothed := func(policy, cache string) (answer, grove.Stats) {
			return generate(t, m, grove.Request{Prompt: "a prompt of more than one token", MaxTokens: 40, IgnoreEnd: true, Diffusion: &grove.Diffusion{Cache: cache, Block: 20, Policy: policy}})
		}
		const falls = "smooth:p=0.05,decay=0.2"
		want, plain := smoothed(falls, "")
		if got, stats := smoothed(falls, "vicinity:warm=999"); cmp.Diff(want, got, sameBits) != "" || stats.Rows != plain.Rows {
			t.Errorf("%s: smoothed, with a cache of nothing: %s", arch, cmp.Diff(want, got, sameBits))
		}
		if got, _ := smoothed(falls+",first=0,growth=0", ""); cmp.Diff(want, got, sameBits) == "" {
			t.Errorf("%s: masks that read what the pass before expected make no difference", arch)
		}
		steady, _ := smoothed("threshold:p=1", "")
		if got, _ := smoothed("smooth:p=1,first=0,growth=0", ""); cmp.Diff(steady, got, sameBits) != "" {
			t.Errorf("%s: a threshold that does not fall, and no smoothing: %s", arch, cmp.Diff(steady, got, sameBits))
		}
		_, all := ask("", 20)
		for cache, percent := range map[string]int{"prefix": 75, "dual": 35, "vicinity:before=4,behind=4,warm=0": 40, "delayed": 80, "window:masks=16,active=4,every=8": 30, "recap:more=3": 40} {
			if _, got := ask(cache, 20); got.Passes != all.Passes || got.Rows*100 > all.Rows*percent {
				t.Errorf("%s, %s: %d rows in %d passes, without it %d in %d", arch, cache, got.Rows, got.Passes, all.Rows, all.Passes)
			}
		}
	}
}

// TestCanvasStats: the passes that fixed the tokens, their information, and the fewest passes by a rule.
func TestCanvasStats(t *testing.T) {
	m, _ := randomModel(t, synthetic.Spec{Arch: "llada"}, grove.Options{}, nil)
	for _, policy := range []string{"factor", "ete", "static"} {
		a, s := generate(t, m, grove.Request{Prompt: "text", MaxTokens: 20, IgnoreEnd: true, Diffusion: &grove.Diffusion{Policy: policy}})
		nats := 0.0
		for _, token := range a.Tokens {
			nats -= float64(token.Logprob)
		}
		bound := int(math.Ceil(s.Information))
		if policy == "static" {
			bound = 0
		}
		if len(s.Fixed) != 20 || slices.Max(s.Fixed) != s.Passes-1 || slices.Min(s.Fixed) != 0 || math.Abs(s.Information-nats) > 1e-3 || s.Bound != bound {
			t.Errorf("%s: %+v; the tokens have %.4f nats", policy, s.CanvasStats, nats)
		}
	}
}

// TestDiffusionRefused names what a canvas cannot do, and settings that are none.
func TestDiffusionRefused(t *testing.T) {
	m, _ := randomModel(t, synthetic.Spec{Arch: "llada"}, grove.Options{}, nil)
	plain, _ := randomModel(t, synthetic.Spec{Arch: "llama"}, grove.Options{}, nil)
	unmasked, _ := randomModel(t, synthetic.Spec{Arch: "llada"}, grove.Options{}, func(kv []gguf.KV) (left []gguf.KV) {
		for _, k := range kv {
			if k.Key != "tokenizer.ggml.mask_token_id" {
				left = append(left, k)
			}
		}
		return left
	})
	for _, c := range []struct {
		name  string
		model *grove.Model
		r     grove.Request
		want  string
	}{
		{"another model", plain, grove.Request{Diffusion: &grove.Diffusion{}}, "llama is no diffusion model"},
		{"no mask", unmasked, grove.Request{}, "names no mask token (tokenizer.ggml.mask_token_id)"},
		{"too long", m, grove.Request{MaxTokens: 500}, "a canvas of 500 tokens behind a prompt of"},
		{"steps", m, grove.Request{MaxTokens: 8, Diffusion: &grove.Diffusion{Steps: 9}}, "9 steps; there must be 1 to 8"},
		{"steps below", m, grove.Request{MaxTokens: 8, Diffusion: &grove.Diffusion{Steps: -1}}, "-1 steps; there must be 1 to 8"},
		{"a policy", m, grove.Request{Diffusion: &grove.Diffusion{Policy: "treshold"}}, `policy "treshold" is not known`},
		{"a policy that revises", m, grove.Request{Diffusion: &grove.Diffusion{Policy: "rcr"}, Penalties: grove.Penalties{Repeat: 1.2}}, "policy rcr changes tokens that are fixed"},
		{"drafts", m, grove.Request{MaxTokens: 8, Diffusion: &grove.Diffusion{Policy: "static", Drafts: 2}, Constraint: &grove.Constraint{Regex: "a*"}}, "2 drafts of a canvas, which is filled from the left"},
		{"a search", m, grove.Request{Search: "ffs"}, "for which a search is not supported"},
		{"skipping layers", m, grove.Request{SkipLayers: "to=1"}, "for which skipping layers is not supported"},
		{"a session", m, grove.Request{Session: "x.session"}, "a session of a canvas: rows that all see each other have keys of one canvas alone"},
	} {
		c.r.Prompt = "text"
		_, err := c.model.Generate(t.Context(), c.r)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s", c.name, err, c.want)
		}
	}
}

// TestDiffusionAlone: what needs the next token's logits is refused by name, and a canvas that is cancelled gives its place back.
func TestDiffusionAlone(t *testing.T) {
	m, _ := randomModel(t, synthetic.Spec{Arch: "dream"}, grove.Options{Parallel: 1}, nil)
	_, err := m.NewSequence(t.Context(), grove.Request{Prompt: "text"})
	if err == nil || !strings.Contains(err.Error(), "fills a canvas by diffusion") {
		t.Errorf("a sequence: error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	g, err := m.Generate(ctx, grove.Request{Prompt: "text", MaxTokens: 64, IgnoreEnd: true, Diffusion: &grove.Diffusion{Policy: "static:order=left"}})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err = range g.Tokens() {
		if n++; n == 3 {
			cancel()
		}
	}
	if !errors.Is(err, context.Canceled) || n > 8 {
		t.Errorf("%d tokens, error %v", n, err)
	}
	if l := m.Load(); l.Open != 0 {
		t.Errorf("%d places are taken", l.Open)
	}
	if got := fill(t, m, grove.Request{Prompt: "text", MaxTokens: 8, IgnoreEnd: true}); got.Passes == 0 {
		t.Error("no further canvas is filled")
	}
}
