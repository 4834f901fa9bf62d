package tokenizer

import (
	"unicode/utf8"

	"grove/internal/text/token"
)

// piece returns the bytes of a token. An unused one, such as a row of the embedding without a token, has none, as in llama.cpp. See AppendPiece.
func (t *Tokenizer) piece(id token.ID, special bool) (string, error) {
	if err := t.check(id); err != nil {
		return "", err
	}
	if t.types[id] == Unused || t.types[id].hidden() && !special {
		return "", nil
	}
	return t.raw[id], nil
}

// pieceAfter is piece for a token that follows prev, or token.None at the start of a text. It removes the space that Encode
// puts before a text there.
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

// AppendPiece appends the bytes of a token, which need not be UTF-8. Control and unknown tokens have no bytes unless special is
// set; then their bytes are their text. Errors: an id outside the vocabulary.
func (t *Tokenizer) AppendPiece(dst []byte, id token.ID, special bool) ([]byte, error) {
	p, err := t.piece(id, special)
	return append(dst, p...), err
}

// AppendPieceAfter is AppendPiece for a token that follows prev, or [token.None] at the start of a text. It leaves out the space
// that Encode puts before a text there. The pieces of a text, appended in order, equal the result of Decode.
func (t *Tokenizer) AppendPieceAfter(dst []byte, prev, id token.ID, special bool) ([]byte, error) {
	if prev != token.None {
		if err := t.check(prev); err != nil {
			return dst, err
		}
	}
	p, err := t.pieceAfter(prev, id, special)
	return append(dst, p...), err
}

// Decode returns the bytes of ids, which need not be UTF-8. It leaves out control and unknown tokens unless special is set.
// Errors: an id outside the vocabulary.
//
// With special it reverses Encode with Options{}, except where encoding loses a difference: between U+2581 and a space, and
// between unknown characters, in SentencePiece; white space after special tokens in Phi-3. (llama.cpp removes the space
// prefix at the start only. It also removes spaces before punctuation; Decode does not.)
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

// Stream decodes ids one at a time and never cuts a character: its results, joined, are string([]rune(s)) for the s that Decode
// returns. It is not safe for concurrent use.
type Stream struct {
	t       *Tokenizer
	prev    token.ID
	special bool
	inside  bool   // what comes next goes on with a text: its first space is its own
	held    []byte // the start of a character
}

// Stream returns a decoder of the tokens that follow prev, or token.None at the start of a text. Text behind the middle token of
// [Tokenizer.FIM] continues the prefix and keeps its first space. Control and unknown tokens are left out unless special is
// set.
func (t *Tokenizer) Stream(prev token.ID, special bool) (*Stream, error) {
	if prev != token.None {
		if err := t.check(prev); err != nil {
			return nil, err
		}
	}
	inside := prev != token.None && prev == t.fim.Middle
	return &Stream{t: t, prev: prev, special: special, inside: inside, held: make([]byte, 0, 64)}, nil
}

// Next returns the text that this token completes. It holds back the start of a character that later tokens may complete. Each
// byte that cannot be part of a character becomes U+FFFD. Errors: an id outside the vocabulary, which changes nothing.
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

// Flush returns the text that is held back: U+FFFD for each byte of the unfinished character.
func (s *Stream) Flush() string {
	text := string([]rune(string(s.held)))
	s.held = s.held[:0]
	return text
}
