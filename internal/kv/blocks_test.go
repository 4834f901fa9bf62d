package kv

import (
	"errors"
	"testing"

	"grove/internal/forest"
)

// TestKinds expects every kind that has no storage, and every contradiction, to be refused by name.
func TestKinds(t *testing.T) {
	for _, tt := range []struct {
		keeps Keep
		want  string
	}{
		{Share(1), "kv: layer 1: kind shared with the keys of layer 1; it must be an earlier layer"},
		{Share(-1), "kv: layer 1: kind shared with the keys of layer -1; it must be an earlier layer"},
		{Share(2), "kv: layer 1: kind shared with the keys of layer 2; it must be an earlier layer"},
		{Keep{Kind: Shared, Window: 5}, "kv: layer 1: kind shared with a window of 5 tokens; only kinds window and chunk have one"},
		{Keep{From: 1}, "kv: layer 1: kind full with the keys of layer 1; only kind shared reads another layer"},
		{Chunk(0), "kv: layer 1: a chunk of 0 tokens; it must be 1 or more"},
		{Keep{Kind: 9}, "kv: layer 1: kind 9 is not known; 0 to 3 are"},
		{Keep{Kind: -1}, "kv: layer 1: kind -1 is not known; 0 to 3 are"},
		{Window(0), "kv: layer 1: a window of 0 tokens; it must be 1 or more"},
		{Keep{Window: 5}, "kv: layer 1: kind full with a window of 5 tokens; only kinds window and chunk have one"},
	} {
		c := small
		c.Layers = []Layer{{KVHeads: 1, KeySize: headSize}, {KVHeads: 1, KeySize: headSize, Keeps: tt.keeps}}
		if _, err := New(c); err == nil || err.Error() != tt.want {
			t.Errorf("New: %v; want %s", err, tt.want)
		}
	}
}

// TestShared expects a layer to share the keys of a layer with storage and its own shape.
func TestShared(t *testing.T) {
	for _, tt := range []struct {
		layers []Layer
		want   string
	}{
		{[]Layer{{KVHeads: 1, KeySize: 4}, {KVHeads: 1, KeySize: 4, Keeps: Share(0)}, {KVHeads: 1, KeySize: 4, Keeps: Share(1)}},
			"kv: layer 2: kind shared with the keys of layer 1, which has none of its own; it must be a layer with storage"},
		{[]Layer{{KVHeads: 1, KeySize: 4}, {KVHeads: 2, KeySize: 4, Keeps: Share(0)}},
			"kv: layer 1: 2 heads of {4 4}, and layer 0, whose keys it shares, has 1 heads of {4 4}; the two must be equal"},
		{[]Layer{{KVHeads: 1, KeySize: 4}, {KVHeads: 1, KeySize: 4, ValueSize: 8, Keeps: Share(0)}},
			"kv: layer 1: 1 heads of {4 8}, and layer 0, whose keys it shares, has 1 heads of {4 4}; the two must be equal"},
	} {
		c := small
		c.Layers = tt.layers
		if _, err := New(c); err == nil || err.Error() != tt.want {
			t.Errorf("New: %v; want %s", err, tt.want)
		}
	}
}

// TestSpan holds what a layer reads to its definition, token by token.
func TestSpan(t *testing.T) {
	for _, keeps := range []Keep{{}, Window(1), Window(5), Window(64), Chunk(1), Chunk(7), Chunk(64)} {
		for index := range 80 {
			for _, end := range []int{index + 1, index + 4, index + 90} { // others of a block lie ahead
				low, high := keeps.Span(index, end)
				for i := range end {
					sees := keeps.Kind == Full || keeps.Kind == Windowed && index-i < keeps.Window && i-index < keeps.Window ||
						keeps.Kind == Chunked && i/keeps.Window == index/keeps.Window
					if got := i >= low && i < high; got != sees {
						t.Fatalf("%+v: a row at %d reads %d of %d: %v, want %v", keeps, index, i, end, got, sees)
					}
				}
			}
		}
	}
}

