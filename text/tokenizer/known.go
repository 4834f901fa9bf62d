package tokenizer

import (
	"errors"
	"slices"

	"grove/text/token"
)

// eogTexts are the texts of tokens that end an answer in every vocabulary.
var eogTexts = []string{
	"<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<end_of_turn>",
	"<|endoftext|>", "<|end_of_text|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<end_of_utterance>", "<｜end▁of▁sentence｜>",
	"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<|file_sep|>",
}

// fimTexts are the texts of the tokens before the prefix, the suffix and the middle in fill-in-the-middle prompts, and before the
// names of a repository and a file, in every vocabulary.
var fimTexts = [5][]string{
	{"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>", "<|prefix|>"},
	{"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>", "<|suffix|>"},
	{"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>", "<|middle|>"},
	{"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<reponame>", "<REPO>"},
	{"<|file_sep|>"},
}

// findEOG lists the tokens that end an answer. Tokens with a text of eogTexts become control tokens, whatever their type in the
// file.
func (t *Tokenizer) findEOG(v Vocab) {
	_, returns := t.ids["<|return|>"]
	_, calls := t.ids["<|call|>"]
	harmony := returns && calls // the vocabulary is that of gpt-oss, in which <|end|> ends a message and not the answer
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
		if !slices.Contains(t.eog, id) && !(harmony && text == "<|end|>") {
			t.eog = append(t.eog, id)
		}
	}
}

// findFIM finds the fill-in-the-middle tokens. Tokens with a text of fimTexts become control tokens, whatever their type in the
// file.
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

// ErrNoFIM reports a vocabulary without fill-in-the-middle tokens.
var ErrNoFIM = errors.New("tokenizer: the vocabulary names no tokens for a prefix, a suffix and the middle that is to be filled in")

// EncodeFIM appends the ids of a fill-in-the-middle prompt: the begin token if the file asks for one, the files if there are any,
// the prefix and the suffix, each behind its token, and the token of the middle. A model continues with the middle. Special
// tokens written in the parts are plain text. part is [Options.Part]. Errors: ErrNoFIM, and those of [Tokenizer.Encode].
func (t *Tokenizer) EncodeFIM(dst []token.ID, prefix, suffix string, part func([]token.ID) error, files ...File) ([]token.ID, error) {
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
		if dst, err = t.Encode(dst, p.text, Options{Plain: true, Part: part}); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// File is another file of a fill-in-the-middle prompt.
type File struct{ Name, Text string }

// fimPart is a token, if the vocabulary has it, and the text behind it.
type fimPart struct {
	id   token.ID
	text string
}

// fileParts returns the parts before the prefix of a prompt with files, as llama.cpp has them: the pattern of Qwen's coders with
// fixed names of the repository and the file, or texts with a line between them if the vocabulary has no token for files.
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

// FIM returns the fill-in-the-middle tokens. ok is false if the vocabulary lacks that of the prefix, the suffix or the middle.
func (t *Tokenizer) FIM() (prefix, suffix, middle token.ID, ok bool) {
	f := t.fim
	return f.Prefix, f.Suffix, f.Middle, f.Prefix != token.None && f.Suffix != token.None && f.Middle != token.None
}
