package front_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/model/synthetic"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
)

// blockAnswer is an answer with the probability of each token.
type blockAnswer struct {
	Text     string
	Passes   int
	Rows     int
	Grade    grove.Grade
	IDs      []token.ID
	Logprobs []float32
	Reused   int
	Finish   grove.Finish
}

func filledBlocks(t *testing.T, m *grove.Model, r grove.Request) (s blockAnswer) {
	t.Helper()
	g, err := m.Generate(t.Context(), r)
	if err != nil {
		t.Error(err)
		return s
	}
	for one, err := range g.Tokens() {
		if err != nil {
			t.Error(err)
			return s
		}
		if s.Text += one.Text; one.ID == token.None { // the end of the text alone
			continue
		}
		s.IDs, s.Logprobs = append(s.IDs, one.ID), append(s.Logprobs, one.Logprob)
	}
	st := g.Stats()
	s.Passes, s.Rows, s.Grade, s.Reused, s.Finish = st.Passes, st.Rows, st.Grade, st.ReusedTokens, st.Finish
	return s
}

// text is what must not depend on caches and drafts.
func (s blockAnswer) text() blockAnswer {
	s.Passes, s.Rows, s.Reused = 0, 0, 0
	return s
}

// blockRequests are answers behind prompts that end within a block or with one.
func blockRequests() (requests []grove.Request) {
	for i, d := range []grove.Diffusion{
		{}, {Policy: "static"}, {Policy: "dynamic:p=0.1"}, {Policy: "first-hitting"}, {Policy: "entropy-sum:bound=9"}, {Block: 2}, {Policy: "rcr"}, {Policy: "static:order=left", Steps: 12}, {Policy: "smooth:p=0.3,decay=0.2"},
	} {
		seed := uint64(5 + i)
		r := grove.Request{Prompt: strings.Repeat("a text of its own ", 5)[:56+2*i], MaxTokens: 19 + i%4, Seed: &seed, IgnoreEnd: true, Diffusion: &d}
		if i%2 == 1 {
			r.Sampling.Temperature = 0.8
		}
		requests = append(requests, r)
	}
	return requests
}

