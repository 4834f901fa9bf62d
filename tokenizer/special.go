package tokenizer

import (
	"slices"
	"sort"
	"strings"

	"grove/token"
)

// specials are the tokens that are matched in text as they are written.
type specials struct {
	all   []special  // by text
	first [257]int32 // all[first[b]:first[b+1]] begin with byte b
}

type special struct {
	text  string
	id    token.ID
	plain bool // matched even where text is plain
	strip bool // swallows the white space that follows
}

// fragment is a stretch of text, or a special token where id is not token.None.
type fragment struct {
	text string
	id   token.ID
}

func newSpecials(tokens []string, types []Type, name string) specials {
	var s specials
	name = strings.ToLower(name)
	phi3 := strings.Contains(name, "phi-3") || strings.Contains(name, "phi3")
	for i, text := range tokens {
		if text == "" || !types[i].special() {
			continue
		}
		keeps := text == "<unk>" || text == "<s>" || text == "<|endoftext|>"
		s.all = append(s.all, special{text, token.ID(i), types[i] == UserDefined, phi3 && !keeps})
		s.first[int(text[0])+1]++
	}
	slices.SortFunc(s.all, func(a, b special) int { return strings.Compare(a.text, b.text) })
	for b := range 256 {
		s.first[b+1] += s.first[b]
	}
	return s
}

// partition cuts text at the special tokens written in it. The longest token is cut out first, then
// the next longest from what is left, so a long one wins over a shorter one that begins before it.
func (s *specials) partition(text string, plain bool) []fragment {
	if text == "" {
		return nil
	}
	frags := []fragment{{text, token.None}}
	for _, sp := range s.written(text, plain) {
		var out []fragment
		for _, f := range frags {
			if f.id != token.None {
				out = append(out, f)
			} else {
				out = sp.cut(out, f.text)
			}
		}
		frags = out
	}
	return frags
}

// cut appends text to dst with every occurrence of the token cut out.
func (sp special) cut(dst []fragment, text string) []fragment {
	for text != "" {
		before, after, ok := strings.Cut(text, sp.text)
		if before != "" {
			dst = append(dst, fragment{before, token.None})
		}
		if !ok {
			break
		}
		dst = append(dst, fragment{"", sp.id})
		if sp.strip {
			after = strings.TrimLeft(after, " \t\n\v\f\r")
		}
		text = after
	}
	return dst
}

// written returns the special tokens that occur in text, in the order in which they are cut out:
// longest first, and of equal lengths the lowest id.
func (s *specials) written(text string, plain bool) []special {
	found := map[int]bool{}
	for i := range len(text) {
		lo, hi := int(s.first[text[i]]), int(s.first[int(text[i])+1])
		for d := 1; lo < hi; d++ {
			if len(s.all[lo].text) == d {
				if s.all[lo].plain || !plain {
					found[lo] = true
				}
				lo++
			}
			if i+d >= len(text) {
				break
			}
			// The tokens from lo to hi agree with text in d bytes; keep those that agree in one more.
			c := text[i+d]
			lo += sort.Search(hi-lo, func(k int) bool { return s.all[lo+k].text[d] >= c })
			hi = lo + sort.Search(hi-lo, func(k int) bool { return s.all[lo+k].text[d] > c })
		}
	}
	out := make([]special, 0, len(found))
	for k := range found {
		out = append(out, s.all[k])
	}
	slices.SortFunc(out, func(a, b special) int {
		if n := len(b.text) - len(a.text); n != 0 {
			return n
		}
		return int(a.id - b.id)
	})
	return out
}
