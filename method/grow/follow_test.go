package grow

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"grove/internal/forest"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
)

// hashed is a model whose logits are a function of the whole path.
func hashed(rows, context int) *growtest.Model {
	return &growtest.Model{
		Dims: method.Size{Vocabulary: 5, Layers: 1, Width: 4, Context: context, Rows: rows},
		Next: func(path []token.ID, _ forest.Row) []float32 { return hash(path) },
	}
}

func hash(path []token.ID) []float32 {
	h := uint32(7)
	for _, id := range path {
		h = h*31 + uint32(id) + 1
	}
	return []float32{float32(h % 1009), float32(h % 997), float32(h % 991), float32(h % 983), float32(h % 977)}
}

// TestFollower follows texts whose uncertain ends change, with rows behind them, and expects of each pass the logits behind the paths themselves.
func TestFollower(t *testing.T) {
	for _, size := range []int{1, 3, 64} {
		rng, m := rand.New(rand.NewPCG(1, uint64(size))), hashed(size, 120)
		f := NewFollower(m, 5)
		var text []token.ID
		passes := 0
		for round := range 400 {
			if round%100 == 0 {
				text = slices.Repeat([]token.ID{1, 3}, 1+round/20)
				if err := f.Begin(); err != nil {
					t.Fatal(err)
				}
			}
			certain := len(text)
			for range rng.IntN(12) {
				text = append(text, token.ID(rng.IntN(5)))
			}
			var rows []LiveRow
			for i := range rng.IntN(10) {
				rows = append(rows, LiveRow{ID: token.ID(rng.IntN(5)), Parent: rng.IntN(i+1) - 1})
			}
			f.Follow(text, certain)
			n, err := f.Join(t.Context(), rows)
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 || size == 64 && len(text) < 100 && n != 1+len(rows) {
				t.Fatalf("steps of %d rows: %d of %d tokens have logits", size, n, 1+len(rows))
			}
			paths := [][]token.ID{text}
			for _, r := range rows {
				paths = append(paths, append(slices.Clone(paths[r.Parent+1]), r.ID))
			}
			for i := range n {
				if want := hash(paths[i]); !slices.Equal(f.Logits(i), want) {
					t.Fatalf("steps of %d rows, round %d, row %d: %v, want %v", size, round, i, f.Logits(i), want)
				}
				passes++
			}
			if s := f.Trunk.(*growtest.Sequence); !slices.Equal(s.Trunk, text[:len(s.Trunk)]) || len(s.Trunk) >= certain || s.Most > method.MaxLive && size < 64 {
				t.Fatalf("a trunk of %v behind %v, %d certain, %d rows", s.Trunk, text, certain, s.Most)
			}
			if n > 1 && f.Live[f.Base+1].ID != rows[0].ID {
				t.Fatalf("the first row is %v", f.Live[f.Base+1])
			}
			text = text[:certain+rng.IntN(len(text)-certain+1)] // the end is another
			text = append(text, token.ID(rng.IntN(5)))
			if len(text) > 100 {
				text = text[:1]
				if err := f.Begin(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if passes < 400 {
			t.Errorf("%d rows", passes)
		}
	}
}

// TestFollowerKeeps expects tokens that are accepted to be computed once.
func TestFollowerKeeps(t *testing.T) {
	m := hashed(64, 100)
	f := NewFollower(m, 5)
	text := []token.ID{1, 2, 3}
	ran := func(certain int, rows []LiveRow, want ...token.ID) {
		t.Helper()
		f.Follow(text, certain)
		if _, err := f.Join(t.Context(), rows); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(m.Ran, want) {
			t.Errorf("ran %v, want %v", m.Ran, want)
		}
		m.Ran = nil
	}
	ran(3, []LiveRow{{ID: 4, Parent: None}, {ID: 0, Parent: 0}, {ID: 2, Parent: None}}, 1, 2, 3, 4, 0, 2)
	text = append(text, 4, 0, 1) // an uncertain end, of which two tokens were run
	ran(3, nil, 1)
	text = append(text[:3], 4, 1)
	ran(5, nil, 1)
	if got := f.Trunk.(*growtest.Sequence).Trunk; !slices.Equal(got, []token.ID{1, 2, 3, 4}) {
		t.Errorf("the trunk is %v", got)
	}
	text = append(text, 7)
	f.Follow(text, 6)
	if n, err := f.Join(t.Context(), nil); n != 0 || err != nil {
		t.Errorf("a token of another vocabulary: %d, %v", n, err)
	}
	m.Fail = errors.New("broken")
	f.Follow(text[:5], 5)
	if _, err := f.Join(t.Context(), nil); !errors.Is(err, m.Fail) {
		t.Errorf("error %v", err)
	}
	if err := f.Close(); err != nil || !f.Trunk.(*growtest.Sequence).Shut {
		t.Errorf("closed: %v", err)
	}
}
