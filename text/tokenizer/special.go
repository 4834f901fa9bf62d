package tokenizer

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"grove/text/token"
)

// specials are the tokens that are matched in the raw text.
type specials struct {
	all      []special // by text
	texts    lexicon
	leftmost bool // the leftmost token is cut out first, of those the longest, as in a tokenizer.json
}

type special struct {
	text   string
	id     token.ID
	plain  bool // matched even where text is plain
	lstrip bool // swallows the white space before it
	rstrip bool // swallows the white space that follows
	word   bool // matched only between characters that make no words
}

// fragment is a part of a text or, if id is not token.None, a special token.
type fragment struct {
	text string
	id   token.ID
}

// newSpecials returns the special tokens of a GGUF file.
func newSpecials(tokens []string, types []Type, name string) specials {
	name = strings.ToLower(name)
	phi3 := strings.Contains(name, "phi-3") || strings.Contains(name, "phi3")
	var all []special
	for i, text := range tokens {
		if text == "" || !types[i].special() {
			continue
		}
		keeps := text == "<unk>" || text == "<s>" || text == "<|endoftext|>"
		all = append(all, special{text: text, id: token.ID(i), plain: types[i] == UserDefined, rstrip: phi3 && !keeps})
	}
	return indexSpecials(all)
}

func indexSpecials(all []special) specials {
	slices.SortFunc(all, func(a, b special) int { return strings.Compare(a.text, b.text) })
	texts := make([]string, len(all))
	for i, sp := range all {
		texts[i] = sp.text
	}
	return specials{all: all, texts: newLexicon(texts)}
}

// partition cuts text at the special tokens written in it. It cuts out the longest token first, then the next longest from the
// rest, so a long token wins over a shorter one that begins before it.
func (s *specials) partition(text string, plain bool) []fragment {
	if text == "" {
		return nil
	}
	if s.leftmost {
		return s.partitionLeftmost(text, plain)
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
		if sp.rstrip {
			after = strings.TrimLeft(after, " \t\n\v\f\r")
		}
		text = after
	}
	return dst
}

// partitionLeftmost cuts text at the leftmost special token, the longest of those that begin there, and continues behind
// it.
func (s *specials) partitionLeftmost(text string, plain bool) []fragment {
	var frags []fragment
	from := 0 // what lies before was cut
	for i := 0; i < len(text); {
		at := -1
		s.texts.match(text[i:], func(k int) { at = k })
		if at < 0 {
			i++
			continue
		}
		sp, start, stop := s.all[at], i, i+len(s.all[at].text)
		i = stop
		if plain && !sp.plain || sp.word && (wordBefore(text[:start]) || wordAfter(text[stop:])) {
			continue
		}
		if sp.lstrip {
			start = max(from, len(strings.TrimRightFunc(text[:start], unicode.IsSpace)))
		}
		if sp.rstrip {
			stop = len(text) - len(strings.TrimLeftFunc(text[stop:], unicode.IsSpace))
		}
		if from < start {
			frags = append(frags, fragment{text[from:start], token.None})
		}
		frags = append(frags, fragment{"", sp.id})
		from, i = stop, stop
	}
	if from < len(text) {
		frags = append(frags, fragment{text[from:], token.None})
	}
	return frags
}

func wordBefore(text string) bool {
	r, n := utf8.DecodeLastRuneInString(text)
	return n > 0 && isWord(r)
}

func wordAfter(text string) bool {
	r, n := utf8.DecodeRuneInString(text)
	return n > 0 && isWord(r)
}

// isWord reports whether a character is of class \w: a letter, a mark, a decimal digit or a connector.
func isWord(r rune) bool {
	return r == '_' || unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc)
}

// written returns the special tokens that occur in text, in the order in which they are cut out: the longest first; of equal
// lengths, the lowest id.
func (s *specials) written(text string, plain bool) []special {
	found := map[int]bool{}
	for i := range len(text) {
		s.texts.match(text[i:], func(at int) {
			if s.all[at].plain || !plain {
				found[at] = true
			}
		})
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
