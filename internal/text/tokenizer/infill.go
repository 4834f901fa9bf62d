// infill.go makes prompts that ask for the text of a gap, in the form for which a vocabulary has tokens.

package tokenizer

import (
	"errors"
	"slices"

	"grove/internal/text/token"
)

// ErrNoInfill reports a vocabulary without tokens for a gap.
var ErrNoInfill = errors.New("infill: the vocabulary names no tokens for a text that is to be filled in: of a prefix, a suffix and the middle; or <mask_1>, <sep> and <eom>; " +
	"or <mask0> and modes; or, of an encoder-decoder, <extra_id_0> and <extra_id_1>")

// InfillFile is another file of a prompt.
type InfillFile struct{ Name, Text string }

// InfillForm is how a vocabulary asks for the text of a gap. It is read-only.
type InfillForm struct {
	Ends  []token.ID // that end the text of the gap, besides those that end any answer
	Whole bool       // the tokens of the prompt see each other

	t      *Tokenizer
	mode   Mode
	ended  bool     // the tokens that end a text stand behind the prompt
	before token.ID // the prefix
	middle token.ID // of the suffix and the prefix
	behind []token.ID
}

// gap is a form in which one token stands for the gap: the prefix, the token, the suffix, and the tokens behind.
type gap struct {
	token  string
	behind []string
	end    string // ends the text of the gap; "": only what ends any answer
	mode   Mode
	source bool // of encoder-decoders alone
}

// gaps are the forms with a token for the gap: CodeGen 2 (Nijkamp et al. 2023), UniXcoder (Guo et al. 2022), T5 (Raffel et al. 2020) and CodeT5+ (Wang et al.
// 2023). The answer of the last two begins with the token of the gap, which is a control token and no text.
var gaps = []gap{
	{token: "<mask_1>", behind: []string{"<|endoftext|>", "<sep>", "<mask_1>"}, end: "<eom>"},
	{token: "<mask0>", mode: Answer},
	{token: "<extra_id_0>", end: "<extra_id_1>", source: true},
}

// InfillOf returns the form of a vocabulary: the prefix, the suffix and the middle, each behind a token, where it has these, else a form with a token for the gap. source
// says that the model is an encoder-decoder. The error is [ErrNoInfill].
func InfillOf(t *Tokenizer, source bool) (*InfillForm, error) {
	if pre, suf, mid, ok := t.FIM(); ok {
		return &InfillForm{t: t, before: pre, middle: suf, behind: []token.ID{mid}}, nil
	}
	for _, g := range gaps {
		if f, ok := g.form(t, source); ok {
			return f, nil
		}
	}
	return nil, ErrNoInfill
}

// form returns the form for a vocabulary that has all of its tokens.
func (g *gap) form(t *Tokenizer, source bool) (f *InfillForm, ok bool) {
	if g.source != source || g.mode != Continue && !t.Modal() {
		return nil, false
	}
	ok = true
	id := func(text string) token.ID {
		id, known := t.ID(text)
		ok = ok && known
		return id
	}
	f = &InfillForm{t: t, before: token.None, middle: id(g.token), mode: g.mode, Whole: g.mode == Answer, ended: g.behind == nil}
	for _, text := range g.behind {
		f.behind = append(f.behind, id(text))
	}
	if g.end != "" {
		f.Ends = []token.ID{id(g.end)}
	}
	return f, ok
}

// piece is a token, if it is one, and the text behind it.
type piece struct {
	id   token.ID
	text string
}

// Encode appends the ids of a prompt: the tokens that begin a text if the file asks for them, the files if there are any, the prefix, the suffix, and the tokens of the form.
// A model goes on with the text of the gap. Special tokens that are written in the parts are plain text. part is [tokenizer.Options.Part]. Errors: those of
// [tokenizer.Tokenizer.Encode].
func (f *InfillForm) Encode(dst []token.ID, prefix, suffix string, part func([]token.ID) error, files ...InfillFile) ([]token.ID, error) {
	begin, end := f.t.Around(f.mode)
	dst = append(dst, begin...)
	for _, p := range append(f.files(files), piece{f.before, prefix}, piece{f.middle, suffix}) {
		if p.id != token.None {
			dst = append(dst, p.id)
		}
		var err error
		if dst, err = f.t.Encode(dst, p.text, Options{Plain: true, Part: part}); err != nil {
			return dst, err
		}
	}
	dst = append(dst, f.behind...)
	if f.ended {
		dst = append(dst, end...)
	}
	if part != nil {
		return nil, part(dst)
	}
	return slices.Clip(dst), nil
}

// files returns the parts before the prefix of a prompt with files, as llama.cpp has them: the pattern of Qwen's coders with
// fixed names of the repository and the file, or texts with a line between them if the vocabulary has no token for files.
func (f *InfillForm) files(files []InfillFile) (parts []piece) {
	if len(files) == 0 {
		return nil
	}
	repository, file := f.t.FIMFiles()
	if file == token.None {
		for _, one := range files {
			parts = append(parts, piece{token.None, "\n\n--- snippet ---\n\n" + one.Text})
		}
		return parts
	}
	if repository != token.None {
		parts = append(parts, piece{repository, "myproject\n"})
	}
	for _, one := range files {
		parts = append(parts, piece{file, one.Name + "\n" + one.Text})
	}
	return append(parts, piece{file, "filename\n"})
}
