package tokenizer

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"grove/internal/text/token"
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

// partition cuts text at the special tokens written in it and calls found with the fragments, in order. It cuts out the longest
// token first, then the next longest from the rest, so a long token wins over a shorter one that begins before it. Tokens that do not
// overlap change nothing for each other: those that do are looked at together.
func (s *specials) partition(text string, plain bool, w *scratch, found func(fragment) error) error {
	c := cutter{text: text, found: found}
	if s.leftmost {
		return c.end(s.partitionLeftmost(&c, plain, w))
	}
	var (
		from, to int
		written  []special
		err      error
	)
	for to < len(text) && err == nil {
		if from, to, written, err = s.cluster(text, to, plain, w); err == nil {
			err = c.cut(from, to, written)
		}
	}
	return c.end(err)
}

// cluster returns the first part of text from i on in which special tokens overlap each other, and these in the order in which they
// are cut out: the longest first; of equal lengths, the lowest id. White space that a token swallows belongs to it.
func (s *specials) cluster(text string, i int, plain bool, w *scratch) (from, to int, written []special, err error) {
	from, to = len(text), len(text)
	for ; i < to && err == nil; i++ {
		s.texts.match(text[i:], func(at int) {
			sp := s.all[at]
			if plain && !sp.plain {
				return
			}
			if written == nil {
				from, to = i, i
			}
			stop := i + len(sp.text)
			if sp.rstrip {
				stop = len(text) - len(strings.TrimLeft(text[stop:], swallowed))
			}
			if to = max(to, stop); !slices.Contains(written, sp) {
				written = append(written, sp)
			}
		})
		err = w.check(1)
	}
	slices.SortFunc(written, func(a, b special) int {
		return cmp.Or(len(b.text)-len(a.text), int(a.id-b.id))
	})
	return from, to, written, err
}

// swallowed are the characters that go behind a token of Phi-3.
const swallowed = " \t\n\v\f\r"

// cutter cuts special tokens out of a text and passes the fragments on.
type cutter struct {
	text  string
	from  int // text before is passed on
	found func(fragment) error
}

// token passes on the text before a special token, and the token: text[start:stop], with the white space that it swallows.
func (c *cutter) token(id token.ID, start, stop int) (err error) {
	if c.from < start {
		err = c.found(fragment{c.text[c.from:start], token.None})
	}
	if c.from = stop; err == nil {
		err = c.found(fragment{"", id})
	}
	return err
}

// end passes on the rest of the text, unless there was an error.
func (c *cutter) end(err error) error {
	if err == nil && c.from < len(c.text) {
		err = c.found(fragment{c.text[c.from:], token.None})
	}
	return err
}

// cut cuts the tokens out of text[from:to], each from what those before it leave.
func (c *cutter) cut(from, to int, tokens []special) error {
	if len(tokens) == 0 {
		return nil
	}
	sp := tokens[0]
	for {
		start, stop := to, to
		if n := strings.Index(c.text[from:to], sp.text); n >= 0 {
			start = from + n
			stop = start + len(sp.text)
		}
		if err := c.cut(from, start, tokens[1:]); err != nil || start == to {
			return err
		}
		if from = stop; sp.rstrip {
			from = to - len(strings.TrimLeft(c.text[from:to], swallowed))
		}
		if err := c.token(sp.id, start, from); err != nil {
			return err
		}
	}
}

// partitionLeftmost cuts text at the leftmost special token, the longest of those that begin there, and continues behind
// it.
func (s *specials) partitionLeftmost(c *cutter, plain bool, w *scratch) error {
	text := c.text
	for i := 0; i < len(text); {
		at := -1
		s.texts.match(text[i:], func(k int) { at = k })
		if at < 0 {
			i++
			if err := w.check(1); err != nil {
				return err
			}
			continue
		}
		sp, start, stop := s.all[at], i, i+len(s.all[at].text)
		i = stop
		before, _ := utf8.DecodeLastRuneInString(text[:start])
		after, _ := utf8.DecodeRuneInString(text[stop:])
		if plain && !sp.plain || sp.word && (isWord(before) || isWord(after)) {
			continue
		}
		if sp.lstrip {
			start = max(c.from, len(strings.TrimRightFunc(text[:start], unicode.IsSpace)))
		}
		if sp.rstrip {
			stop = len(text) - len(strings.TrimLeftFunc(text[stop:], unicode.IsSpace))
		}
		if err := c.token(sp.id, start, stop); err != nil {
			return err
		}
		i = stop
	}
	return nil
}

// isWord reports whether a character is of class \w: a letter, a mark, a decimal digit or a connector.
func isWord(r rune) bool {
	return r == '_' || unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc)
}
