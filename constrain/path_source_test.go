package constrain

import (
	"math/rand/v2"
	"testing"

	"grove/constrain/earley"
	"grove/constrain/vocab"
	"grove/internal/text/token"
)

// TestSource holds the masks of the machines' grammars to the machines, along random texts and in any tokens.
func TestSource(t *testing.T) {
	g, err := PathNewGraph(family, []string{"Ann"}, 2, "</P>")
	if err != nil {
		t.Fatal(err)
	}
	marked, err := PathNewMarked("<P>", g)
	if err != nil {
		t.Fatal(err)
	}
	texts, err := PathNewTexts([]string{"Ann", "Ann -> child", "Bob", "B"})
	if err != nil {
		t.Fatal(err)
	}
	part, err := PathNewSubstring("Ann -> child -> Bob")
	if err != nil {
		t.Fatal(err)
	}
	words, err := PathNewWords("Ann -> child -> Bob Lee")
	if err != nil {
		t.Fatal(err)
	}
	var tokens []vocab.Token
	for _, s := range []string{
		"A", "n", "nn", "Ann", " ", "->", " -> ", "-", ">", "c", "child", "hild", " -> child", "B", "o", "b", "Bob", "ob L", "Lee", "e",
		"<", "P", "<P>", "</P>", "/P>", "> A", "</", "works at", "w", "orks", " at", "M", "ill", "Mill", "x", "> x", "Le",
	} {
		tokens = append(tokens, vocab.Token{ID: token.ID(len(tokens)), Bytes: []byte(s), Kind: vocab.Ordinary})
	}
	end := token.ID(len(tokens))
	v, err := vocab.New(append(tokens, vocab.Token{ID: end, Kind: vocab.End}), int(end)+1)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for name, m := range map[string]PathMachine{"graph": g, "marked": marked, "texts": texts, "part": part, "words": words} {
		src, err := PathSource(m)()
		if err != nil {
			t.Fatal(name, err)
		}
		e, err := earley.New(src, v, earley.Limits{})
		if err != nil {
			t.Fatal(name, err)
		}
		for range 40 {
			at := PathStart
			state, err := e.Start()
			for n := 0; n < 12 && err == nil; n++ {
				mask, err := e.Mask(state)
				if err != nil {
					t.Fatal(name, err)
				}
				var legal []token.ID
				for id := range end {
					_, want := from(m, at, string(v.Bytes(id)))
					if got := mask[id>>6]>>(id&63)&1 == 1; got != want {
						t.Fatalf("%s: token %q is legal: %v, want %v", name, v.Bytes(id), got, want)
					}
					if want {
						legal = append(legal, id)
					}
				}
				if got := mask[end>>6]>>(end&63)&1 == 1; got != m.Final(at) {
					t.Fatalf("%s: the text may end: %v, want %v", name, got, m.Final(at))
				}
				if len(legal) == 0 {
					break
				}
				id := legal[rng.IntN(len(legal))]
				at, _ = from(m, at, string(v.Bytes(id)))
				if state, err = e.Next(state, id); err != nil {
					t.Fatal(name, err)
				}
			}
			if err != nil {
				t.Fatal(name, err)
			}
		}
	}
}
