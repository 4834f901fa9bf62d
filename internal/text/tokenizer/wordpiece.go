package tokenizer

import (
	"fmt"
	"unicode/utf8"

	"grove/internal/text/token"
	"grove/internal/text/tokenizer/pretoken"
)

// wordPiece builds the tables of WordPiece encoding. Tokens that begin a word have U+2581 before them; tokens within a word do
// not.
func (t *Tokenizer) wordPiece(v Vocab) {
	t.pieces = make(map[string]int32, len(t.tokens))
	for i, text := range t.tokens {
		if text != "" && !t.types[i].hidden() {
			t.addPiece(t.raw[i], int32(i))
		}
	}
	t.indexPieces()
	t.encode, t.strip = t.longestPieces, stripEach
	t.normalize = []normalizer{always(
		pretoken.Bert{Clean: true, Ideographs: true, Accents: v.StripAccents, Lower: v.Lowercase}.Normalize)}
	t.stages = []pretoken.Stage{{Cut: pretoken.CutBert}}
}

// longestPieces appends the ids of a word cut into the longest pieces from the left, or the unknown token if that fails.
func (t *Tokenizer) longestPieces(dst []token.ID, word string, _ *scratch) ([]token.ID, error) {
	n := len(dst)
	if t.chop > 0 && utf8.RuneCountInString(word) > t.chop {
		return t.appendUnknownWord(dst, word)
	}
	for rest := " " + word; rest != ""; {
		at := -1
		t.lexicon.match(rest, func(k int) { at = k })
		if at < 0 {
			return t.appendUnknownWord(dst[:n], word)
		}
		dst = append(dst, token.ID(t.lexiconPieces[at]))
		rest = rest[len(t.lexicon.texts[at]):]
	}
	return dst, nil
}

func (t *Tokenizer) appendUnknownWord(dst []token.ID, word string) ([]token.ID, error) {
	if t.unk == token.None {
		return dst, fmt.Errorf("tokenizer: the vocabulary has no tokens for %.40q and no unknown token", word)
	}
	return append(dst, t.unk), nil
}
