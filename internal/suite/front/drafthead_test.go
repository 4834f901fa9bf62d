package front_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
)

// acceptHead is gopher-draft's.
const acceptHead = "../../../internal/gopher/testdata/heads/accept.safetensors"

// TestDraftHead: the text is that of plain decoding, and the chains are longer where fewer of them may be rejected.
func TestDraftHead(t *testing.T) {
	plain := open(t, "gopher-target", grove.Options{Parallel: 1})
	m := open(t, "gopher-target", grove.Options{Draft: "gopher-draft", DraftHead: acceptHead, Eager: true, Forget: true, Parallel: 1})
	for _, sampling := range []grove.Sampling{{}, {Temperature: 1}} {
		r := request(0)
		r.Method, r.MaxTokens, r.Sampling = grove.MethodOff, 60, sampling
		want, _ := generate(t, plain, r)
		last := 0.0
		for _, name := range []string{"draft-specdec:h=-1", "draft-specdec:h=0.5", "draft-specdec:h=0.90", "draft-specdec:h=1"} {
			r.Method = name
			got, stats := generate(t, m, r)
			if d := cmp.Diff(want, got, sameBits); d != "" || stats.Grade != grove.Exact {
				t.Errorf("%s: grade %s, %s", name, stats.Grade, d)
			}
			drafts := float64(stats.Drafting.Drafted) / float64(stats.Drafting.Rounds)
			if drafts <= last {
				t.Errorf("%s at temperature %v: %.2f drafts a round, after %.2f", name, sampling.Temperature, drafts, last)
			}
			last = drafts
		}
	}
}

// TestDraftHeadErrors refuses the method without a head, a head without a draft model, and a head of another one.
func TestDraftHeadErrors(t *testing.T) {
	m := open(t, "gopher-target", grove.Options{Draft: "gopher-draft", Parallel: 1})
	_, err := m.Generate(t.Context(), grove.Request{Prompt: "x", Method: "draft-specdec"})
	if err == nil || !strings.Contains(err.Error(), "the acceptance head is missing") {
		t.Errorf("without a head: %v", err)
	}
	_, err = m.Generate(t.Context(), grove.Request{Prompt: "x", Method: "draft-specdec:h=7"})
	if err == nil || !strings.Contains(err.Error(), "use h=X") {
		t.Errorf("an h that is none: %v", err)
	}
	for want, o := range map[string]grove.Options{
		"and no draft model":                {DraftHead: acceptHead},
		"must be F32, F16 or BF16 of shape": {Draft: "gopher-nano", DraftHead: acceptHead},
		"nothere":                           {Draft: "gopher-draft", DraftHead: "nothere"},
	} {
		if m, err := grove.Open("gopher-target", o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
			_ = m.Close()
		}
	}
}
