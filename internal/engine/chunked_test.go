package engine_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"grove/internal/engine"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
)

// TestChunkBorder expects the same draws of a text whose layers see chunks of 100 tokens, which no page ends with, whether it comes whole or in small
// steps, behind a prefix in the cache, from a file, in a fork or once it was cut, with ends before, at and behind a border.
func TestChunkBorder(t *testing.T) {
	b := newBed(t, few(), modeltest.Spec{Arch: "llama4", Layers: 5, Window: 100, Context: 400}.File(t))
	const drawn = 45 // from 190 on they cross the second border
	for i, n := range []int{60, 99, 100, 101, 128, 190, 199, 200, 201, 256, 290} {
		for j, cache := range []tensor.Type{tensor.F32, tensor.Q8_0} {
			if !long && j != i%2 {
				continue // by turns
			}
			t.Run(fmt.Sprint(n, " ", cache), func(t *testing.T) { chunkBorder(t, b, n, drawn, cache) })
		}
	}
}

func chunkBorder(t *testing.T, b *bed, n, drawn int, cache tensor.Type) {
	ids := text(n)
	want := draw(t, sequence(t, b.engine(t, engine.Config{CacheType: cache})), drawn, ids)
	small := draw(t, sequence(t, b.engine(t, engine.Config{CacheType: cache, Chunk: 7})), drawn, ids)
	if !slices.Equal(small, want) {
		t.Errorf("small steps: %v, want %v", small, want)
	}
	e := b.engine(t, engine.Config{CacheType: cache, Seqs: 3})
	first := sequence(t, e)
	draw(t, first, drawn, ids)
	all := slices.Clone(ids)
	for _, d := range want {
		all = append(all, d.ID)
	}

	// A prefix: the whole prompt, and the answer too, of which the last tokens are drawn again.
	for _, m := range []int{n, n + drawn - 5} {
		s := sequence(t, e)
		if got := draw(t, s, n+drawn-m, all[:m]); !slices.Equal(got, want[m-n:]) {
			t.Errorf("behind a prefix of %d: %v, want %v", m, got, want[m-n:])
		}
		if whole := (m - 1) / 64 * 64; s.Reused() != whole {
			t.Errorf("%d tokens of %d were found in the cache, want %d", s.Reused(), m, whole)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}

	path := filepath.Join(t.TempDir(), "session")
	if err := first.Save(path); err != nil {
		t.Fatal(err)
	}
	behind := draw(t, first, 20)
	other := sequence(t, b.engine(t, engine.Config{CacheType: cache}))
	if err := other.AppendSaved(t.Context(), all, path); err != nil {
		t.Fatal(err)
	}
	if got := draw(t, other, 20); !slices.Equal(got, behind) || !other.Restored() || other.Reused() != (n+drawn-1)/64*64 {
		t.Errorf("from a file, %d tokens reused: %v, want %v", other.Reused(), got, behind)
	}

	fork, err := first.Fork(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{n + drawn, n + 10, n, n - 1, n - 50} {
		tail := []token.ID(nil)
		if cut < n {
			tail = ids[cut:]
		}
		if err := fork.Truncate(cut); err != nil {
			t.Fatal(err)
		}
		skip := max(0, cut-n)
		if got := draw(t, fork, drawn-skip, tail); !slices.Equal(got, want[skip:]) {
			t.Errorf("a fork that was cut to %d: %v, want %v", cut, got, want[skip:])
		}
	}
}
