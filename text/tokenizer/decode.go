package tokenizer

import (
	"unicode/utf8"

	"grove/text/token"
)

// piece returns the bytes that a token stands for by itself. See AppendPiece.
func (t *Tokenizer) piece(id token.ID, special bool) (string, error) {
	if err := t.check(id); err != nil {
		return "", err
	}
	if t.types[id].hidden() && !special {
		return "", nil
	}
	return t.raw[id], nil
}

// pieceAfter is piece for a token that follows prev, token.None at the start of a text: the space that
// Encode put before text there is taken off again.
func (t *Tokenizer) pieceAfter(prev, id token.ID, special bool) (string, error) {
	p, err := t.piece(id, special)
	if err != nil || t.strip == stripNever || t.types[id].special() {
		return p, err
	}
	begin := prev == token.None || t.strip == stripEach && t.types[prev].special()
	if begin && p != "" && p[0] == ' ' {
		p = p[1:]
	}
	return p, nil
}

// AppendPiece appends the bytes that a token stands for by itself, which need not be UTF-8. Control and
// unknown tokens stand for nothing unless special is set, and then for their text. An id outside the
// vocabulary is an error.
func (t *Tokenizer) AppendPiece(dst []byte, id token.ID, special bool) ([]byte, error) {
	p, err := t.piece(id, special)
	return append(dst, p...), err
}

// AppendPieceAfter is AppendPiece for a token that follows prev, [token.None] at the start of a text: the space that
// Encode put before text there is left out, as Decode does it. Pieces appended so, one after the other, are what
// Decode returns.
func (t *Tokenizer) AppendPieceAfter(dst []byte, prev, id token.ID, special bool) ([]byte, error) {
	if prev != token.None {
		if err := t.check(prev); err != nil {
			return dst, err
		}
	}
	p, err := t.pieceAfter(prev, id, special)
	return append(dst, p...), err
}

// Decode returns the bytes that ids stand for, which need not be UTF-8. Control and unknown tokens are
// left out unless special is set. An id outside the vocabulary is an error.
//
// With special it reverses Encode with Options{}, but for what encoding conflates: in SentencePiece
// U+2581 with a space, and all that the unknown token stands for; in Phi-3 white space after special
// tokens. (llama.cpp takes the space prefix off at the start only, and its tidying of spaces before
// punctuation is not done here.)
func (t *Tokenizer) Decode(ids []token.ID, special bool) (string, error) {
	var buf []byte
	prev := token.None
	for _, id := range ids {
		p, err := t.pieceAfter(prev, id, special)
		if err != nil {
			return "", err
		}
		buf, prev = append(buf, p...), id
	}
	return string(buf), nil
}

// Stream decodes ids one at a time and never cuts a character: what it returns, put together, is
// string([]rune(s)) for the s that Decode gives. It is not safe for concurrent use.
type Stream struct {
	t       *Tokenizer
	prev    token.ID
	special bool
	inside  bool   // what comes next goes on with a text: its first space is its own
	held    []byte // the start of a character
}

// Stream returns a decoder of the tokens that follow prev, token.None at the start of a text. What follows the
// token of [Tokenizer.FIM] for the middle goes on with the prefix, and keeps its first space.
// Control and unknown tokens are left out unless special is set.
func (t *Tokenizer) Stream(prev token.ID, special bool) (*Stream, error) {
	if prev != token.None {
		if err := t.check(prev); err != nil {
			return nil, err
		}
	}
	inside := prev != token.None && prev == t.fim.Middle
	return &Stream{t: t, prev: prev, special: special, inside: inside, held: make([]byte, 0, 64)}, nil
}

// Next returns the text that is complete with this token. The start of a character that later tokens
// may complete is held back; bytes that can be part of none are returned as U+FFFD each. An id outside
// the vocabulary is an error and changes nothing.
func (s *Stream) Next(id token.ID) (string, error) {
	p, err := s.t.pieceAfter(s.prev, id, s.special)
	if s.inside {
		p, err = s.t.piece(id, s.special)
	}
	if err != nil {
		return "", err
	}
	s.prev, s.inside = id, false
	if len(s.held) == 0 && utf8.ValidString(p) {
		return p, nil
	}
	buf := append(s.held, p...)
	whole := len(buf)
	for i := max(0, len(buf)-utf8.UTFMax+1); i < len(buf); i++ {
		if !utf8.FullRune(buf[i:]) {
			whole = i
			break
		}
	}
	text := string([]rune(string(buf[:whole])))
	s.held = append(buf[:0], buf[whole:]...)
	return text, nil
}

// Flush returns what is held back, each byte of the unfinished character as U+FFFD.
func (s *Stream) Flush() string {
	text := string([]rune(string(s.held)))
	s.held = s.held[:0]
	return text
}