// TestBlocks fills blocks with random models, alone and beside others, with any threads: the tokens and their probabilities depend on the request alone. With the keys of
// finished blocks, with those that earlier answers have left, and with all rows in each pass they are the same. The short run has one cache for each model, by turns.
func TestBlocks(t *testing.T) {
	for n, spec := range []synthetic.Spec{{Arch: "sdar"}, {Arch: "sdar_moe"}, {Arch: "sdar", Block: 16}, {Arch: "sdar", Block: 3}, {Arch: "sdar", Shift: true}} {
		for i, cache := range []string{"f32", "q8_0"} {
			if !long && i != n%2 {
				continue
			}
			t.Run(fmt.Sprint(spec.Arch, spec.Block, spec.Shift, cache), func(t *testing.T) {
				t.Parallel()
				one, _ := randomModel(t, spec, grove.Options{Threads: 1, CacheType: cache}, nil)
				m, _ := randomModel(t, spec, grove.Options{Threads: 2, Parallel: 4, CacheType: cache}, nil)
				var requests []grove.Request
				for _, r := range blockRequests() {
					if d := r.Diffusion; d.Block <= max(spec.Block, 3) {
						requests = append(requests, r)
					}
				}
				alone := make([]blockAnswer, len(requests))
				for i, r := range requests {
					alone[i] = filledBlocks(t, one, r).text()
					if len(alone[i].IDs) != r.MaxTokens || alone[i].Grade != grove.Exact {
						t.Errorf("%+v: %d tokens, grade %v", *r.Diffusion, len(alone[i].IDs), alone[i].Grade)
					}
					if again := filledBlocks(t, one, r); again.Reused != 64 && 64%max(1, r.Diffusion.Block, spec.Block) == 0 && len(r.Prompt) > 67 || cmp.Diff(again.text(), alone[i]) != "" {
						t.Errorf("%+v: again, with %d tokens of before: %s", *r.Diffusion, again.Reused, cmp.Diff(alone[i], again.text()))
					}
					d := *r.Diffusion
					r.Diffusion, d.Cache = &d, "none"
					if diff := cmp.Diff(alone[i], filledBlocks(t, one, r).text()); diff != "" {
						t.Errorf("%+v: without a cache: %s", d, diff)
					}
				}
				beside := make([]blockAnswer, len(requests))
				var all sync.WaitGroup
				for i, r := range requests {
					all.Go(func() { beside[i] = filledBlocks(t, m, r).text() })
				}
				all.Wait()
				if diff := cmp.Diff(alone, beside); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// TestBlockDrafts: FreeDave's drafts give the tokens and probabilities of static decoding, in fewer passes.
func TestBlockDrafts(t *testing.T) {
	m, _ := randomModel(t, synthetic.Spec{Arch: "sdar", Block: 8}, grove.Options{CacheType: "f32"}, nil)
	saved := 0
	for seed := range uint64(4) {
		r := grove.Request{Prompt: "a prompt", MaxTokens: 30, Seed: &seed, IgnoreEnd: true}
		r.Sampling.Temperature = float32(seed) / 4
		ask := func(drafts int) blockAnswer {
			r.Diffusion = &grove.Diffusion{Policy: "static", Drafts: drafts}
			return filledBlocks(t, m, r)
		}
		want, got := ask(0), ask(4)
		if diff := cmp.Diff(want.text(), got.text()); diff != "" {
			t.Error(diff)
		}
		saved += want.Passes - got.Passes
	}
	if saved <= 0 {
		t.Errorf("%d passes were saved", saved)
	}
}

// TestBlockEnds: an answer is as long as it may be, ends with the context or with a token that ends the text, and a longer one begins with a shorter one.
func TestBlockEnds(t *testing.T) {
	m, _ := randomModel(t, synthetic.Spec{Arch: "sdar"}, grove.Options{CacheType: "f32"}, nil)
	long := filledBlocks(t, m, grove.Request{Prompt: "a prompt", IgnoreEnd: true})
	if n := len(long.IDs); long.Finish != grove.FinishContext && long.Finish != grove.FinishLength || n+8 < 120 {
		t.Errorf("%d tokens, finish %q", n, long.Finish)
	}
	for _, n := range []int{1, 3, 4, 9} {
		if short := filledBlocks(t, m, grove.Request{Prompt: "a prompt", IgnoreEnd: true, MaxTokens: n}); cmp.Diff(short.IDs, long.IDs[:n]) != "" || short.Finish != grove.FinishLength {
			t.Errorf("%d tokens: %v, finish %q; want %v", n, short.IDs, short.Finish, long.IDs[:n])
		}
	}
	stop := filledBlocks(t, m, grove.Request{Prompt: "a prompt", IgnoreEnd: true, StopTokens: long.IDs[9:10]})
	if len(stop.IDs) > 9 || stop.Finish != grove.FinishStop {
		t.Errorf("%d tokens, finish %q", len(stop.IDs), stop.Finish)
	}
}

// TestBlocksRefused names what a model of blocks cannot do.
func TestBlocksRefused(t *testing.T) {
	m, _ := randomModel(t, synthetic.Spec{Arch: "sdar"}, grove.Options{}, nil)
	for _, c := range []struct {
		name, want string
		r          grove.Request
	}{
		{"longer blocks", "blocks of 8 tokens; those of the model have 4, and may have fewer", grove.Request{Diffusion: &grove.Diffusion{Block: 8}}},
		{"a cache", "cache prefix is of models whose rows all see each other", grove.Request{Diffusion: &grove.Diffusion{Cache: "prefix"}}},
		{"adaptive blocks", "early ends are of models", grove.Request{Diffusion: &grove.Diffusion{Early: "end"}}},
		{"too long", "a canvas of 500 tokens behind a prompt of", grove.Request{MaxTokens: 500}},
		{"one by one", "blocks of one token are decoded one after the other; leave out the other settings", grove.Request{Diffusion: &grove.Diffusion{Block: 1, Policy: "static"}}},
		{"a session without a cache", "a session of a canvas: cache none keeps no keys", grove.Request{Session: "x.session", Diffusion: &grove.Diffusion{Cache: "none"}}},
		{"a session of other blocks", "blocks of 3 tokens do not end where the pages of a session do; choose a length that divides 64", grove.Request{Session: "x.session", Diffusion: &grove.Diffusion{Block: 3}}},
		{"a search", "for which a search is not supported; with blocks of one token (block 1)", grove.Request{Search: "best,n=2"}},
	} {
		c.r.Prompt = "text"
		if _, err := m.Generate(t.Context(), c.r); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s", c.name, err, c.want)
		}
	}
}

// TestBlocksOfOne decodes token by token with blocks of one token: as a Qwen 3 with the same weights where heads are shifted, with sessions, constraints and methods; and never the mask.
func TestBlocksOfOne(t *testing.T) {
	for _, spec := range []synthetic.Spec{{Arch: "sdar"}, {Arch: "sdar", Shift: true}, {Arch: "sdar_moe", Shift: true}} {
		shift := spec.Shift
		m, _ := randomModel(t, spec, grove.Options{CacheType: "f32"}, nil)
		seed := uint64(3)
		r := grove.Request{Prompt: "a prompt", MaxTokens: 30, Seed: &seed, IgnoreEnd: true, Method: grove.MethodOff, Diffusion: &grove.Diffusion{Block: 1}}
		r.Sampling.Temperature = 0.9
		want := filledBlocks(t, m, r)
		if len(want.IDs) != 30 || slices.Contains(want.IDs, 299) || want.Passes != 0 {
			t.Errorf("%+v", want)
		}
		for _, change := range []func(*grove.Request){
			func(r *grove.Request) { r.Method = "masks" },
			func(r *grove.Request) { r.Method = "recycle,ngram-cache" },
			func(r *grove.Request) { r.Session = t.TempDir() + "/s" },
		} {
			again := r
			change(&again)
			if diff := cmp.Diff(want.text(), filledBlocks(t, m, again).text()); diff != "" {
				t.Errorf("shift %v, method %q: %s", shift, again.Method, diff)
			}
		}
		if _, err := m.NewSequence(t.Context(), grove.Request{Prompt: "text"}); err == nil || !strings.Contains(err.Error(), "a sequence is decoded token by token; with blocks of one token") {
			t.Errorf("a sequence of a canvas: %v", err)
		}
		if !shift {
			continue
		}
		qwen := map[string]string{"sdar": "qwen3", "sdar_moe": "qwen3moe"}[spec.Arch]
		plain, _ := randomModel(t, spec, grove.Options{CacheType: "f32"}, func(kv []gguf.KV) []gguf.KV {
			for i := range kv {
				if kv[i].Key = strings.ReplaceAll(kv[i].Key, spec.Arch+".", qwen+"."); kv[i].Key == "general.architecture" {
					kv[i].Value = gguf.Of(qwen)
				}
			}
			return slices.DeleteFunc(kv, func(k gguf.KV) bool { return k.Key == qwen+".attention.causal" })
		})
		r.Diffusion = nil
		r.Penalties.Bias = []grove.Bias{{ID: 299, Add: float32(math.Inf(-1))}}
		if diff := cmp.Diff(want.text(), filledBlocks(t, plain, r).text()); diff != "" {
			t.Errorf("Qwen 3: %s", diff)
		}
	}
}
