package grove_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/kv"
)

// steering are the searches that draw by several models, by the options with which they do, and those with which they change nothing; "": there are none.
var steering = []struct{ search, idle string }{
	{"contrast,beta=1", "contrast,alpha=0,beta=0"},
	{"proxy,weight=1.5", "proxy,weight=0"},
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
	for _, s := range steering {
		differ := 0
		for seed := range uint64(3) {
			plain, _ := generate(t, alone, steered("", seed))
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
			for range 2 {
				all.Go(func() {
					g, err := crowd.Generate(t.Context(), r)
					if err != nil {
						t.Error(err)
						return
					}
					got, err := answerOf(g)
					if d := cmp.Diff(want, got, sameBits) + cmp.Diff(stats.Attempts, g.Stats().Attempts) + cmp.Diff(stats.Figures, g.Stats().Figures); d != "" || err != nil {
						t.Errorf("%s, seed %d: %v (-want +got):\n%s", s.search, seed, err, d)
					}
				})
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
