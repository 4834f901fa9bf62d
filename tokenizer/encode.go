package tokenizer

import (
	"strings"

	"grove/token"
)

// Encode appends the ids of text to dst. Special tokens that are written in the text are parsed, the
// longest first, unless o.Plain; user-defined ones always are.
//
// Text need not be UTF-8: bytes that are not stay as they are (llama.cpp replaces them by U+FFFD in
// byte-level vocabularies). A byte for which a byte-level vocabulary has no token is an error (llama.cpp
// drops it). dst is returned as far as it got.
func (t *Tokenizer) Encode(dst []token.ID, text string, o Options) ([]token.ID, error) {
	s := t.scratch.Get().(*scratch)
	defer t.release(s)
	if o.Special && t.addBOS {
		dst = append(dst, t.bos)
	}
	begin := true // of the text, or after a special token
	frags, err := t.fragments(text, o)
	if err != nil {
		return dst, err
	}
	for _, f := range frags {
		if f.id != token.None {
			dst, begin = append(dst, f.id), true
			continue
		}
		if dst, err = t.appendText(dst, f.text, begin, s); err != nil {
			return dst, err
		}
		begin = false
	}
	if o.Special && t.addEOS {
		dst = append(dst, t.eos)
	}
	return dst, nil
}

// appendText appends the ids of text without special tokens.
func (t *Tokenizer) appendText(dst []token.ID, text string, begin bool, s *scratch) ([]token.ID, error) {
	if t.sp {
		text = strings.ReplaceAll(text, space, " ")
		if begin && t.spacePrefix {
			text = " " + text
		}
	}
	var err error
	for text != "" && err == nil {
		n := t.cut(text)
		dst, err = t.appendWord(dst, text[:n], s)
		text = text[n:]
	}
	return dst, err
}

// maxKept bounds the merging memory that is kept between encodings, in symbols.
const maxKept = 1 << 14

func (t *Tokenizer) release(s *scratch) {
	if cap(s.symbols) > maxKept || cap(s.queue) > maxKept {
		s.symbols, s.queue = nil, nil
	}
	t.scratch.Put(s)
}
