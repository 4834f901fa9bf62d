package constrain

import (
	"fmt"
	"strings"
	"testing"

	"grove/constrain/vocab"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
)

// pieces are the tokens of the test vocabularies behind the bytes: several of them end inside a word, a character or a pair of signs.
var pieces = []string{
	" ", "a", "b", "c", "ab", "abc", " a", " ab", " abc", "bc", "c\"", "\":", "\"", "or", "ord", "orde", "order", "orderId", "orderName", "Id", "Name",
	" order", "{", "{\"", "}", "\"}", "1", "12", "\n", "\n\n", "  ", "é", "e\u0301", "na", "nam", "name", "_o", "_of", "name_of", "_t", "_th", "_the", "name_of_the",
	"_p", "_pe", "_per", "_pers", "_perso", "_person", "name_of_the_person", "\",", " {",
	"call", "f", "i", "fi", "n", "fin", "fina", "final", ">", ">a", ">x",
}

// The special tokens of the test vocabularies.
const (
	bos token.ID = iota
	eos
	think
	unthink
	tool
	channel
	message
	padding
	firstByte
)

// textOf returns the tokenizer of the test vocabulary: SentencePiece, or byte-level pairs.
func textOf(t testing.TB, spm bool) *tokenizer.Tokenizer {
	t.Helper()
	v := tokenizer.Vocab{
		Model: "llama", BOS: bos, EOS: eos, EOT: token.None, EOM: token.None, UNK: token.None, SEP: token.None, FIM: tokenizer.NoFIM, AddSpacePrefix: spm,
	}
	add := func(text string, kind tokenizer.Type, score float32) {
		v.Tokens, v.Types, v.Scores = append(v.Tokens, text), append(v.Types, int(kind)), append(v.Scores, score)
	}
	for _, s := range []string{"<s>", "</s>", "<think>", "</think>", "<tool>", "<|channel|>", "<|message|>"} {
		add(s, tokenizer.Control, 0)
	}
	add("<pad>", tokenizer.Unused, 0)
	for b := range 256 {
		add(fmt.Sprintf("<0x%02X>", b), tokenizer.Byte, 0)
	}
	for i, p := range pieces { // some of them have the bytes of a byte token
		add(strings.ReplaceAll(p, " ", "▁"), tokenizer.Normal, -float32(i))
	}
	tok, err := tokenizer.New(v)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// words makes the test vocabulary with three ids more than the tokenizer has.
func words(t testing.TB, spm bool) *Vocabulary {
	t.Helper()
	tok := textOf(t, spm)
	v, err := NewVocabulary(tok, tok.Size()+3, sample.Thinking{Budget: -1, Begin: []token.ID{think}, End: []token.ID{unthink}})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// inChannels makes the test vocabulary of a model that writes in channels.
func inChannels(t testing.TB) *Vocabulary {
	t.Helper()
	tok := textOf(t, false)
	v, err := NewVocabulary(tok, tok.Size(), sample.Thinking{Budget: -1, Begin: []token.ID{channel, firstByte + 'a', message}, End: []token.ID{unthink}})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// id returns the first token with some bytes.
func (v *Vocabulary) id(t testing.TB, text string) token.ID {
	t.Helper()
	for _, id := range v.beginning([]byte(text)) {
		if string(v.trie.Bytes(id)) == text {
			return id
		}
	}
	t.Fatalf("no token is %q", text)
	return token.None
}

// textBehind returns the text of tokens behind a prompt, as an answer's text is made. Control tokens are spelled.
func (v *Vocabulary) textBehind(prev token.ID, ids []token.ID) string {
	var b []byte
	for _, id := range ids {
		if v.trie.Kind(id) == vocab.Special {
			b = append(b, vocab.Spelling(id)...)
		} else if v.valid(id) && int(id) < v.text.Size() {
			b, _ = v.text.AppendPieceAfter(b, prev, id, false)
		}
		prev = id
	}
	return string(b)
}

// tokenOf returns how far a byte's token is from the first byte's.
func tokenOf(b rune) token.ID { return token.ID(b) }
