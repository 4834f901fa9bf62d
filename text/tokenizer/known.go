package tokenizer

import (
	"errors"
	"slices"

	"grove/text/token"
)

// eogTexts are the tokens that end an answer in every vocabulary that has them.
var eogTexts = []string{
	"<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<end_of_turn>",
	"<|endoftext|>", "<|end_of_text|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<end_of_utterance>", "<｜end▁of▁sentence｜>",
	"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<|file_sep|>",
}

// fimTexts are the tokens that go before the prefix, the suffix and the middle of a text that is to be
// filled in, a repository's name and a file's, in every vocabulary that has them.
var fimTexts = [5][]string{
	{"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>", "<|prefix|>"},
	{"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>", "<|suffix|>"},
	{"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>", "<|middle|>"},
	{"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<reponame>", "<REPO>"},
	{"<|file_sep|>"},
}

// findEOG lists the tokens that end an answer. Those known by their text are control tokens whatever
// type the file gives them.
func (t *Tokenizer) findEOG(v Vocab) {
	for _, id := range []token.ID{v.EOS, v.EOT, v.EOM} {
		if id != token.None && !slices.Contains(t.eog, id) {
			t.eog = append(t.eog, id)
		}
	}
	for _, text := range eogTexts {
		id, ok := t.ids[text]
		if !ok {
			continue
		}
		t.types[id] = Control
		if text == "<|end|>" && t.harmony() {
			continue
		}
		if !slices.Contains(t.eog, id) {
			t.eog = append(t.eog, id)
		}
	}
}

// harmony tells whether the vocabulary is that of gpt-oss, where <|end|> ends a message of an answer
// that goes on.
func (t *Tokenizer) harmony() bool {
	_, returns := t.ids["<|return|>"]
	_, calls := t.ids["<|call|>"]
	return returns && calls
}

// findFIM finds the tokens for filling in. Those known by their text are control tokens whatever type
// the file gives them.
func (t *Tokenizer) findFIM(v Vocab) {
	t.fim = v.FIM
	for i, id := range []*token.ID{&t.fim.Prefix, &t.fim.Suffix, &t.fim.Middle, &t.fim.Repository, &t.fim.File} {
		for _, text := range fimTexts[i] {
			if known, ok := t.ids[text]; ok && *id == token.None {
				*id = known
				t.types[known] = Control
			}
		}
	}
}

// ErrNoFIM is the error for a vocabulary without tokens for filling in.
var ErrNoFIM = errors.New("tokenizer: the vocabulary names no tokens for a prefix, a suffix and the middle that is to be filled in")

// EncodeFIM appends the ids of a text whose middle is to be filled in, so that a model goes on with that:
// prefix, suffix and the token of the middle, each part behind its token, all behind the begin token if the
// file asks for one, and behind the files, if there are any. Special tokens that are written in the parts are plain
// text. Errors: ErrNoFIM, and those of [Tokenizer.Encode].
func (t *Tokenizer) EncodeFIM(dst []token.ID, prefix, suffix string, files ...File) ([]token.ID, error) {
	pre, suf, mid, ok := t.FIM()
	if !ok {
		return dst, ErrNoFIM
	}
	parts := append(t.fileParts(files), fimPart{pre, prefix}, fimPart{suf, suffix}, fimPart{mid, ""})
	dst = append(dst, t.begin...)
	for _, p := range parts {
		if p.id != token.None {
			dst = append(dst, p.id)
		}
		var err error
		if dst, err = t.Encode(dst, p.text, Options{Plain: true}); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// File is a file beside the one whose middle is to be filled in.
type File struct{ Name, Text string }

// fimPart is a token, if the vocabulary has it, and the text behind it.
type fimPart struct {
	id   token.ID
	text string
}

// fileParts returns what goes before the prefix of a text that has files beside it, as llama.cpp has it: the pattern of
// Qwen's coders, whose repository and file are called something, or texts with a line between them where the
// vocabulary has no token for a file.
func (t *Tokenizer) fileParts(files []File) (parts []fimPart) {
	if len(files) == 0 {
		return nil
	}
	if t.fim.File == token.None {
		for _, f := range files {
			parts = append(parts, fimPart{token.None, "\n\n--- snippet ---\n\n" + f.Text})
		}
		return parts
	}
	if t.fim.Repository != token.None {
		parts = append(parts, fimPart{t.fim.Repository, "myproject\n"})
	}
	for _, f := range files {
		parts = append(parts, fimPart{t.fim.File, f.Name + "\n" + f.Text})
	}
	return append(parts, fimPart{t.fim.File, "filename\n"})
}

// FIM returns the tokens that go before the prefix, the suffix and the middle of a text whose middle is
// to be filled in. ok is false where the vocabulary lacks one of them.
func (t *Tokenizer) FIM() (prefix, suffix, middle token.ID, ok bool) {
	f := t.fim
	return f.Prefix, f.Suffix, f.Middle, f.Prefix != token.None && f.Suffix != token.None && f.Middle != token.None
}
