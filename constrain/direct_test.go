package constrain

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"grove/internal/text/token"
)

// TestDirect walks random lists of texts and compares all that a recognizer says with one that runs each token by itself.
func TestDirect(t *testing.T) {
	for _, spm := range []bool{false, true} {
		v := words(t, spm)
		rng := rand.New(rand.NewPCG(1, 2))
		pieces := []string{}
		for _, id := range v.order() {
			if s := string(v.trie.Bytes(id)); !strings.Contains(s, "\xff") {
				pieces = append(pieces, s)
			}
		}
		for range 60 {
			var list []string
			for range 1 + rng.IntN(6) {
				text := ""
				for range 1 + rng.IntN(4) {
					text += pieces[rng.IntN(len(pieces))]
				}
				list = append(list, text)
			}
			m, err := choices(append(list, []string{"", list[0]}[rng.IntN(2)]))
			if err != nil {
				t.Fatal(err)
			}
			src, err := PathSource(m)()
			if err != nil {
				t.Fatal(err)
			}
			want, err := newSlow(v, src)
			if err != nil {
				t.Fatal(err)
			}
			compareRecognizers(t, v, newDirect(v, m), want, rng)
		}
	}
}

// compareRecognizers walks both along random tokens.
func compareRecognizers(t *testing.T, v *Vocabulary, got, want recognizer, rng *rand.Rand) {
	t.Helper()
	a, _ := got.start()
	b, _ := want.start()
	for text := ""; ; {
		ma, err := got.mask(a)
		if err != nil {
			t.Fatal(err)
		}
		mb, err := want.mask(b)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(ma, mb) {
			t.Fatalf("behind %q the masks differ", text)
		}
		fa, fb := string(got.forced(a, 9)), string(want.forced(b, 9))
		if got.ends(a) != want.ends(b) || fa != fb {
			t.Fatalf("behind %q: ends %v, %v; forced %q, %q", text, got.ends(a), want.ends(b), fa, fb)
		}
		var legal []token.ID
		for id := range token.ID(v.size) {
			ok, err := got.allows(a, id)
			if err != nil || ok != ma.has(id) {
				t.Fatalf("behind %q: token %d is allowed: %v (%v)", text, id, ok, err)
			}
			if ok && len(v.trie.Bytes(id)) > 0 {
				legal = append(legal, id)
			}
		}
		if len(legal) == 0 {
			return
		}
		id := legal[rng.IntN(len(legal))]
		if a, err = got.next(a, id); err != nil {
			t.Fatal(err)
		}
		if b, err = want.next(b, id); err != nil {
			t.Fatal(err)
		}
		text += string(v.trie.Bytes(id))
	}
}

// TestDirectExpected says what may follow in words, and where a text leaves a list.
func TestDirectExpected(t *testing.T) {
	v := words(t, false)
	for _, tt := range []struct {
		list []string
		text string
		want string
	}{
		{[]string{"yes", "no", "not"}, "", `"no", "yes"`},
		{[]string{"yes", "no", "not"}, "no", `"t", the end of the text`},
		{[]string{""}, "", "the end of the text"},
		{[]string{"a", "b", "c", "d", "e", "f", "g", "h"}, "", `"a", "b", "c", "d", "e", "f", and others`},
		{[]string{strings.Repeat("long ", 9)}, "", `"long long long long long"...`},
	} {
		c, err := Compile(Spec{Choices: tt.list}, v, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		s, n, err := c.rec.push(c.root, []byte(tt.text))
		if got := c.rec.expected(s); err != nil || n != len(tt.text) || got != tt.want {
			t.Errorf("%q behind %q: %s, want %s", tt.list, tt.text, got, tt.want)
		}
	}
	part, err := PathNewSubstring("one two")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Compile(Spec{Automaton: part}, v, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check([]byte("ne tw")); err != nil {
		t.Error(err)
	}
	if err := c.Check([]byte("one one")); err == nil || !strings.Contains(err.Error(), `byte 4`) {
		t.Errorf("a text that is no part: %v", err)
	}
}

// BenchmarkDirect makes the masks of a list of a million texts.
func BenchmarkDirect(b *testing.B) {
	v := words(b, false)
	rng := rand.New(rand.NewPCG(3, 4))
	list := make([]string, 1e6)
	for i := range list {
		for range 6 {
			list[i] += string(v.trie.Bytes(v.order()[rng.IntN(40)]))
		}
	}
	m, err := PathNewTexts(list)
	if err != nil {
		b.Fatal(err)
	}
	r := newDirect(v, m)
	for i := 0; b.Loop(); i++ {
		s, _, _ := r.push(state{}, []byte(list[i%1000][:i%4]))
		if _, err := r.mask(s); err != nil {
			b.Fatal(err)
		}
	}
}
