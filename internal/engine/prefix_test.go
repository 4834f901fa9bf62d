package engine_test

import (
	"errors"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"grove/internal/engine"
	"grove/internal/oracle"
	"grove/internal/sample"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// prefixed opens a sequence whose first prompt's tokens see each other.
func prefixed(t *testing.T, e *engine.Engine) *engine.Sequence {
	t.Helper()
	s, err := e.NewSequence(engine.Answer{Sampling: sample.Params{Temperature: 1, Seed: 9}, Prefix: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPrefixOracle compares the logits behind a prefix, and behind tokens that follow it, with float64.
func TestPrefixOracle(t *testing.T) {
	for _, arch := range []string{"qwen2", "unixcoder"} {
		t.Run(arch, func(t *testing.T) { checkPrefixOracle(t, modeltest.Spec{Arch: arch, Context: 300}.File(t)) })
	}
}

func checkPrefixOracle(t *testing.T, file *gguf.File) {
	b := newBed(t, few(), file)
	o, err := oracle.New(file)
	if err != nil {
		t.Fatal(err)
	}
	ids, plain := text(90), []int{}
	for _, id := range ids {
		plain = append(plain, int(id))
	}
	for _, prefix := range []int{1, 70, 90} {
		o.Prefix = prefix
		want := o.Forward(plain)[89]
		s := prefixed(t, b.engine(t, engine.Config{CacheType: tensor.F32}))
		if err := s.Append(t.Context(), ids[:prefix]); err != nil {
			t.Fatal(err)
		}
		if err := s.Append(t.Context(), ids[prefix:]); err != nil {
			t.Fatal(err)
		}
		got, err := s.Logits(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var worst, scale float64
		for v, x := range want {
			worst, scale = max(worst, math.Abs(x-float64(got[v]))), max(scale, math.Abs(x))
		}
		if !(worst <= 1e-4*scale) {
			t.Errorf("a prefix of %d: logits differ by %g; the largest is %g", prefix, worst, scale)
		}
	}
}

// TestPrefix expects the answer behind a prefix beside others, of forks, of cut texts and of texts whose pages were taken, and that no text
// shares its pages.
func TestPrefix(t *testing.T) {
	b := newBed(t, few(), modeltest.Spec{Context: 300}.File(t))
	ids := text(150)
	want := draw(t, prefixed(t, b.engine(t, engine.Config{})), 70, ids)
	causal := draw(t, sequence(t, b.engine(t, engine.Config{})), 70, ids)
	if slices.Equal(want, causal) {
		t.Fatal("a prefix changes nothing")
	}
	e := b.engine(t, engine.Config{Seqs: 3})
	other := sequence(t, e)
	if got := draw(t, other, 70, ids); !slices.Equal(got, causal) {
		t.Errorf("a text without a prefix: %v, want %v", got, causal)
	}
	s := prefixed(t, e)
	if got := draw(t, s, 70, ids); !slices.Equal(got, want) || s.Reused() != 0 {
		t.Errorf("beside the same text without a prefix, %d tokens reused: %v, want %v", s.Reused(), got, want)
	}
	if err := s.Truncate(170); err != nil {
		t.Fatal(err)
	}
	if got := draw(t, s, 50); !slices.Equal(got, want[20:]) {
		t.Errorf("cut behind the prefix: %v, want %v", got, want[20:])
	}
	f, err := s.Fork(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{151, 150} {
		if err := f.Truncate(n); err != nil {
			t.Fatal(err)
		}
		if got := draw(t, f, 220-n); !slices.Equal(got, want[n-150:]) {
			t.Errorf("a fork that was cut to %d: %v, want %v", n, got, want[n-150:])
		}
	}
	short := draw(t, prefixed(t, b.engine(t, engine.Config{})), 10, ids[:140])
	if err := f.Truncate(140); err != nil {
		t.Fatal(err)
	}
	if got := draw(t, f, 10); !slices.Equal(got, short) {
		t.Errorf("a prefix that was cut: %v, want %v", got, short)
	}

	small := b.engine(t, engine.Config{Seqs: 2, Tokens: 300})
	first, second := prefixed(t, small), prefixed(t, small)
	got := draw(t, first, 30, ids)
	if again := draw(t, second, 70, ids); !slices.Equal(again, want) {
		t.Errorf("a second text: %v, want %v", again, want)
	}
	if got = append(got, draw(t, first, 40)...); !slices.Equal(got, want) {
		t.Errorf("a text whose pages were taken: %v, want %v", got, want)
	}
}

// TestPrefixRefused goes through prompts that cannot be a prefix.
func TestPrefixRefused(t *testing.T) {
	b := newBed(t, 1, modeltest.Spec{Context: 300}.File(t))
	if err := prefixed(t, b.engine(t, engine.Config{Chunk: 20})).Append(t.Context(), text(21)); !errors.Is(err, engine.ErrPrefix) {
		t.Errorf("more tokens than a step has rows: %v", err)
	}
	if err := prefixed(t, b.engine(t, engine.Config{})).AppendSaved(t.Context(), text(21), filepath.Join(t.TempDir(), "s")); !errors.Is(err, engine.ErrPrefix) {
		t.Errorf("a session: %v", err)
	}
	s := prefixed(t, reader(t).engine(t, engine.Config{}))
	if err := s.Append(t.Context(), []token.ID{1}); !errors.Is(err, engine.ErrPrefix) {
		t.Errorf("an encoder-decoder: %v", err)
	}
}
