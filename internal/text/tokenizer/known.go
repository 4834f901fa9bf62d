package tokenizer

import (
	"slices"

	"grove/internal/text/token"
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

// modeTexts are the texts of the tokens that stand for modes of reading.
var modeTexts = [...]string{Continue: "<decoder-only>", Represent: "<encoder-only>", Answer: "<encoder-decoder>"}

// gapTexts are sets of texts of tokens for gaps, which become control tokens where the vocabulary has the whole set: those of CodeGen 2 and of UniXcoder.
var gapTexts = [][]string{{"<mask_1>", "<sep>", "<eom>"}, append([]string{"<mask0>"}, modeTexts[:]...)}

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

// findModes finds what goes around a text in each mode, where a text has a token before and one behind, and finds the tokens for gaps.
func (t *Tokenizer) findModes(v Vocab) {
	known := func(text string) bool { _, ok := t.ids[text]; return ok }
	for _, set := range gapTexts {
		if !slices.ContainsFunc(set, func(text string) bool { return !known(text) }) {
			t.types[t.ids[set[0]]] = Control
			if set[0] == "<mask_1>" {
				t.types[t.ids[set[1]]], t.types[t.ids[set[2]]] = Control, Control
			}
		}
	}
	if !v.AddBOS || !v.AddEOS || v.Model != "gpt2" {
		return
	}
	modes := make([][2][]token.ID, len(modeTexts))
	for m, text := range modeTexts {
		if !known(text) {
			return
		}
		modes[m] = [2][]token.ID{{v.BOS, t.ids[text], v.EOS}, {v.EOS}}
	}
	modes[Continue][1] = nil // the text goes on
	t.modes = modes
}

// Around returns the tokens that begin and end a text of a mode, as the file asks for them. They are not to be changed.
func (t *Tokenizer) Around(m Mode) (begin, end []token.ID) {
	if t.modes != nil {
		return t.modes[m][0], t.modes[m][1]
	}
	return t.begin, t.end
}

// Modal reports whether the vocabulary has tokens for modes.
func (t *Tokenizer) Modal() bool { return t.modes != nil }

// FIM returns the fill-in-the-middle tokens. ok is false if the vocabulary lacks that of the prefix, the suffix or the middle.
func (t *Tokenizer) FIM() (prefix, suffix, middle token.ID, ok bool) {
	f := t.fim
	return f.Prefix, f.Suffix, f.Middle, f.Prefix != token.None && f.Suffix != token.None && f.Middle != token.None
}

// FIMFiles returns the tokens before the names of a repository and of a file in such prompts, or [token.None].
func (t *Tokenizer) FIMFiles() (repository, file token.ID) { return t.fim.Repository, t.fim.File }
