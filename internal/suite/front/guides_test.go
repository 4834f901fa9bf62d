package front_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/gopher"
	"grove/internal/kv"
	"grove/internal/par"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/lora"
	"grove/internal/weights/quantize"
)

// steering are the searches that draw by several models, by the options with which they do, and those with which they change nothing; "": there are none.
var steering = []struct{ search, idle string }{
	{"contrast,beta=1", "contrast,alpha=0,beta=0"},
	{"proxy,weight=1.5", "proxy,weight=0"},
	{"anchored,k=0.1", ""},
	{"transferq,k=3,weight=4,length=3", "transferq,weight=0"},
	{"arbitrage,step=line,threshold=0.8,guide=2", "arbitrage,step=line,threshold=0"},
	{"ensemble", ""},
	{"ensemble,beam=4", ""},
	{"bytebeam,k=3", ""},
	{"transferq,k=2,rollouts=2,length=2,transfer=indirect,guide=2,by=sum", ""},
}

// guided opens the target with two smaller models as guides.
func guided(t *testing.T, o grove.Options) *grove.Model {
	t.Helper()
	o.Guides, o.Forget = []string{"gopher-nano", "gopher-draft"}, true
	return open(t, "gopher-target", o)
}

// steered is a request for one of the searches.
func steered(search string, seed uint64) grove.Request {
	return grove.Request{
		Prompt: "package main\n\n// sum returns the sum of a list.\nfunc sum(list []int) int {\n\tn := 0\n", MaxTokens: 24,
		Sampling: grove.Sampling{Temperature: 1, TopP: .95}, Seed: &seed, Search: search,
	}
}

// idleAll finds what is left open in a model and its guides.
func idleAll(t *testing.T, m *grove.Model) {
	t.Helper()
	for _, l := range append(m.GuideLoads(), m.Load()) {
		if l.Open != 0 || l.Admitted != 0 || l.Pages.Used != 0 {
			t.Errorf("behind the searches there are %+v", l)
		}
	}
}

// TestSteered: each token of a steered answer has the log-probability that the model gives to it alone; the same seed gives the same answer whatever the
// slots and the requests beside it; and a search that changes nothing gives the bits of plain decoding.
func TestSteered(t *testing.T) {
	alone, crowd := guided(t, grove.Options{Threads: 1, Parallel: 4}), guided(t, grove.Options{Threads: 2, Parallel: 6})
	var all sync.WaitGroup
	unsteered := plainly[uint64](t)
	for _, s := range steering {
		differ := 0
		for seed := range uint64(3) {
			plain := unsteered(seed, alone, steered("", seed))
			r := steered(s.search, seed)
			want, stats := generate(t, alone, r)
			if stats.Grade != grove.Lossy || len(stats.Attempts) == 0 {
				t.Errorf("%s: grade %s, attempts %v", s.search, stats.Grade, stats.Attempts)
			}
			if cmp.Diff(plain, want, sameBits) != "" {
				differ++
			}
			compareAlone(t, alone, r, want, stats.Attempts)
			if s.idle != "" {
				if idle, _ := generate(t, alone, steered(s.idle, seed)); cmp.Diff(plain, idle, sameBits) != "" {
					t.Errorf("%s (-plain +got):\n%s", s.idle, cmp.Diff(plain, idle, sameBits))
				}
			}
			for range crowds(seed) {
				all.Go(func() { compareSearch(t, crowd, r, want, stats) })
			}
		}
		if differ == 0 {
			t.Errorf("%s changes no answer of 3", s.search)
		}
	}
	all.Wait()
	idleAll(t, alone)
	idleAll(t, crowd)
}

// TestSteeredCancelled: a steered search that is cancelled leaves nothing open.
func TestSteeredCancelled(t *testing.T) {
	m := guided(t, grove.Options{Parallel: 4})
	for _, s := range steering {
		ctx, cancel := context.WithCancel(t.Context())
		r := steered(s.search, 1)
		r.IgnoreEnd, r.MaxTokens = true, 400
		g, err := m.Generate(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		begun := m.Load().Steps
		go func() {
			for m.Load().Steps < begun+3 {
				time.Sleep(50 * time.Microsecond)
			}
			cancel()
		}()
		if _, err := answerOf(g); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", s.search, err)
		}
		idleAll(t, m)
	}
}

