package vocab_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"grove/constrain/vocab"
	"grove/internal/text/token"
)

func words(texts ...string) []vocab.Token {
	var all []vocab.Token
	for i, text := range texts {
		all = append(all, vocab.Token{ID: token.ID(i), Bytes: []byte(text), Kind: vocab.Ordinary})
	}
	return all
}

// strings of a trie, by a walk that rebuilds each path.
func list(t vocab.Trie) map[uint32]string {
	all := map[uint32]string{}
	var path []byte
	for _, n := range t {
		if n.Depth() > 0 {
			path = append(path[:n.Depth()-1], n.Byte())
		}
		if n.Token() != vocab.None {
			all[n.Token()] = string(path)
		}
	}
	return all
}

// TestTrie compares tries of random vocabularies with the tokens they are made of: each path, and each subtree.
func TestTrie(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var texts []string
		for range rng.IntN(40) {
			b := make([]byte, rng.IntN(5))
			for i := range b {
				b[i] = "ab\"\xc3\xa9\n"[rng.IntN(6)]
			}
			texts = append(texts, string(b))
		}
		v, err := vocab.New(words(texts...), len(texts)+3)
		if err != nil {
			t.Fatal(err)
		}
		got := list(v.Trie())
		want := map[uint32]string{}
		first := map[string]bool{}
		for id, text := range texts {
			if text != "" && !first[text] {
				first[text] = true
				want[uint32(id)] = text
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%q: got %v, want %v", texts, got, want)
		}
		for id, text := range want {
			if got[id] != text {
				t.Fatalf("token %d: got %q, want %q", id, got[id], text)
			}
		}
		for i, n := range v.Trie() {
			end := i + n.Size()
			for j := i + 1; j < len(v.Trie()); j++ {
				if below := v.Trie()[j].Depth() > n.Depth() && j < end; below != (j < end) {
					t.Fatalf("node %d: the subtree ends at %d", i, end)
				}
			}
			if end < len(v.Trie()) && v.Trie()[end].Depth() > n.Depth() {
				t.Fatalf("node %d: the subtree does not end at %d", i, end)
			}
		}
		mask := make([]uint64, v.Words())
		for id := range got {
			mask[id>>6] |= 1 << (id & 63)
		}
		v.Spread(mask)
		for id, text := range texts {
			if set := mask[id>>6]>>(id&63)&1 == 1; set != (text != "") {
				t.Fatalf("token %d (%q): spread gives %v", id, text, set)
			}
		}
		checkSlices(t, v, got)
	}
}

func checkSlices(t *testing.T, v *vocab.Vocabulary, all map[uint32]string) {
	for n := range vocab.Levels + 2 {
		level, rest := v.Rest(n)
		others := list(rest)
		for id, text := range all {
			clean := cleanRunes(text)
			if set := v.Clean(n)[id>>6]>>(id&63)&1 == 1; set != (clean > 0 && (clean <= n || n > vocab.Levels)) {
				t.Fatalf("token %q: clean(%d) is %v", text, n, set)
			}
			if _, ok := others[id]; ok == (clean > 0 && (clean <= level || level > vocab.Levels)) {
				t.Fatalf("token %q: in the rest of %d (%d): %v", text, n, level, ok)
			}
		}
	}
}

// cleanRunes counts the code points of a clean text by the definition: it is a text without refused bytes that some suffix
// makes UTF-8.
func cleanRunes(text string) int {
	if text == "" || strings.ContainsAny(text, "\"\\\n") {
		return 0
	}
	for _, suffix := range []string{"", "\xa9", "\x80", "\x80\x80", "\x80\x80\x80", "\xa0\x80"} {
		if whole := text + suffix; strings.ToValidUTF8(whole, "") == whole {
			return len([]rune(whole))
		}
	}
	return 0
}

func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		tokens []vocab.Token
		size   int
	}{
		"range": {[]vocab.Token{{ID: 4}}, 4},
		"minus": {[]vocab.Token{{ID: -1}}, 4},
		"twice": {[]vocab.Token{{ID: 1}, {ID: 1}}, 4},
		"long":  {[]vocab.Token{{ID: 1, Kind: vocab.Ordinary, Bytes: bytes.Repeat([]byte("a"), vocab.MaxBytes+1)}}, 4},
		"size":  {nil, vocab.MaxSize + 1},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := vocab.New(c.tokens, c.size); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestKinds(t *testing.T) {
	v, err := vocab.New([]vocab.Token{
		{ID: 0, Bytes: []byte("a"), Kind: vocab.Ordinary},
		{ID: 1, Bytes: []byte("b"), Kind: vocab.Unused},
		{ID: 2, Bytes: []byte("c"), Kind: vocab.End},
		{ID: 3, Bytes: []byte("d"), Kind: vocab.Special},
		{ID: 4, Kind: vocab.Ordinary},
		{ID: 5, Bytes: []byte("x\xff"), Kind: vocab.Ordinary},
	}, 7)
	if err != nil {
		t.Fatal(err)
	}
	got := list(v.Trie())
	if len(got) != 2 || got[0] != "a" || got[3] != "\xff[3]" || vocab.Spelling(3) != "\xff[3]" {
		t.Errorf("trie: %v", got)
	}
	if !slices.Equal(v.End(), []token.ID{2}) {
		t.Errorf("end: %v", v.End())
	}
	for id, want := range []vocab.Kind{vocab.Ordinary, vocab.Unused, vocab.End, vocab.Special, vocab.Unused, vocab.Unused, vocab.Unused, vocab.Unused} {
		if got := v.Kind(token.ID(id)); got != want {
			t.Errorf("token %d: kind %d, want %d", id, got, want)
		}
	}
}
