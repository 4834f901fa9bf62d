package front_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
)

// renoises is a model of random weights whose canvases begin as random tokens, with keys of its file replaced.
func renoises(t *testing.T, o grove.Options, kvs ...gguf.KV) *grove.Model {
	t.Helper()
	m, _ := randomModel(t, synthetic.Spec{Arch: "diffusion-gemma"}, o, func(all []gguf.KV) []gguf.KV { return append(without(all, kvs...), kvs...) })
	return m
}

// without returns pairs without those of some keys.
func without(all []gguf.KV, kvs ...gguf.KV) (left []gguf.KV) {
	for _, kv := range all {
		keep := true
		for _, other := range kvs {
			keep = keep && kv.Key != other.Key
		}
		if keep {
			left = append(left, kv)
		}
	}
	return left
}

// TestRenoise fills canvases by themselves and beside others, with any threads: the tokens depend on the request alone.
func TestRenoise(t *testing.T) {
	one, m := renoises(t, grove.Options{Threads: 1, CacheType: "f32"}), renoises(t, grove.Options{Threads: 2, Parallel: 4, CacheType: "f32"})
	var requests []grove.Request
	for i, d := range []grove.Diffusion{{}, {Block: 8}, {Steps: 3}, {Policy: "entropy-bound:bound=0"}, {Policy: "entropy-bound:bound=50", Block: 10, Steps: 20}, {Cache: "none"}} {
		seed := uint64(7 + i)
		r := grove.Request{Prompt: fmt.Sprint("a text that is longer than the window of the model, which has fifty tokens ", i), MaxTokens: 30, Seed: &seed, IgnoreEnd: true, Diffusion: &d}
		if i%3 < 2 {
			r.Sampling.Temperature = 1
		}
		requests = append(requests, r)
	}
	requests = append(requests, requests[0])
	other := uint64(100)
	requests[6].Seed = &other
	alone, beside := make([]filled, len(requests)), make([]filled, len(requests))
	for i, r := range requests {
		alone[i] = fill(t, one, r)
		alone[i].Rows = 0 // what the cache has of a prompt does not run
	}
	for range 2 { // prompts are in the cache the second time
		var all sync.WaitGroup
		for i, r := range requests {
			all.Go(func() { beside[i] = fill(t, m, r) })
		}
		all.Wait()
		for i := range beside {
			beside[i].Rows = 0
		}
		if diff := cmp.Diff(alone, beside); diff != "" {
			t.Error(diff)
		}
	}
	if alone[0].Passes != 16 || alone[1].Passes != 32 || alone[2].Passes != 6 { // canvases of 24, of 8; a random model never settles
		t.Errorf("%d, %d and %d passes", alone[0].Passes, alone[1].Passes, alone[2].Passes)
	}
	if alone[0].Text == alone[6].Text {
		t.Error("another seed gives the same text")
	}
	if alone[0].Grade != grove.Exact {
		t.Errorf("grade %v", alone[0].Grade)
	}
}