// TestGuides opens models as guides: they are named and counted, and what cannot be one is refused.
func TestGuides(t *testing.T) {
	m := guided(t, grove.Options{})
	i := m.Info()
	if d := cmp.Diff([]string{"gopher-nano: same vocabulary", "gopher-draft: same vocabulary"}, i.Guides); d != "" || i.GuideBytes <= 0 {
		t.Errorf("%d bytes (-want +got):\n%s", i.GuideBytes, d)
	}
	bare := open(t, "gopher-target", grove.Options{Memory: uint64(i.WeightBytes + i.CacheBytes)})
	if got := bare.Info(); got.GuideBytes != 0 || got.Guides != nil {
		t.Errorf("without guides: %+v", got)
	}
	for _, tt := range []struct {
		o    grove.Options
		want string
		is   error
	}{
		{grove.Options{Guides: []string{"nothere.gguf"}}, "nothere.gguf", nil},
		{grove.Options{Guides: []string{"gopher-diffusion"}}, "cannot guide gopher-target", nil},
		{grove.Options{Guides: []string{"gopher-nano"}, Memory: uint64(i.WeightBytes+i.CacheBytes) + 1}, "", kv.ErrMemory},
	} {
		bad, err := grove.Open("gopher-target", tt.o)
		if err == nil {
			bad.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%v: %v, want %q", tt.o.Guides, err, tt.want)
		}
	}
	other := open(t, goldenModel, grove.Options{Guides: []string{"gopher-nano"}})
	for _, tt := range []struct {
		m      *grove.Model
		search string
		method string
		want   string
	}{
		{bare, "contrast", "", "it needs a guide, and no model is open as one; add one (--guide MODEL, Options.Guides)"},
		{m, "contrast,guide=3", "", "it needs guide 3, and 2 are open"},
		{m, "contrast,alpha=2", "", "alpha is \"2\"; it must be a number from 0 to 1"},
		{m, "proxy,tuned=2", "", "tuned and untuned are both guide 2"},
		{m, "anchored,k=-1", "", "k is \"-1\"; it must be a number from 0"},
		{m, "contrast", "lookup", "method lookup: the search draws by other logits"},
		{other, "contrast", "", "guide 1 (gopher-nano) has another vocabulary than the model"},
	} {
		r := steered(tt.search, 1)
		r.Method = tt.method
		option := new(grove.OptionError)
		if _, err := tt.m.Generate(t.Context(), r); !errors.As(err, &option) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.search, err, tt.want)
		}
	}
}

// TestAnchored: an answer anchored to a safe model never diverges from it by more than its budget; without a budget it is the safe model's own, and with a large
// one that of plain decoding, bit for bit. Penalties and a constraint work on both models.
func TestAnchored(t *testing.T) {
	m, nano := guided(t, grove.Options{Parallel: 2}), open(t, "gopher-nano", grove.Options{Parallel: 2})
	kinds := map[string]float64{}
	for i, change := range []func(r *grove.Request){
		func(*grove.Request) {},
		func(r *grove.Request) { r.Sampling.TopP, r.Penalties.Repeat, r.Penalties.RepeatWindow = 0, 1.3, -1 },
		func(r *grove.Request) { r.Constraint = &grove.Constraint{Regex: `[a-z :=+\n\t]{4,40}return n\n\}\n`} },
	} {
		for seed := range uint64(3) {
			r := steered("", seed)
			r.Sampling.Temperature, r.SampleIndex = .9, int(seed)
			change(&r)
			risky, _ := generate(t, m, r)
			safe := answerIDs(generate(t, nano, r))
			for _, k := range []string{"0", "0.02", "0.15", "1.5", "100000"} {
				r.Search = "anchored,debt=2,k=" + k
				got, stats := generate(t, m, r)
				f := stats.Figures
				if f["spent"] > max(0, f["accrued"]) || f["safe"]+f["risky"]+f["fused"] != float64(stats.Tokens) {
					t.Errorf("%d, k %s: %v of %d tokens", i, k, f, stats.Tokens)
				}
				for _, name := range []string{"safe", "risky", "fused"} {
					kinds[name] += f[name]
				}
				if ids := answerIDs(got, stats); k == "0" && cmp.Diff(safe, ids) != "" {
					t.Errorf("%d, k 0: %v, the safe model has %v", i, ids, safe)
				}
				if same := f["risky"] == float64(stats.Tokens); same && cmp.Diff(risky, got, sameBits) != "" || k == "100000" && r.Sampling.TopP == 0 && !same {
					t.Errorf("%d, k %s (-plain +got): %v\n%s", i, k, f, cmp.Diff(risky, got, sameBits))
				}
			}
		}
	}
	for _, name := range []string{"safe", "risky", "fused"} {
		if kinds[name] < 50 {
			t.Errorf("tokens: %v", kinds)
		}
	}
	idleAll(t, m)
}

