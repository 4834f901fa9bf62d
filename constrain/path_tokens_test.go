package constrain

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/text/token"
)

// TestPathWorked has the numbers of the paper's layout for three sequences over four tokens, with one dense layer.
func TestPathWorked(t *testing.T) {
	s, err := PathNewTokens(4, [][]token.ID{{2, 0, 1}, {0, 1, 3}, {0, 1, 2}, {0, 1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]uint32{0, 0, 1, 1, 2, 2, 4, 5}, s.indptr); diff != "" {
		t.Errorf("indptr:\n%s", diff)
	}
	want := []edge{{1, 5}, {0, 6}, {2, 0}, {3, 0}, {1, 0}}
	if !slices.Equal(s.packed, want) {
		t.Errorf("packed %v, want %v", s.packed, want)
	}
	if diff := cmp.Diff([]int{2, 1, 2}, s.branching); diff != "" {
		t.Errorf("branching:\n%s", diff)
	}
	if s.Len() != 3 {
		t.Errorf("%d sequences, want 3", s.Len())
	}
}

// member walks a sequence of tokens through the rows.
func member(s *PathTokens, seq []token.ID) bool {
	if len(seq) == 0 {
		return false
	}
	state, whole, ok := s.First(seq[0])
	for _, id := range seq[1:] {
		if !ok || whole {
			return false
		}
		state, whole, ok = s.Step(state, id)
	}
	return ok && (whole || s.Ends(state))
}

// TestTokens compares membership with a search of the list, for sequences of all lengths, some of which begin others.
func TestTokens(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		vocab := 1 + rng.IntN(4)
		var all [][]token.ID
		for range 1 + rng.IntN(12) {
			seq := make([]token.ID, 1+rng.IntN(4))
			for i := range seq {
				seq[i] = token.ID(rng.IntN(vocab))
			}
			all = append(all, seq)
		}
		s, err := PathNewTokens(vocab, all)
		if err != nil {
			t.Fatal(err)
		}
		var walk func(seq []token.ID)
		walk = func(seq []token.ID) {
			want := slices.ContainsFunc(all, func(other []token.ID) bool { return slices.Equal(other, seq) })
			if got := member(s, seq); got != want {
				t.Fatalf("%v: %v is a member: %v, want %v", all, seq, got, want)
			}
			if len(seq) < 5 {
				for id := range vocab {
					walk(append(slices.Clone(seq), token.ID(id)))
				}
			}
		}
		walk(nil)
	}
}

// TestTokensRefused has sets that cannot be made.
func TestTokensRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		all  [][]token.ID
		want error
	}{
		{"no sequence", nil, ErrPathEmpty},
		{"an empty sequence", [][]token.ID{{1}, {}}, ErrPathEmpty},
		{"a token beyond the vocabulary", [][]token.ID{{1, 4}}, nil},
		{"a negative token", [][]token.ID{{-1}}, nil},
	} {
		if _, err := PathNewTokens(4, tt.all); err == nil || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		}
	}
}

// catalogue returns n random sequences of 8 tokens below vocab.
func catalogue(n, vocab int) [][]token.ID {
	rng := rand.New(rand.NewPCG(3, 4))
	all := make([][]token.ID, n)
	for i := range all {
		all[i] = make([]token.ID, 8)
		for j := range all[i] {
			all[i][j] = token.ID(rng.IntN(vocab))
		}
	}
	return all
}

// BenchmarkStep walks a thousand sequences of catalogues of four sizes; a step's cost must not grow with them.
func BenchmarkStep(b *testing.B) {
	const vocab = 2048
	for _, n := range []int{1e3, 1e4, 1e5, 1e6} {
		all := catalogue(n, vocab)
		s, err := PathNewTokens(vocab, all)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(size(n), func(b *testing.B) {
			b.ReportMetric(float64(s.Bytes())/float64(s.Len()), "B/entry")
			for i := 0; b.Loop(); i++ {
				if seq := all[i%1000*(n/1000)]; !member(s, seq) {
					b.Fatal("a sequence is no member")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/8, "ns/token")
		})
	}
}

func size(n int) string {
	return map[int]string{1e3: "1e3", 1e4: "1e4", 1e5: "1e5", 1e6: "1e6"}[n]
}
