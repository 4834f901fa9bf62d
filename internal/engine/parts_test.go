package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"grove/internal/engine"
	"grove/internal/forest"
	"grove/internal/suite/modeltest"
	"grove/method"
)

// TestParts: a drafter's rows skip attention and feed-forward parts of layers, beside texts that are decoded plainly; all texts are those of plain
// decoding, and the same rows give the same logits in one step and in two.
func TestParts(t *testing.T) {
	b := deep(t)
	if share := b.engine(t, engine.Config{}).Model().Size().AttentionShare; !(share > 0 && share < 1) {
		t.Fatalf("attention has the share %v of a layer", share)
	}
	d := func() *drafter {
		return &drafter{draft: func(d *drafter, tree *method.Tree) {
			ctx, last, head := context.Background(), d.h.Last(0), forest.Want{Logits: true}
			rows := []method.Row{
				{Row: forest.Row{ID: last, Want: head}},
				{Row: forest.Row{ID: last, Want: head, SkipAttention: forest.LayerRange(1, 3)}},
				{Row: forest.Row{ID: last, Want: head, SkipFeedForward: forest.LayerRange(0, 2)}},
				{Row: forest.Row{ID: last, Want: head, SkipAttention: forest.LayerRange(0, 4), SkipFeedForward: forest.LayerRange(0, 4)}},
			}
			got, err := d.own.Grow(ctx, rows)
			if errors.Is(err, method.ErrPreempted) {
				return
			}
			if err != nil {
				panic(err)
			}
			var logits [][]float32
			for _, g := range got {
				logits = append(logits, slices.Clone(g.Logits))
			}
			for i := range rows {
				if got, err = d.own.Grow(ctx, rows[i:i+1]); err != nil {
					panic(err)
				}
				if !slices.Equal(got[0].Logits, logits[i]) || i > 0 && slices.Equal(logits[i], logits[i-1]) {
					panic("a row by itself has other logits, or those of a row that skips other parts")
				}
			}
			if err := d.own.Drop(); err != nil {
				panic(err)
			}
			copies(d, tree)
		}}
	}
	if st := among(t, b, d, true); st.Accepted < 20 {
		t.Errorf("%d drafts accepted", st.Accepted)
	}
}

// TestWholeLayers: a model that runs layers as a whole refuses rows that skip parts, and runs others.
func TestWholeLayers(t *testing.T) {
	m := newBed(t, 1, modeltest.Spec{Arch: "gpt2", Context: 100}.File(t)).engine(t, engine.Config{}).Model()
	if m.Size().AttentionShare != 0 {
		t.Fatalf("attention has the share %v of a layer", m.Size().AttentionShare)
	}
	s, err := m.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, r := range []forest.Row{{SkipAttention: forest.LayerRange(0, 1)}, {SkipFeedForward: forest.LayerRange(1, 2)}} {
		if _, err := s.Grow(t.Context(), []method.Row{{Row: r}}); err == nil || !strings.Contains(err.Error(), "gpt2 runs layers as a whole") {
			t.Errorf("%v", err)
		}
	}
	if _, err := s.Grow(t.Context(), []method.Row{{Row: forest.Row{Skip: forest.LayerRange(0, 1)}}}); err != nil {
		t.Errorf("a whole layer: %v", err)
	}
}
