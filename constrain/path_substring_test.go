package constrain

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

// random returns a text of at most n bytes of an alphabet.
func random(rng *rand.Rand, alphabet string, n int) string {
	var b strings.Builder
	for range rng.IntN(n + 1) {
		b.WriteByte(alphabet[rng.IntN(len(alphabet))])
	}
	return b.String()
}

// TestSubstring compares the machine with the list of all parts of random texts.
func TestSubstring(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		text := random(rng, "abc", 14)
		m, err := PathNewSubstring(text)
		if err != nil {
			t.Fatal(err)
		}
		var parts []string
		for i := range len(text) + 1 {
			for j := i; j <= len(text); j++ {
				parts = append(parts, text[i:j])
			}
		}
		if states := len(m.s.rows) - 1; states > max(2*len(text), 1) || len(m.s.by) > 3*len(text) {
			t.Fatalf("%q has %d states and %d branches", text, states, len(m.s.by))
		}
		compare(t, m, parts, "abc\xff", 7)
	}
}

// TestWords compares the machine with the list of the parts between boundaries of words.
func TestWords(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 400 {
		text := random(rng, "aab .", 14)
		m, err := PathNewWords(text)
		if err != nil {
			t.Fatal(err)
		}
		bounds := []int{0}
		for i := 1; i < len(text); i++ {
			if isWord(text[i-1]) != isWord(text[i]) {
				bounds = append(bounds, i)
			}
		}
		bounds = append(bounds, len(text))
		parts := []string{""}
		for i, from := range bounds {
			for _, to := range bounds[i:] {
				parts = append(parts, text[from:to])
			}
		}
		compare(t, m, parts, "ab .\xff", 7)
	}
}

// TestWide has states with more branches than a list holds.
func TestWide(t *testing.T) {
	var b strings.Builder
	for i := range 60 {
		b.WriteString("x" + string(rune('0'+i)) + "yx" + string(rune('0'+i*7%60)))
	}
	text := b.String()
	m, err := PathNewSubstring(text)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for range 20_000 {
		i := rng.IntN(len(text))
		part := text[i:min(len(text), i+1+rng.IntN(9))]
		if rng.IntN(2) == 0 {
			part = part[:len(part)-1] + string(text[rng.IntN(len(text))])
		}
		if got, want := accepts(m, part), strings.Contains(text, part); got != want {
			t.Fatalf("%q is a part: %v, want %v", part, got, want)
		}
	}
}

func TestSubstringRefused(t *testing.T) {
	for _, text := range []string{strings.Repeat("a", PathMaxSubstring+1), "a\xff"} {
		_, err := PathNewSubstring(text)
		if _, words := PathNewWords(text); err == nil || words == nil {
			t.Fatalf("a text of %d bytes: errors %v and %v", len(text), err, words)
		}
		if len(text) > 2 && !errors.Is(err, ErrPathTooMany) {
			t.Errorf("%v, want %v", err, ErrPathTooMany)
		}
	}
}

// BenchmarkSubstring makes the parts of texts of three sizes: the time a byte must not grow.
func BenchmarkSubstring(b *testing.B) {
	rng := rand.New(rand.NewPCG(7, 8))
	for name, n := range map[string]int{"1e4": 1e4, "1e5": 1e5, "1e6": 1e6} {
		var s strings.Builder
		for s.Len() < n {
			s.WriteString(random(rng, "etaoinshrdlu", 8) + " ")
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := PathNewSubstring(s.String()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/byte")
		})
	}
}
