package tokenizer

import (
	"strings"
	"unicode/utf8"

	"grove/internal/text/token"
	"grove/internal/text/tokenizer/pretoken"
)

// Encode appends the ids of text to dst. Special tokens written in the text are parsed, the longest first, unless o.Plain is set;
// user-defined tokens are always parsed.
//
// Text need not be UTF-8: bytes that are not UTF-8 stay as they are (llama.cpp replaces them by U+FFFD in byte-level
// vocabularies). Errors: a byte without a token in a byte-level vocabulary (llama.cpp drops it); dst then has the ids before
// the error.
func (t *Tokenizer) Encode(dst []token.ID, text string, o Options) ([]token.ID, error) {
	s := t.scratch.Get().(*scratch)
	s.part = o.Part
	defer t.release(s)
	begin, end := t.Around(o.Mode)
	if o.Special {
		dst = append(dst, begin...)
	}
	first := true
	err := t.fragments(text, o, s, func(f fragment) (err error) {
		if f.id != token.None {
			dst, err = s.flush(append(dst, f.id), 1)
		} else {
			dst, err = t.appendText(dst, f.text, first, o, s)
		}
		first = false
		return err
	})
	if err != nil {
		return dst, err
	}
	if o.Special {
		dst = append(dst, end...)
	}
	if o.Part != nil {
		err, dst = o.Part(dst), dst[:0]
	}
	return dst, err
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
	err := t.inner.partition(text, o.Plain || len(o.Literal) > 0, s, func(f fragment) (err error) {
		if f.id != token.None {
			dst, err = s.flush(append(dst, f.id), 1)
			first = false
			return err
		}
		if t.spaced != nil {
			f.text = t.spaced(f.text, first)
		}
		if first {
			f.text = withoutPrefix(f.text, spaces)
		}
		dst, err = t.appendWords(dst, f.text, t.stages, s)
		first = false
		return err
	})
	return dst, err
}

// leadingSpaces counts the spaces at the start of text, in either spelling.
func leadingSpaces(text string) int {
	return utf8.RuneCountInString(text[:len(text)-len(strings.TrimLeft(text, " "+space))])
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

// maxKept bounds the memory that is kept between encodings, in merges and steps.
const maxKept = 1 << 14

func (t *Tokenizer) release(s *scratch) {
	if cap(s.queue) > maxKept || cap(s.steps) > maxKept {
		s.queue, s.starts, s.steps = nil, nil, nil
	}
	s.part = nil
	t.scratch.Put(s)
}

// Between two calls of [Options.Part] lie about as many bytes of text, and at most that many ids and those of one word.
const (
	partBytes = 1 << 14
	partIDs   = 1 << 12
)

// check counts n bytes of text that were read, and asks now and then whether the encoding shall go on.
func (s *scratch) check(n int) error {
	if s.read += n; s.read < partBytes || s.part == nil {
		return nil
	}
	s.read = 0
	return s.part(nil)
}

// flush is check, and hands ids over when they are many. It returns those that are left.
func (s *scratch) flush(dst []token.ID, n int) ([]token.ID, error) {
	if err := s.check(n); err != nil || s.part == nil || len(dst) < partIDs {
		return dst, err
	}
	return dst[:0], s.part(dst)
}

// flushWithin is flush within a word whose ids begin at dst[from]. It keeps the last id, which an unknown token may join.
func (s *scratch) flushWithin(dst []token.ID, from, n int) ([]token.ID, int, error) {
	if err := s.check(n); err != nil || s.part == nil || len(dst) < partIDs {
		return dst, from, err
	}
	last := len(dst) - 1
	err := s.part(dst[:last])
	return append(dst[:0], dst[last]), 0, err
}
