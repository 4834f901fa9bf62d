package vocab

import (
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
)

// FromTokenizer returns the vocabulary of a tokenizer, for logits of size tokens, or of the tokenizer's size where that is
// larger. Tokens that end an answer are [End]; control tokens are [Special]; ids that the tokenizer lacks, unknown and unused
// tokens are never allowed. Errors: those of [New].
func FromTokenizer(t *tokenizer.Tokenizer, size int) (*Vocabulary, error) {
	size = max(size, t.Size())
	tokens := make([]Token, 0, t.Size())
	for i := range t.Size() {
		id := token.ID(i)
		text, err := t.AppendPiece(nil, id, false)
		if err != nil {
			return nil, err
		}
		k := Token{ID: id, Bytes: text, Kind: Ordinary}
		switch ty := t.Type(id); {
		case t.IsEOG(id) || id == t.EOS():
			k = Token{ID: id, Kind: End}
		case ty == tokenizer.Control:
			k = Token{ID: id, Kind: Special}
		case ty == tokenizer.Unknown || ty == tokenizer.Unused:
			k = Token{ID: id, Kind: Unused}
		}
		tokens = append(tokens, k)
	}
	return New(tokens, size)
}
