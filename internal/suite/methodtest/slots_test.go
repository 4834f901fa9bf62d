package methodtest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"grove/internal/engine"
	"grove/internal/text/token"
	"grove/method"
	"grove/method/module"
)

// TestSlotTrunks lets a module of slots draft in rounds, on the real engine, and expects behind each round the logits of all slots that a module gives that has read the text in one go, bit
// by bit: nothing of blocks behind drafts is left.
func TestSlotTrunks(t *testing.T) {
	l := newLab(t)
	all := l.heads(l.engineOf(l.target, engine.Config{}))
	m := all[slices.IndexFunc(all, func(m *method.Module) bool { return m.Family == "specblock" })]
	rng := rand.New(rand.NewPCG(5, 5))
	ids := make([]token.ID, 100)
	features := make([]method.RowResult, len(ids))
	for i := range ids {
		ids[i] = token.ID(rng.IntN(vocabulary))
		features[i] = feature(rng, m, ids[i], i)
	}
	rounds, h, told := module.NewSlots(m, vocabulary), &method.History{}, 0
	h.Begin(ids[:40], 40)
	if err := rounds.Begin(h); err != nil {
		t.Fatal(err)
	}
	for n := 41; n < len(ids); n += 1 + rng.IntN(5) {
		h.Extend(ids[:n])
		fresh, other := module.NewSlots(m, vocabulary), &method.History{}
		other.Begin(ids[:n], n)
		for _, err := range []error{
			rounds.Committed(method.Update{Rows: features[told : n-1]}), fresh.Begin(other), fresh.Committed(method.Update{Rows: features[:n-1]}),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		told = n - 1
		blocks := []module.Slot{{Row: 0, ID: 3}, {Row: 2, ID: 4}}
		want, got := slotLogits(t, fresh, blocks), slotLogits(t, rounds, blocks)
		if len(want) != 3*rounds.Slots() || !slices.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("logits behind %d tokens are others, of %d slots", n, len(want))
		}
		if err := fresh.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := rounds.Close(); err != nil {
		t.Fatal(err)
	}
}

// slotLogits returns the logits of the slots behind the text, and of blocks behind them.
func slotLogits(t *testing.T, s *module.Slots, blocks []module.Slot) (all [][]float32) {
	t.Helper()
	if ok, err := s.Root(t.Context()); !ok || err != nil {
		t.Fatalf("nothing behind the text: %v", err)
	}
	for i := range s.Slots() {
		all = append(all, slices.Clone(s.Logits(i)))
	}
	if err := s.Behind(t.Context(), blocks); err != nil {
		t.Fatal(err)
	}
	for i := range len(blocks) * s.Slots() {
		all = append(all, slices.Clone(s.Logits(i)))
	}
	return all
}
