package tokenizer_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
)

// TestEncodePair: the tokens around two texts are those of BERT, of XLM-RoBERTa, and of a file's text for pairs, in which special tokens of the texts
// are plain.
func TestEncodePair(t *testing.T) {
	bert := tokenizer.Vocab{
		Model: "bert", Tokens: []string{"[CLS]", "[SEP]", "[UNK]", "▁a", "▁b"}, Types: []int{3, 3, 2, 1, 1}, BOS: 0, SEP: 1, UNK: 2,
		EOS: token.None, EOT: token.None, EOM: token.None, FIM: tokenizer.NoFIM, AddBOS: true, AddEOS: true, Lowercase: true,
	}
	xlmr := tokenizer.Vocab{
		Model: "t5", Tokens: []string{"<s>", "</s>", "<unk>", "▁a", "▁b", "▁", "<", "s", ">", "{", "query", "}"}, Types: []int{3, 3, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1},
		Scores: make([]float32, 12), BOS: 0, EOS: 1, SEP: 1, UNK: 2, EOT: token.None, EOM: token.None, FIM: tokenizer.NoFIM, AddBOS: true, AddEOS: true,
		AddSEP: true, AddSpacePrefix: true,
	}
	for _, c := range []struct {
		name, query, document, form string
		v                           tokenizer.Vocab
		want                        []token.ID
	}{
		{"BERT", "a", "B a", "", bert, []token.ID{0, 3, 1, 4, 3, 1}},
		{"XLM-R", "a", "b a", "", xlmr, []token.ID{0, 3, 1, 1, 4, 3, 1}},
		{"special tokens in texts", "<s>", "b", "", xlmr, []token.ID{0, 5, 6, 7, 8, 1, 1, 4, 1}},
		{"empty texts", "", "", "", xlmr, []token.ID{0, 1, 1, 1}},
		{"a form", "a", "<s>", "<s>{document}</s>{query}<s>", xlmr, []token.ID{0, 5, 6, 7, 8, 1, 3, 0}},
		{"a place in a text", "{query}", "b", "{query}{document}", xlmr, []token.ID{5, 9, 10, 11, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tok, err := tokenizer.New(c.v)
			if err != nil {
				t.Fatal(err)
			}
			got, err := tok.EncodePair(c.query, c.document, c.form, func(int) error { return nil })
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%v, %v; want %v", got, err, c.want)
			}
		})
	}
	tok, err := tokenizer.New(xlmr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tok.EncodePair("a", "b", "{document}", nil); err == nil || !strings.Contains(err.Error(), "has no {query}") {
		t.Errorf("a form without a place: %v", err)
	}
	stop := errors.New("stop")
	if _, err := tok.EncodePair("a", "b", "", func(int) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("work that was to end: %v", err)
	}
	xlmr.SEP = token.None
	if _, err := tokenizer.New(xlmr); err == nil || !strings.Contains(err.Error(), "a separator is to be added") {
		t.Errorf("no separator: %v", err)
	}
}
