package engine_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/engine"
	"grove/internal/sample"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
)

// TestTruncate cuts texts within the prompt, at its end, within the answer and not at all, and expects what follows to be
// that of a text of that length that was never longer: penalties know the answer's tokens, and its beginning.
func TestTruncate(t *testing.T) {
	for _, spec := range []modeltest.Spec{{Context: 300}, {Arch: "gemma3", Layers: 7, Context: 300}} {
		b := newBed(t, 1, spec.File(t))
		open := func() *engine.Sequence {
			s, err := b.engine(t, engine.Config{}).NewSequence(engine.Answer{
				Sampling:  sample.Params{Temperature: 1, Seed: 3},
				Penalties: sample.Penalties{Presence: 2, Frequency: 1, Repeat: 1.3, MinTokens: 12, Ends: []token.ID{1, 2, 3, 4, 5, 6, 7, 8}},
			})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		prompt := text(130)
		s := open()
		whole := slices.Clone(prompt)
		for _, c := range draw(t, s, 40, prompt) {
			whole = append(whole, c.ID)
		}
		for _, n := range []int{170, 169, 150, 131, 130, 129, 128, 100, 64, 2} {
			if err := s.Truncate(n); err != nil {
				t.Fatal(err)
			}
			if s.Len() != n {
				t.Errorf("cut to %d tokens: it has %d", n, s.Len())
			}
			got := draw(t, s, 15)
			fresh := open()
			draw(t, fresh, 0, whole[:min(n, len(prompt))])
			for _, id := range whole[min(n, len(prompt)):n] {
				if err := fresh.Follow(id); err != nil {
					t.Fatal(err)
				}
			}
			if d := cmp.Diff(draw(t, fresh, 15), got); d != "" {
				t.Errorf("%s cut to %d of %d tokens: %s", spec.Arch, n, len(whole), d)
			}
			whole = whole[:n]
			if err := s.Truncate(n); err != nil { // what was drawn behind it
				t.Fatal(err)
			}
		}
	}
}
