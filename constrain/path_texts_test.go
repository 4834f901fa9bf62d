package constrain

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// run walks a text through a machine.
func run(m PathMachine, text string) (state int, alive bool) { return from(m, PathStart, text) }

// from walks a text from a state.
func from(m PathMachine, state int, text string) (to int, alive bool) {
	alive = true
	for i := range len(text) {
		if state, alive = m.Step(state, text[i]); !alive {
			return 0, false
		}
	}
	return state, true
}

func accepts(m PathMachine, text string) bool {
	state, alive := run(m, text)
	return alive && m.Final(state)
}

// compare holds a machine to the list of its texts of at most long bytes over an alphabet: prefixes of the list are
// alive and nothing else is, texts of the list are final and nothing else is.
func compare(t *testing.T, m PathMachine, texts []string, alphabet string, long int) {
	t.Helper()
	prefixes, all := map[string]bool{"": true}, map[string]bool{}
	for _, text := range texts {
		all[text] = true
		for i := range len(text) {
			prefixes[text[:i+1]] = true
		}
	}
	var walk func(text string, state int)
	walk = func(text string, state int) {
		if got := m.Final(state); got != all[text] {
			t.Fatalf("%q is final: %v, want %v (of %d texts)", text, got, all[text], len(texts))
		}
		if len(text) == long {
			return
		}
		for i := range len(alphabet) {
			next, alive := m.Step(state, alphabet[i])
			longer := text + alphabet[i:i+1]
			if alive != prefixes[longer] {
				t.Fatalf("%q is alive: %v, want %v (of %d texts)", longer, alive, prefixes[longer], len(texts))
			}
			if alive {
				walk(longer, next)
			}
		}
	}
	walk("", PathStart)
}

func TestTexts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var texts []string
		for range 1 + rng.IntN(15) {
			var b strings.Builder
			for range 1 + rng.IntN(5) {
				b.WriteByte("ab\xfe"[rng.IntN(3)])
			}
			texts = append(texts, b.String())
		}
		m, err := PathNewTexts(texts)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, m, texts, "ab\xfe\xff", 6)
	}
}

func TestTextsRefused(t *testing.T) {
	for _, texts := range [][]string{nil, {"a", ""}} {
		if _, err := PathNewTexts(texts); !errors.Is(err, ErrPathEmpty) {
			t.Errorf("%q: error %v, want %v", texts, err, ErrPathEmpty)
		}
	}
	if _, err := PathNewTexts([]string{"a\xff"}); err == nil {
		t.Error("the byte 0xff is taken")
	}
}

// products returns n names as a catalogue has them.
func products(n int) []string {
	rng := rand.New(rand.NewPCG(5, 6))
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("item-%08x-%04d", rng.Uint32(), rng.IntN(10_000))
	}
	return all
}

// TestTextsSize bounds what a text takes beside its bytes.
func TestTextsSize(t *testing.T) {
	texts := products(100_000)
	m, err := PathNewTexts(texts)
	if err != nil {
		t.Fatal(err)
	}
	if each := m.Memory()/m.Len() - len(texts[0]); each > 16 {
		t.Errorf("a text takes %d bytes beside its own, more than 16", each)
	}
	for i := 0; i < len(texts); i += 1000 {
		if !accepts(m, texts[i]) || accepts(m, texts[i]+"0") {
			t.Errorf("%q is not accepted, or accepted with more behind it", texts[i])
		}
	}
}

// BenchmarkTexts makes catalogues of four sizes, and walks a thousand of their texts.
func BenchmarkTexts(b *testing.B) {
	for _, n := range []int{1e3, 1e4, 1e5, 1e6} {
		texts := products(n)
		m, err := PathNewTexts(texts)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("step/"+size(n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if !accepts(m, texts[i%1000*(n/1000)]) {
					b.Fatal("a text is not accepted")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(texts[0])), "ns/byte")
			b.ReportMetric(float64(m.Memory())/float64(m.Len()), "B/entry")
		})
		b.Run("make/"+size(n), func(b *testing.B) {
			for b.Loop() {
				if _, err := PathNewTexts(slices.Clone(texts)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
