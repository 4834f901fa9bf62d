package kv

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"grove/internal/forest"
	"grove/internal/weights/tensor"
)

// whole is a cache whose layers see all tokens.
var whole = Config{
	Layers: []Layer{{KVHeads: 1, KeySize: headSize}, {KVHeads: 2, KeySize: headSize}, {KVHeads: 2, KeySize: headSize, Keeps: Share(1)}},
	Type:   tensor.F32, Context: 300, Tokens: 9 * PageTokens, Seqs: 3, Scratch: 128, Identity: named("test"),
}

// TestRetain drops random tokens of a trunk whose pages a fork and the next sequence know: these keep theirs, the trunk keeps what it should and goes on, and every page comes back.
func TestRetain(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		b := newBook(t, whole)
		x := b.open("")
		b.must(x, story(0, 0, 1+r.IntN(200)))
		y := b.fork(x)
		for range 3 {
			var stay []int32
			ids, content := x.ids[:0:0], x.content[:0:0]
			first := r.IntN(len(x.ids) + 1) // from which on some go
			for i := range x.ids {
				if i < first || r.IntN(3) > 0 {
					stay, ids, content = append(stay, int32(i)), append(ids, x.ids[i]), append(content, x.content[i])
				}
			}
			if err := b.k.Retain(x.seq, stay); err != nil {
				t.Fatal(err)
			}
			x.ids, x.content = ids, content
			b.check()
			b.must(x, story(1, len(ids), len(ids)+r.IntN(90)))
			b.check()
		}
		b.must(y, story(2, len(y.ids), len(y.ids)+30))
		z := b.open("")
		b.reuse(z, story(0, 0, 200))
		b.check()
		b.finish()
	}
}

// TestRetainRefused: indices that do not rise, models and sequences that go by index, and a full cache change nothing.
func TestRetainRefused(t *testing.T) {
	b := newBook(t, whole)
	x := b.open("")
	b.must(x, story(0, 0, 100))
	for _, bad := range [][]int32{{-1}, {0, 0}, {3, 2}, {100}} {
		before := b.state()
		err := b.k.Retain(x.seq, bad)
		if err == nil || !strings.Contains(err.Error(), "indices rise within it") {
			t.Errorf("%v: error %v", bad, err)
		}
		b.same(before, err)
	}
	if err := b.k.Retain(forest.Seq(9), nil); !errors.Is(err, forest.ErrSeq) {
		t.Errorf("no sequence: error %v", err)
	}
	if err := b.k.Select(x.seq, 0, 0, []int32{}); err != nil {
		t.Fatal(err)
	}
	if err := b.k.Retain(x.seq, []int32{1}); err == nil || !strings.Contains(err.Error(), "selected blocks") {
		t.Errorf("selected blocks: error %v", err)
	}
	w := newBook(t, small)
	y := w.open("")
	w.must(y, story(0, 0, 70))
	if err := w.k.Retain(y.seq, []int32{1}); err == nil || !strings.Contains(err.Error(), "sliding window") {
		t.Errorf("a window: error %v", err)
	}
	full := whole
	full.Tokens = 2 * PageTokens
	f := newBook(t, full)
	a := f.open("")
	f.must(a, story(0, 0, 128))
	c := f.fork(a)
	f.must(c, story(1, 128, 300)) // all pages
	before := f.state()
	err := f.k.Retain(a.seq, []int32{1, 2})
	if !errors.Is(err, ErrFull) {
		t.Errorf("a full cache: error %v", err)
	}
	f.same(before, err)
}
