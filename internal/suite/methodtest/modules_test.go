package methodtest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"grove/internal/compute"
	"grove/internal/engine"
	"grove/internal/text/token"
	"grove/method"
	"grove/method/grow"
	"grove/method/module"
)

// TestModuleTrunks lets modules draft in rounds, on the real engine, and expects behind each round the logits that a module gives that has read the text's
// tokens and features in one go, bit by bit: nothing of drafts is left.
func TestModuleTrunks(t *testing.T) {
	l := newLab(t)
	for _, m := range l.heads(l.engineOf(l.target, engine.Config{})) {
		open := func() module.Growing { return module.NewSource(m, vocabulary) }
		switch {
		case m.Family == "falcon":
			open = func() module.Growing { return module.NewPairs(m, vocabulary) }
		case !slices.Contains([]string{"eagle", "fspad", "eagle3", "mtp"}, m.Family): // those that a Source drafts with by itself
			continue
		}
		t.Run(m.Family, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, 3))
			ids := make([]token.ID, 120)
			features := make([]method.RowResult, len(ids))
			for i := range ids {
				ids[i] = token.ID(rng.IntN(vocabulary))
				features[i] = feature(rng, m, ids[i], i)
			}
			source := open()
			rounds := module.NewDrafter(grow.Shape{Growth: grow.Fixed, Ranks: []int{2, 1, 1}, Beam: 2}, source, m, vocabulary)
			h := &method.History{}
			begin(t, rounds, h, ids[:40])
			tree, told := method.NewTree(64, vocabulary), 0
			for n := 41; n < len(ids); n += 1 + rng.IntN(5) {
				h.Extend(ids[:n])
				rounds.Committed(method.Update{Rows: features[told : n-1]})
				told = n - 1
				fresh, other := open(), &method.History{}
				other.Begin(ids[:n], n)
				if err := fresh.Begin(other); err != nil {
					t.Fatal(err)
				}
				if err := fresh.Committed(method.Update{Rows: features[:n-1]}); err != nil {
					t.Fatal(err)
				}
				want := rootLogits(t, fresh)
				if got := rootLogits(t, source); !slices.Equal(got, want) {
					t.Fatalf("logits behind %d tokens are others", n)
				}
				if err := fresh.Close(); err != nil {
					t.Fatal(err)
				}
				tree.Reset(4, method.NewRates(1))
				expand(t, source, tree)
			}
			if err := rounds.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestBlockTrunks is TestModuleTrunks of modules that draft blocks: in rounds, the logits of all depths are those of a module that has read the text in one go.
func TestBlockTrunks(t *testing.T) {
	l := newLab(t)
	for _, m := range l.heads(l.engineOf(l.target, engine.Config{})) {
		if m.Block == nil || m.Block.Order || m.Family == "specblock" {
			continue
		}
		t.Run(m.Family, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(4, 4))
			ids := make([]token.ID, 120)
			features := make([]method.RowResult, len(ids))
			for i := range ids {
				ids[i] = token.ID(rng.IntN(vocabulary))
				features[i] = feature(rng, m, ids[i], i)
			}
			rounds, h, told := module.NewBlock(m, 8, vocabulary), &method.History{}, 0
			h.Begin(ids[:40], 40)
			if err := rounds.Begin(h); err != nil {
				t.Fatal(err)
			}
			for n := 41; n < len(ids); n += 1 + rng.IntN(5) {
				h.Extend(ids[:n])
				fresh, other := module.NewBlock(m, 8, vocabulary), &method.History{}
				other.Begin(ids[:n], n)
				for _, err := range []error{
					rounds.Committed(method.Update{Rows: features[told : n-1]}), fresh.Begin(other), fresh.Committed(method.Update{Rows: features[:n-1]}),
				} {
					if err != nil {
						t.Fatal(err)
					}
				}
				told = n - 1
				if want, got := depths(t, &fresh), depths(t, &rounds); len(want) < 2 || !slices.EqualFunc(got, want, slices.Equal) {
					t.Fatalf("logits behind %d tokens are others, of %d depths", n, len(want))
				}
				if err := fresh.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if err := rounds.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// depths returns the logits of each depth behind the text.
func depths(t *testing.T, b *module.Block) (all [][]float32) {
	t.Helper()
	first, n, err := b.Depths(t.Context(), 16)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		all = append(all, slices.Clone(b.Logits(first+i)))
	}
	return all
}

// feature is a row of the target that gives the feature of a token.
func feature(rng *rand.Rand, m *method.Module, id token.ID, at int) method.RowResult {
	values := func() []float32 {
		v := make([]float32, m.Size().Width)
		for i := range v {
			v[i] = float32(rng.NormFloat64())
		}
		return v
	}
	r := method.RowResult{ID: id, At: int32(at), Accepted: true, Result: compute.Result{State: values()}}
	for range m.Taps {
		r.Hidden = append(r.Hidden, values())
	}
	return r
}

func begin(t *testing.T, d method.Drafter, h *method.History, ids []token.ID) {
	t.Helper()
	h.Begin(ids, len(ids))
	if err := d.Begin(h); err != nil {
		t.Fatal(err)
	}
}

// rootLogits returns the logits of a module behind the text.
func rootLogits(t *testing.T, s module.Growing) []float32 {
	t.Helper()
	ok, err := s.Root(t.Context())
	if !ok || err != nil {
		t.Fatalf("no logits: %v", err)
	}
	return slices.Clone(s.Logits(0))
}

// expand runs drafts behind the text: two, and one behind each.
func expand(t *testing.T, s module.Growing, tree *method.Tree) {
	t.Helper()
	level := []int{tree.Add(method.Root, 3, 0, 0.9), tree.Add(method.Root, 9, 0, 0.8)}
	for range 2 {
		if err := s.Expand(t.Context(), tree, level); err != nil {
			t.Fatal(err)
		}
		for i, at := range level {
			level[i] = tree.Add(at, token.ID(11+i), 0, 0.9)
		}
	}
}
