package tokenizer

import (
	"strings"
	"unicode/utf8"

	"grove/text/token"
	"grove/text/tokenizer/pretoken"
)

// Encode appends the ids of text to dst. Special tokens written in the text are parsed, the longest first, unless o.Plain is set;
// user-defined tokens are always parsed.
//
// Text need not be UTF-8: bytes that are not UTF-8 stay as they are (llama.cpp replaces them by U+FFFD in byte-level
// vocabularies). Errors: a byte without a token in a byte-level vocabulary (llama.cpp drops it); dst then has the ids before
// the error.
func (t *Tokenizer) Encode(dst []token.ID, text string, o Options) ([]token.ID, error) {
	s := t.scratch.Get().(*scratch)
	defer t.release(s)
	if o.Special {
		dst = append(dst, t.begin...)
	}
	first := true
	frags, err := t.fragments(text, o)
	if err != nil {
		return dst, err
	}
	for _, f := range frags {
		if f.id != token.None {
			dst = append(dst, f.id)
		} else {
			if dst, err = t.appendText(dst, f.text, first, o, s); err != nil {
				return dst, err
			}
		}
		first = false
	}
	if o.Special {
		dst = append(dst, t.end...)
	}
	return dst, nil
}

// appendText appends the ids of text between special tokens.
func (t *Tokenizer) appendText(dst []token.ID, text string, first bool, o Options, s *scratch) ([]token.ID, error) {
	spaces := -1 // before the text, where it may get no more
	if o.Inside && first && t.strip != stripNever {
		spaces = leadingSpaces(text)
	}
	for _, normalize := range t.normalize {
		text = normalize(text, first)
	}
	if t.inner.all == nil && t.spaced == nil {
		return t.appendWords(dst, withoutPrefix(text, spaces), t.stages, s)
	}
	for _, f := range t.inner.partition(text, o.Plain || len(o.Literal) > 0) {
		if f.id != token.None {
			dst, first = append(dst, f.id), false
			continue
		}
		if t.spaced != nil {
			f.text = t.spaced(f.text, first)
		}
		if first {
			f.text = withoutPrefix(f.text, spaces)
		}
		var err error
		if dst, err = t.appendWords(dst, f.text, t.stages, s); err != nil {
			return dst, err
		}
		first = false
	}
	return dst, nil
}

// leadingSpaces counts the spaces at the start of text, in either spelling.
func leadingSpaces(text string) (n int) {
	for {
		rest, ok := strings.CutPrefix(text, " ")
		if !ok {
			rest, ok = strings.CutPrefix(text, space)
		}
		if !ok {
			return n
		}
		text, n = rest, n+1
	}
}

// withoutPrefix removes the space that normalising put before a text with so many leading spaces; -1: it keeps it.
func withoutPrefix(text string, spaces int) string {
	if spaces >= 0 && leadingSpaces(text) > spaces {
		_, n := utf8.DecodeRuneInString(text)
		return text[n:]
	}
	return text
}

// appendWords cuts text into words by the stages and appends their ids.
func (t *Tokenizer) appendWords(dst []token.ID, text string, stages []pretoken.Stage, s *scratch) (_ []token.ID, err error) {
	if len(stages) == 0 {
		return t.appendWord(dst, text, s)
	}
	if re := stages[0].Re; re != nil {
		err = re.Split(text, func(piece string) (err error) {
			dst, err = t.appendWords(dst, piece, stages[1:], s)
			return err
		})
		return dst, err
	}
	for text != "" && err == nil {
		n := stages[0].Cut(text)
		if n < 0 {
			text = text[-n:]
			continue
		}
		dst, err = t.appendWords(dst, text[:n], stages[1:], s)
		text = text[n:]
	}
	return dst, err
}

// maxKept bounds the memory that is kept between encodings, in symbols.
const maxKept = 1 << 14

func (t *Tokenizer) release(s *scratch) {
	if cap(s.symbols) > maxKept || cap(s.queue) > maxKept || cap(s.steps) > maxKept {
		s.symbols, s.queue, s.steps = nil, nil, nil
	}
	t.scratch.Put(s)
}
