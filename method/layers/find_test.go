package layers

import (
	"context"
	"errors"
	"testing"

	"grove/internal/forest"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
)

const vocabulary = 40

// spoiled is a model of which each layer that is passed over, unless it is free, changes the token at one of ten places.
func spoiled(layers int, free forest.Layers) *growtest.Model {
	m := growtest.Skipping(vocabulary, layers, free, 0.999)
	m.Dims.Context = 300
	return m
}

// TestFind: of a model of which some layers do nothing most of these are found, and what it promises is what such drafts give.
func TestFind(t *testing.T) {
	var free forest.Layers
	for _, l := range []int{2, 4, 6, 8, 10} {
		free = free.With(l)
	}
	m, places := spoiled(12, free), 0
	found, err := Find(t.Context(), m, Units(12), 3, 40, func(done, all int) {
		if places++; done != places || all != 40*window+finals {
			t.Fatalf("%d of %d after %d places", done, all, places)
		}
	})
	if err != nil || places != 40*window+finals {
		t.Fatal(places, err)
	}
	if wrong := found.Set[Attention].Minus(free).Len(); found.Set != Whole(found.Set[FeedForward]) || found.Set.Layers(0) < 3 || wrong > 1 || found.Share < 0.85 || found.Share > 1 {
		t.Errorf("%s, of which %d matter; share %v", Format(found.Set), wrong, found.Share)
	}
	if d, rate := Best(found.Share, found.Set.Layers(0), foundDepth, Units(12).Skip); d != found.Depth || rate/Units(12).Plain() != found.Speed {
		t.Errorf("%+v; want %d drafts, %v", found, d, rate/Units(12).Plain())
	}
	again, err := Find(t.Context(), spoiled(12, free), Units(12), 3, 40, func(int, int) {})
	if err != nil || again != found {
		t.Errorf("the second time %+v, %v", again, err)
	}
	if m.Calls != places {
		t.Errorf("%d steps for %d places", m.Calls, places)
	}
}

// TestFindParts: where rows skip parts of layers, the attention parts and the feed-forward parts that do nothing are found apart.
func TestFindParts(t *testing.T) {
	free := Set{Attention: forest.LayerRange(1, 7), FeedForward: forest.LayerRange(7, 9)}
	m := spoiled(12, forest.Layers{})
	m.Dims.AttentionShare = 0.25
	whole := m.Next
	m.Next = func(path []token.ID, r forest.Row) []float32 {
		kept := Set{r.Skip.Union(r.SkipAttention), r.Skip.Union(r.SkipFeedForward)}
		for k := range kept {
			kept[k] = kept[k].Minus(free[k])
		}
		return whole(path, forest.Row{Skip: kept[Attention].Union(kept[FeedForward])})
	}
	found, err := Find(t.Context(), m, Units(12), 3, 60, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	if found.Set == Whole(found.Set[Attention]) || found.Set[Attention].Minus(free[Attention]).Len() > 1 || found.Share < 0.85 {
		t.Errorf("%s; share %v", Format(found.Set), found.Share)
	}
	if d, rate := Best(found.Share, found.Set.Layers(0.25), foundDepth, Units(12).Skip); d != found.Depth || rate/Units(12).Plain() != found.Speed {
		t.Errorf("%+v; want %d drafts, %v", found, d, rate/Units(12).Plain())
	}
}

// TestFindDraws: each token of a text is drawn by random numbers of its own.
func TestFindDraws(t *testing.T) {
	m := growtest.Table(vocabulary, func(int, int) float64 { return 0 })
	if _, err := Find(t.Context(), m, Units(4), 1, 1, func(int, int) {}); err != nil {
		t.Fatal(err)
	}
	drawn := map[token.ID]bool{}
	for _, id := range m.Ran {
		drawn[id] = true
	}
	if len(drawn) < vocabulary/2 {
		t.Errorf("%d of %d tokens are drawn where all are equally likely", len(drawn), vocabulary)
	}
}

// TestFindSmall: models of few layers or of small steps have fewer sets to try; where a step has no place for a trial that is an error.
func TestFindSmall(t *testing.T) {
	for rows, fits := range map[int]bool{2: false, 3: true, 4: true, 16: true} {
		m := spoiled(3, forest.Layers{})
		m.Dims.Rows = rows
		found, err := Find(t.Context(), m, Units(3), token.None, 1, func(int, int) {})
		if (err == nil) != fits || fits && Format(found.Set) != "1" {
			t.Errorf("steps of %d rows: %s, %v", rows, Format(found.Set), err)
		}
	}
	m := spoiled(6, forest.Layers{})
	m.Fail = errors.New("a failed step")
	if _, err := Find(t.Context(), m, Units(6), 1, 1, func(int, int) {}); !errors.Is(err, m.Fail) {
		t.Errorf("error %v", err)
	}
}

// busy is a model without a free slot.
type busy struct{ *growtest.Model }

func (busy) Open() (method.Branch, error) { return nil, method.ErrBusy }

func TestFindBusy(t *testing.T) {
	if _, err := Find(context.Background(), busy{spoiled(6, forest.Layers{})}, Units(6), 1, 1, nil); !errors.Is(err, method.ErrBusy) {
		t.Errorf("error %v", err)
	}
}