// TestRenoiseEnds: an answer ends with the context, and where its tokens go round in a loop; a canvas that settles ends early.
func TestRenoiseEnds(t *testing.T) {
	ask := func(m *grove.Model, r grove.Request) (grove.Stats, int) {
		t.Helper()
		r.Prompt = "text"
		g, err := m.Generate(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Text(); err != nil {
			t.Fatal(err)
		}
		return g.Stats(), g.Stats().Tokens
	}
	m := renoises(t, grove.Options{Context: 60})
	if s, n := ask(m, grove.Request{IgnoreEnd: true}); s.Finish != grove.FinishContext || n+s.PromptTokens != 60 {
		t.Errorf("%s behind %d and %d tokens", s.Finish, s.PromptTokens, n)
	}
	if s, n := ask(m, grove.Request{IgnoreEnd: true, MaxTokens: 25}); s.Finish != grove.FinishLength || n != 25 {
		t.Errorf("%s behind %d tokens", s.Finish, n)
	}
	cold := renoises(t, grove.Options{}, gguf.KV{Key: "diffusion.eb_confidence_threshold", Value: gguf.Of(float32(100))}, gguf.KV{Key: "diffusion.eb_stability_threshold", Value: gguf.Of(uint32(0))})
	if s, _ := ask(cold, grove.Request{IgnoreEnd: true, MaxTokens: 48}); s.Passes != 2 {
		t.Errorf("%d passes of two canvases that settle at once", s.Passes)
	}
	// One token is the likeliest everywhere: a loop, unless ends are ignored.
	r := grove.Request{MaxTokens: 40, Penalties: grove.Penalties{Bias: []grove.Bias{{ID: 'x', Add: 100}}}}
	if s, n := ask(cold, r); s.Finish != grove.FinishStop || n != 1 || s.Passes != 1 {
		t.Errorf("%s behind %d tokens and %d passes", s.Finish, n, s.Passes)
	}
	r.IgnoreEnd = true
	if s, n := ask(cold, r); s.Finish != grove.FinishLength || n != 40 {
		t.Errorf("%s behind %d tokens", s.Finish, n)
	}
}

// TestRenoiseWatched: whoever watches a canvas sees masks before its first pass, and then as many likely tokens as it has; the last ones are the text.
func TestRenoiseWatched(t *testing.T) {
	m := renoises(t, grove.Options{})
	seed := uint64(3)
	g, err := m.Generate(t.Context(), grove.Request{Prompt: "text", MaxTokens: 48, Seed: &seed, IgnoreEnd: true})
	if err != nil {
		t.Fatal(err)
	}
	var masks, texts int
	g.WatchCanvas(func(runs []grove.CanvasRun) {
		if len(runs) != 1 || runs[0].Masks != 0 && runs[0].Masks != synthetic.SyntheticCanvas {
			t.Errorf("a canvas is %+v", runs)
		}
		if runs[0].Masks > 0 {
			masks++
		} else if runs[0].Text != "" {
			texts++
		}
	})
	if _, err := g.Text(); err != nil {
		t.Fatal(err)
	}
	if s := g.Stats(); masks != 2 || texts != s.Passes-2 {
		t.Errorf("%d canvases of masks and %d of tokens in %d passes", masks, texts, s.Passes)
	}
}

// TestRenoiseProgress: the prompt is read in parts, and what the cache has of it is not read again.
func TestRenoiseProgress(t *testing.T) {
	m := renoises(t, grove.Options{Chunk: 32}, gguf.KV{Key: "diffusion-gemma.context_length", Value: gguf.Of(uint32(400))})
	ask := func(salt string) (told []int, reused int) {
		g, err := m.Generate(t.Context(), grove.Request{
			Prompt: strings.Repeat("a prompt ", 20), MaxTokens: 30, IgnoreEnd: true, CacheSalt: salt, Progress: func(done, all int) { told = append(told, done, all) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Text(); err != nil {
			t.Fatal(err)
		}
		return told, g.Stats().ReusedTokens
	}
	told, reused := ask("")
	if n := told[1]; told[0] != 0 || told[len(told)-2] != n || len(told) < 8 || reused != 0 {
		t.Errorf("told %v, reused %d", told, reused)
	}
	if again, reused := ask(""); reused != 128 || len(again) >= len(told) {
		t.Errorf("again: told %v, reused %d", again, reused)
	}
	if _, reused := ask("other"); reused != 0 {
		t.Errorf("a request with another salt reuses %d tokens", reused)
	}
}

// TestRenoiseRefused names what such canvases cannot do, and settings that are none.
func TestRenoiseRefused(t *testing.T) {
	m := renoises(t, grove.Options{Context: 100})
	for want, r := range map[string]grove.Request{
		"for which a cache (the keys before a canvas are exact, and always kept)": {Diffusion: &grove.Diffusion{Cache: "dual"}},
		"for which drafts of a canvas is not supported":                           {Diffusion: &grove.Diffusion{Drafts: 2}},
		"for which blocks that end by themselves":                                 {Diffusion: &grove.Diffusion{Blocks: "adaptive"}},
		"for which an early end":                                                  {Diffusion: &grove.Diffusion{Early: "end"}},
		"policy threshold:p=0.9 chooses masks, and the canvas has none":           {Diffusion: &grove.Diffusion{Policy: "threshold:p=0.9"}},
		`policy "treshold" is not known`:                                          {Diffusion: &grove.Diffusion{Policy: "treshold"}},
		"diffuse: blocks of 25 tokens; a canvas has 1 to 24":                      {Diffusion: &grove.Diffusion{Block: 25}},
		"blocks of -1 tokens":                                                     {Diffusion: &grove.Diffusion{Block: -1}},
		"-1 steps of a canvas":                                                    {Diffusion: &grove.Diffusion{Steps: -1}},
		"an answer of 200 tokens where there is room for":                         {MaxTokens: 200},
		"for which a search is not supported":                                     {Search: "ffs"},
		"or what a draw reads of the text before its token, is not supported":     {Penalties: grove.Penalties{Repeat: 1.2}},
	} {
		r.Prompt = "text"
		_, err := m.Generate(t.Context(), r)
		var option *grove.OptionError
		if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, &option) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if _, err := m.NewSequence(t.Context(), grove.Request{Prompt: "text"}); err == nil || !strings.Contains(err.Error(), "fills a canvas by diffusion") {
		t.Errorf("a sequence: error %v", err)
	}
	if s := m.DefaultSampling(); s.Temperature != 1 || s.TopK != 0 || s.MinP != 0 {
		t.Errorf("draws by %+v; the schedule of the file is the temperature", s)
	}
	path := filepath.Join(t.TempDir(), "canvas.gguf")
	metadata, tensors, err := synthetic.Spec{Arch: "diffusion-gemma", Vocabulary: true, Vocab: 300}.Parts()
	if err = errors.Join(err, gguf.WriteFile(path, metadata, tensors)); err != nil {
		t.Fatal(err)
	}
	if _, err := grove.Open(path, threaded(grove.Options{Draft: path})); err == nil || !strings.Contains(err.Error(), "cannot draft for") {
		t.Errorf("as a draft model: error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	g, err := m.Generate(ctx, grove.Request{Prompt: "text", MaxTokens: 60, IgnoreEnd: true})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err = range g.Tokens() {
		if n++; n == 3 {
			cancel()
		}
	}
	if !errors.Is(err, context.Canceled) || n > 30 || m.Load().Open != 0 {
		t.Errorf("cancelled: %d tokens, error %v, %d places are taken", n, err, m.Load().Open)
	}
}
