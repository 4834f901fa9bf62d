package constrain

import (
	"unicode/utf8"

	"grove/constrain/vocab"
	"grove/internal/text/token"
)

// maxHealed is how many tokens at the end of a prompt [Vocabulary.Heal] takes back at most.
const maxHealed = 4

// Heal takes back the tokens at the end of a prompt in whose place a longer token could stand, and returns how many tokens are left and the bytes of
// those that are not: the answer must begin with them. At least one token is left.
func (v *Vocabulary) Heal(prompt []token.ID) (left int, head []byte) {
	left = len(prompt)
	var text []byte
	for n := 1; n <= maxHealed && n < len(prompt); n++ {
		at := len(prompt) - n
		id := prompt[at]
		if !v.valid(id) || v.trie.Kind(id) != vocab.Ordinary {
			break
		}
		text = append(append([]byte{}, v.piece(id, v.strips(prompt[at-1]))...), text...)
		if len(text) == 0 || !utf8.RuneStart(text[0]) {
			continue
		}
		if longer := v.beginning(text); len(longer) > 0 && len(v.trie.Bytes(longer[len(longer)-1])) > len(text) {
			left, head = at, text
		}
	}
	return left, head
}