// TestSelectCut cuts a trunk before its first page without a name, and goes on: the selection is still in force there, so that what
// follows has no name either.
func TestSelectCut(t *testing.T) {
	b := newBook(t, small)
	ids, other := story(0, 0, 200), story(1, 128, 200)
	x := b.open("")
	b.must(x, ids)
	if err := b.k.Select(x.seq, 0, 0, []int32{0}); err != nil {
		t.Fatal(err)
	}
	if err := b.truncate(x, 128); err != nil {
		t.Fatal(err)
	}
	b.must(x, other)
	if n := b.reuse(b.open(""), append(ids[:128:128], other...)); n != 128 {
		t.Errorf("%d tokens are found, want 128", n)
	}
}

// TestSelectNames computes pages behind a selection: they have no name, in a fork neither, until the trunk is cut back
// to what was there before.
func TestSelectNames(t *testing.T) {
	c := small
	c.Tokens = 20 * PageTokens
	b := newBook(t, c)
	ids := story(0, 0, 256)
	x := b.open("")
	b.must(x, ids[:130])
	reads := func(s forest.Seq, block int) bool {
		blocks := b.k.Blocks(s, 0)
		return blocks.Reads(0, block)
	}
	if err := b.k.Select(x.seq, 0, 0, []int32{1}); err != nil {
		t.Fatal(err)
	}
	y := b.fork(x)
	for _, s := range []*text{x, y} {
		b.must(s, ids[130:])
		for block, want := range []bool{false, true, true, true} {
			if reads(s.seq, block) != want {
				t.Errorf("sequence %d reads block %d: %v", s.seq, block, !want)
			}
		}
	}
	z := b.open("")
	if n := b.reuse(z, append(ids, 0)); n != 128 {
		t.Errorf("%d tokens are found, want 128", n)
	}
	b.close(z)
	b.check()
	if err := b.truncate(x, 64); err != nil {
		t.Fatal(err)
	}
	if reads(x.seq, 0) {
		t.Error("a selection of a block that stays is gone")
	}
	if err := b.k.Select(x.seq, 0, 0, nil); err != nil {
		t.Fatal(err)
	}
	if !reads(x.seq, 0) || reads(y.seq, 0) {
		t.Error("a selection of one sequence ends with another's")
	}
	if err := b.truncate(x, 0); err != nil {
		t.Fatal(err)
	}
	b.must(x, story(1, 200, 264))
	if n := b.reuse(b.open(""), append(story(1, 200, 264), 0)); n != 64 {
		t.Errorf("%d tokens of a text without a selection are found, want 64", n)
	}
	b.finish()
}

// TestSelectRefusals expects a selection to name blocks that are there.
func TestSelectRefusals(t *testing.T) {
	b := newBook(t, small)
	x := b.open("")
	b.must(x, story(0, 0, 150))
	before := b.state()
	if err := b.k.Select(5, 0, 0, nil); !errors.Is(err, forest.ErrSeq) {
		t.Errorf("Select: %v", err)
	}
	for _, tt := range []struct {
		layer, head int
		blocks      []int32
		want        string
	}{
		{2, 0, nil, "kv: selecting blocks of head 0 of layer 2: the model has no such head"},
		{-1, 0, nil, "kv: selecting blocks of head 0 of layer -1: the model has no such head"},
		{0, 1, nil, "kv: selecting blocks of head 1 of layer 0: the model has no such head"},
		{1, -1, nil, "kv: selecting blocks of head -1 of layer 1: the model has no such head"},
		{0, 0, []int32{2}, "kv: selecting block 2 of layer 0: blocks ascend from 0 to 1"},
		{0, 0, []int32{-1}, "kv: selecting block -1 of layer 0: blocks ascend from 0 to 1"},
		{0, 0, []int32{1, 1}, "kv: selecting block 1 of layer 0: blocks ascend from 0 to 1"},
	} {
		if err := b.k.Select(x.seq, tt.layer, tt.head, tt.blocks); err == nil || err.Error() != tt.want {
			t.Errorf("Select: %v; want %s", err, tt.want)
		}
	}
	b.same(before, nil)
	b.finish()
}
