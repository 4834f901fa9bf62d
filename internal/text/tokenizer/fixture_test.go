package tokenizer

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"grove/internal/text/token"
)

// shared returns the path of a file of the shared reference data, or skips the test where it is
// missing. Where CI is set and there is shared data, a missing file is a failure.
func shared(t testing.TB, name string) string {
	t.Helper()
	root := filepath.Join("../../../../shared")
	path := filepath.Join(root, filepath.FromSlash(name))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if _, err := os.Stat(root); err == nil && os.Getenv("CI") != "" {
		t.Fatalf("../shared/%s is missing", name)
	}
	t.Skipf("needs ../shared/%s: not there", name)
	return ""
}

// written returns how byte-level vocabularies write bytes.
func written(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		b.WriteRune(rune(slices.Index(alphabet[:], int16(c))))
	}
	return b.String()
}

// smallBPE is a byte-level vocabulary: id b is byte b, then what the merges give, then special tokens.
func smallBPE() Vocab {
	v := Vocab{Model: "gpt2", Pre: "gpt-2", EOT: token.None, EOM: token.None, UNK: token.None, SEP: token.None, FIM: NoFIM}
	for b := range 256 {
		v.Tokens = append(v.Tokens, written(string([]byte{byte(b)})))
	}
	for _, m := range []string{
		"h e", "l l", "he ll", "hell o", "  t", " t he", "1 2", "a a", "aa aa", "\xe2\x82 \xac", "\xe2 \x82",
	} {
		// The last space divides; one before it is a space of the text.
		i := strings.LastIndex(m, " ")
		l, r := m[:i], m[i+1:]
		v.Tokens = append(v.Tokens, written(l+r))
		v.Merges = append(v.Merges, written(l)+" "+written(r))
	}
	v.Types = slices.Repeat([]int{int(Normal)}, len(v.Tokens))
	v.BOS = v.add("<s>", Control)
	v.EOS = v.add("</s>", Control)
	v.add("<|im_end|>", Normal)
	v.add("<tool>", UserDefined)
	v.add("<tool", UserDefined)
	v.add("<s><s>", Control)
	v.AddBOS, v.AddEOS = true, true
	return v
}

// smallSPM is a SentencePiece vocabulary with all bytes and a few pieces.
func smallSPM() Vocab {
	v := Vocab{
		Model: "llama", EOT: token.None, EOM: token.None, SEP: token.None, FIM: NoFIM,
		AddBOS: true, AddSpacePrefix: true, Types: []int{}, Scores: []float32{},
	}
	v.UNK = v.add("<unk>", Unknown)
	v.BOS = v.add("<s>", Control)
	v.EOS = v.add("</s>", Control)
	for b := range 256 {
		v.add(fmt.Sprintf("<0x%02X>", b), Byte)
	}
	for i, s := range []string{"▁t", "he", "▁the", "in", "aa", "aaaa", "▁▁", "▁a", "▁he", "ll", "hell", "▁hell", "é"} {
		v.Scores[v.add(s, Normal)] = -float32(i)
	}
	for _, s := range "▁thealino" {
		v.Scores[v.add(string(s), Normal)] = -100
	}
	v.add("<tool>", UserDefined)
	return v
}

// add appends a token to a vocabulary that has types.
func (v *Vocab) add(text string, ty Type) token.ID {
	v.Tokens = append(v.Tokens, text)
	v.Types = append(v.Types, int(ty))
	if v.Scores != nil {
		v.Scores = append(v.Scores, 0)
	}
	return token.ID(len(v.Tokens) - 1)
}

func must(t testing.TB, v Vocab) *Tokenizer {
	t.Helper()
	k, err := New(v)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// texts writes ids as the texts of their tokens, with a space between.
func (t *Tokenizer) texts(ids []token.ID) string {
	var s []string
	for _, id := range ids {
		s = append(s, t.Text(id))
	}
	return strings.Join(s, " ")
}
