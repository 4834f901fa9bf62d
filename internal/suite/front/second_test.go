package front_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
)

// TestMiddle: a middle model drafts with the text of plain decoding, be it another model, the model itself or its own weights in another
// type. Every draft of a middle model that is the model is accepted.
func TestMiddle(t *testing.T) {
	plain := open(t, "gopher-target", grove.Options{Parallel: 1})
	r := request(3)
	r.Method, r.MaxTokens = grove.MethodOff, 60
	want, _ := generate(t, plain, r)
	r.Method = "levels"
	for _, c := range []struct {
		draft, middle string
		all           bool // drafts are accepted
	}{
		{"gopher-nano", "gopher-draft", false}, {"gopher-draft", "q4_0", false}, {"gopher-nano", "gopher-target", true}, {"gopher-nano", "Q8_0", true},
	} {
		m := open(t, "gopher-target", grove.Options{Draft: c.draft, Middle: c.middle, Eager: true, Forget: true, Parallel: 1, DraftThreads: 1})
		got, stats := generate(t, m, r)
		if d := cmp.Diff(want, got, sameBits); d != "" {
			t.Errorf("%s, %s (-want +got):\n%s", c.draft, c.middle, d)
		}
		// The last round may draft behind the end.
		if s := stats.Drafting; s.Accepted == 0 || c.all && s.Accepted < s.Drafted-s.Drafted/s.Rounds-6 {
			t.Errorf("%s, %s: %d of %d drafts accepted in %d rounds", c.draft, c.middle, s.Accepted, s.Drafted, s.Rounds)
		}
		if m.Info().Middle == "" {
			t.Errorf("%s: the middle model has no name", c.middle)
		}
	}
}

// TestSecondErrors refuses models beside the model that cannot be.
func TestSecondErrors(t *testing.T) {
	for _, c := range []struct {
		o    grove.Options
		want string
	}{
		{grove.Options{Middle: "nothere.gguf"}, "nothere.gguf"},
		{grove.Options{Middle: "auto"}, "auto"},
		{grove.Options{Middle: "gopher-target"}, "cannot be the middle model for"},
		{grove.Options{DraftThreads: 2}, "the draft model has 2 threads and none is given"},
		{grove.Options{Draft: goldenModel, DraftThreads: 2000}, "2000 threads; at most 1024"},
		{grove.Options{Draft: goldenModel, DraftThreads: -1}, "draft threads is -1"},
		{grove.Options{Draft: "nothere.gguf", DraftThreads: 1}, "nothere.gguf"},
	} {
		m, err := grove.Open(goldenModel, c.o)
		if err == nil {
			m.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
}