// TestFollowAll: tokens that are computed in passes have the bits of those that are computed one by one, and the text goes on alike, also with penalties and a constraint.
func TestFollowAll(t *testing.T) {
	m := guided(t, grove.Options{Parallel: 2})
	for i, change := range []func(r *grove.Request){
		func(*grove.Request) {},
		func(r *grove.Request) {
			r.Penalties.Repeat, r.Penalties.RepeatWindow, r.PostSampling, r.Top = 1.4, 8, true, 3
		},
		func(r *grove.Request) { r.Constraint = &grove.Constraint{Regex: `[a-z :=+\n\t]{60,400}`} },
	} {
		r := steered("", 5)
		r.Method, r.IgnoreEnd, r.Sampling.TopP = grove.MethodOff, true, 0
		change(&r)
		one, err := m.NewSequence(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		all, err := m.NewSequence(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, 1, 2, 16, 17, 40} { // a pass has 16
			var want []grove.SampledToken
			var ids []token.ID
			for range n {
				d, err := one.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				want, ids = append(want, d), append(ids, d.ID)
			}
			got, err := all.FollowAll(t.Context(), ids)
			if err != nil {
				t.Fatal(err)
			}
			next, err := one.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			same, err := all.Next(t.Context())
			if d := cmp.Diff(append(want, next), append(got, same), sameBits); d != "" || err != nil {
				t.Errorf("%d, %d tokens: %v (-want +got):\n%s", i, n, err, d)
			}
		}
		if _, err := all.FollowAll(t.Context(), []token.ID{1 << 20}); err == nil {
			t.Error("a token that is none is followed")
		}
		if got, err := all.FollowAll(t.Context(), make([]token.ID, 4096)); !errors.Is(err, grove.ErrContext) || len(got) >= 4096 {
			t.Errorf("%d tokens are followed: %v", len(got), err)
		}
		if err := errors.Join(one.Close(), all.Close()); err != nil {
			t.Fatal(err)
		}
	}
	idleAll(t, m)
}

// tuned writes the target with the adapter of prose merged into it, which was trained on this repository's documents.
func tuned(t *testing.T) string {
	t.Helper()
	base, err := gguf.Parse(gopher.Named(gopher.Name))
	if err != nil {
		t.Fatal(err)
	}
	a, err := lora.Open("../../../internal/gopher/testdata/adapter/prose.gguf", base)
	if err != nil {
		t.Fatal(err)
	}
	pool := par.New(1)
	defer pool.Close()
	merged, err := lora.Merge(base, []*lora.Adapter{a}, []float64{1}, pool)
	if err != nil {
		t.Fatal(err)
	}
	defer merged.Close()
	job, err := quantize.New(merged, quantize.Keep, true)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tuned.gguf")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(job.Write(t.Context(), f, pool, nil), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestProxyTunes: a model that was never tuned, with a tuned and an untuned one as guides, writes texts that the tuned model finds likelier against the untuned one than the texts that the
// model writes alone.
func TestProxyTunes(t *testing.T) {
	path := tuned(t)
	m := open(t, "../../../internal/gopher/testdata/gopher-deep/gopher-deep.q8_0.gguf", grove.Options{Guides: []string{path, gopher.Name}, Forget: true, Parallel: 2})
	one, other := open(t, path, grove.Options{Parallel: 1}), open(t, gopher.Name, grove.Options{Parallel: 1})
	seeds := uint64(6)
	if long {
		seeds = 12
	}
	gain := func(search string) (sum float64) {
		n := 0
		for seed := range seeds {
			r := steered(search, seed)
			r.Prompt, r.MaxTokens, r.IgnoreEnd, r.Sampling.TopP = "// Package", 40, true, 0
			a, stats := generate(t, m, r)
			ids := answerIDs(a, stats)
			prompt, err := m.Tokenize(r.Prompt, true, true)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range logprobsBehind(t, one, prompt, ids) {
				sum += float64(l)
				n++
			}
			for _, l := range logprobsBehind(t, other, prompt, ids) {
				sum -= float64(l)
			}
		}
		return sum / float64(n)
	}
	alone, proxy, twice, back := gain(""), gain("proxy"), gain("proxy,weight=2"), gain("proxy,weight=-1")
	t.Logf("nats a token by which the tuned model finds the texts likelier: %.3f alone, %.3f with the proxy, %.3f with twice its weight, %.3f with its inverse", alone, proxy, twice, back)
	if proxy < alone+.05 || twice < proxy+.05 || back > alone-.05 {
		t.Error("the texts do not move towards the tuned model")
	}
}

// logprobsBehind returns the log-probabilities of tokens behind a prompt.
func logprobsBehind(t *testing.T, m *grove.Model, prompt, ids []token.ID) (all []float32) {
	t.Helper()
	text, at := append(slices.Clone(prompt), ids...), 0
	if err := m.Logprobs(t.Context(), text[:len(text)-1], func(row grove.LogprobRow) error {
		if at++; at >= len(prompt) {
			all = append(all, row.Of(text[at]))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}
