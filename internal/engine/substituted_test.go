package engine_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"grove/internal/compute"
	"grove/internal/engine"
	"grove/internal/model"
	"grove/internal/model/synthetic"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/method/layers"
)

// substitutes is a model of six layers, what stands for four of them, and a period of three places.
func substitutes(t *testing.T) (*bed, compute.SubstituteLayers, layers.Places) {
	t.Helper()
	b := newBed(t, few(), modeltest.Spec{Context: 300, Layers: 6}.File(t))
	metadata, tensors, err := synthetic.Substitutes(b.m.Info().Width, 4, 3, 0.3, 1, 2, 3, 5)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := gguf.Write(&file, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	l, _, err := model.OpenSubstitutes(f, b.pool, b.m.Info())
	if err != nil {
		t.Fatal(err)
	}
	return b, l, layers.Places{Period: 3}
}

// TestSubstituted expects the answer of a period beside others, of forks and of cut texts at every place of a period, and that no text shares the pages of what substituted layers. With a period of
// 1, and without any, the answer is that of plain decoding.
func TestSubstituted(t *testing.T) {
	b, subs, places := substitutes(t)
	ids := text(150)
	with := engine.Config{Substitutes: subs}
	want := draw(t, shallow(t, b.engine(t, with), places), 120, ids)
	plain := draw(t, sequence(t, b.engine(t, engine.Config{})), 120, ids)
	if slices.Equal(want, plain) {
		t.Fatal("substitutes layers changes nothing")
	}
	for _, p := range []layers.Places{{}, {Period: 1}} {
		if got := draw(t, shallow(t, b.engine(t, with), p), 120, ids); !slices.Equal(got, plain) {
			t.Errorf("%+v: %v, want %v", p, got, plain)
		}
	}
	e := b.engine(t, engine.Config{Substitutes: subs, Seqs: 3, Chunk: 7})
	s := shallow(t, e, places)
	if got := draw(t, s, 120, ids); !slices.Equal(got, want) {
		t.Errorf("steps of 7 rows: %v, want %v", got, want)
	}
	besideShallow(t, b, e, ids, want, plain)
	for _, n := range []int{230, 229, 228, 193, 192, 191} {
		if err := s.Truncate(n); err != nil {
			t.Fatal(err)
		}
		f, err := s.Fork(0)
		if err != nil {
			t.Fatal(err)
		}
		if got := draw(t, f, 20); !slices.Equal(got, want[n-150:n-130]) {
			t.Errorf("a fork at %d: %v, want %v", n, got, want[n-150:n-130])
		}
		if got := draw(t, s, 20); !slices.Equal(got, want[n-150:n-130]) {
			t.Errorf("cut to %d: %v, want %v", n, got, want[n-150:n-130])
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSubstitutedPreempted: a text whose pages were taken in the middle of a period is computed anew with the layers of its places.
func TestSubstitutedPreempted(t *testing.T) {
	b, subs, places := substitutes(t)
	ids := text(150)
	want := draw(t, shallow(t, b.engine(t, engine.Config{Substitutes: subs}), places), 120, ids)
	for n := 60; n < 63; n++ {
		e := b.engine(t, engine.Config{Seqs: 1, Substitutes: subs})
		e.Impatient()
		first := shallow(t, e, places)
		got := draw(t, first, n, ids)
		draw(t, sequence(t, e), 1, text(40))
		if got = append(got, draw(t, first, 120-n)...); !slices.Equal(got, want) {
			t.Errorf("a text whose pages were taken behind %d tokens: %v, want %v", n, got, want)
		}
		if load := e.Load(); load.Preempted == 0 {
			t.Error("no text lost its pages: the test shows nothing")
		}
	}
}

// TestSubstitutedBeside lets three texts of different periods and a plain one take turns: each has the answer that it has alone.
func TestSubstitutedBeside(t *testing.T) {
	b, subs, _ := substitutes(t)
	e := b.engine(t, engine.Config{Seqs: 4, Substitutes: subs})
	var all []*engine.Sequence
	for i := range 4 {
		s := shallow(t, e, layers.Places{Period: i})
		if err := s.Append(t.Context(), text(70+9*i)); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	got := make([][]token.ID, len(all))
	for range 40 {
		for i, s := range all {
			d, err := s.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got[i] = append(got[i], d.ID)
		}
	}
	for i := range all {
		for at, d := range draw(t, shallow(t, b.engine(t, engine.Config{Substitutes: subs}), layers.Places{Period: i}), 40, text(70+9*i)) {
			if got[i][at] != d.ID {
				t.Fatalf("period %d: token %d is %d beside others and %d alone", i, at, got[i][at], d.ID)
			}
		}
	}
}

// TestSubstitutedRefused: what cannot be combined with a period is refused.
func TestSubstitutedRefused(t *testing.T) {
	b, subs, places := substitutes(t)
	for want, c := range map[string]struct {
		e *engine.Engine
		p layers.Places
	}{
		"nothing stands for the layers that are substituted": {b.engine(t, engine.Config{}), places},
		"period=2000; it must be 1 to 1024":                  {b.engine(t, engine.Config{Substitutes: subs}), layers.Places{Period: 2000}},
		"period=-1; it must be":                              {b.engine(t, engine.Config{Substitutes: subs}), layers.Places{Period: -1}},
		"and stands alone":                                   {b.engine(t, engine.Config{Substitutes: subs}), layers.Places{Period: 4, To: 3}},
	} {
		if _, err := c.e.NewSequence(engine.Answer{Places: c.p}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	s := shallow(t, b.engine(t, engine.Config{Substitutes: subs}), places)
	if err := s.SetDrafting(nil, nil); !errors.Is(err, engine.ErrPlaces) {
		t.Errorf("drafting: %v", err)
	}
}
