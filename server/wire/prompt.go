package wire

import (
	"context"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"grove"
	"grove/internal/text/token"
)

// Prompt is a text, or tokens.
type Prompt struct {
	Text string
	IDs  []token.ID // nil: Text
}

// Prompts is one prompt or a list of prompts. A list that mixes texts and token ids is one prompt, as llama.cpp has it.
type Prompts struct {
	List  []RawPrompt
	Given bool
}

// RawPrompt is a text, or a list of token ids and texts.
type RawPrompt []part

// part is token ids, or a text.
type part struct {
	text string
	ids  []int64 // nil: text
}

// MaxIDs bounds the token ids of a body's prompts. No context is as long.
const MaxIDs = 1_048_576

// ReadJSON implements [Own].
func (p *Prompts) ReadJSON(r *Reader) error {
	p.Given = true
	bound := r.bound
	switch r.Kind() {
	case jsontext.KindBeginArray:
	case jsontext.KindString, jsontext.KindBeginObject:
		p.List = []RawPrompt{nil}
		return p.List[0].read(r, nil)
	default:
		return r.Refuse("it must be a text, a list of token ids, or a list of these")
	}
	var mixed RawPrompt // of the ids and texts of the list, where it is one prompt
	ids, lists := 0, false
	err := r.list(func(int) error {
		var one RawPrompt
		switch kind := r.Kind(); {
		case kind == jsontext.KindBeginArray:
			lists, one = true, RawPrompt{}
			if err := r.list(func(int) error { return one.read(r, &ids) }); err != nil {
				return err
			}
		case kind == jsontext.KindNumber:
			return mixed.read(r, &ids)
		default:
			if err := one.read(r, &ids); err != nil {
				return err
			}
			mixed = append(mixed, one...)
		}
		if p.List = append(p.List, one); len(p.List) > bound.most {
			r.at = r.at[:len(r.at)-1]
			return r.beyond("array_above_max_length", "more than %d prompts", bound.most)
		}
		return nil
	})
	onePrompt := len(mixed) > 0 && slices.ContainsFunc(mixed, func(e part) bool { return e.ids != nil })
	switch {
	case err != nil:
		return err
	case onePrompt && lists:
		return r.Refuse("a list of prompts has a token id among them")
	case onePrompt || len(p.List) == 0:
		p.List = []RawPrompt{mixed}
	}
	return nil
}

// promptObject is a prompt in llama.cpp's form.
type promptObject struct {
	Text *string `json:"prompt_string"`
}

// Tolerated implements [Tolerant].
func (promptObject) Tolerated() []Toleration {
	return []Toleration{{Names: "multimodal_data", Values: "[]", Client: "llama.cpp", Reason: "images are not supported"}}
}

// read adds a text, in llama.cpp's form also an object with a prompt_string, or a token id, to a prompt. Of ids there are *ids so far.
func (p *RawPrompt) read(r *Reader, ids *int) error {
	switch r.Kind() {
	case jsontext.KindBeginObject:
		var o promptObject
		if err := r.Into(&o); err != nil {
			return err
		}
		if o.Text == nil {
			return r.Refuse("the prompt_string is missing")
		}
		*p = append(*p, part{text: *o.Text})
		return nil
	case jsontext.KindString:
		text, err := r.Text()
		*p = append(*p, part{text: text})
		return err
	}
	raw, err := r.Number()
	if err != nil {
		return err
	}
	id, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		return r.Refuse("%s is not a token id", Clip(string(raw)))
	}
	if *ids++; *ids > MaxIDs {
		return r.beyond("array_above_max_length", "more than %d token ids", MaxIDs)
	}
	if n := len(*p) - 1; n < 0 || (*p)[n].ids == nil {
		*p = append(*p, part{})
	}
	last := &(*p)[len(*p)-1]
	last.ids = append(last.ids, id)
	return nil
}

// Resolve returns a prompt in the form of the library. Texts after the first get no tokens that begin a text.
func (p RawPrompt) Resolve(ctx context.Context, m *grove.Model) (out Prompt, err error) {
	if text, ok := p.Text(); ok {
		return Prompt{Text: text}, nil
	}
	out.IDs = []token.ID{}
	for i, e := range p {
		for _, id := range e.ids {
			if err := CheckID(m, "prompt", id); err != nil {
				return out, err
			}
			out.IDs = append(out.IDs, token.ID(id))
		}
		if e.ids != nil {
			continue
		}
		if out.IDs, err = AppendTokens(ctx, out.IDs, m, e.text, i == 0); err != nil {
			return out, err
		}
	}
	if len(out.IDs) == 0 {
		return out, Refuse("prompt", "the prompt is an empty list of tokens")
	}
	return out, nil
}

// AppendTokens appends the tokens of a text that is a prompt, or a part of one; first says that it begins one. It ends with ctx, and with an
// error where the prompt is many times as long as the context.
func AppendTokens(ctx context.Context, dst []token.ID, m *grove.Model, text string, first bool) ([]token.ID, error) {
	err := m.TokenizeParts(ctx, text, first, false, func(ids []token.ID) error {
		dst = append(dst, ids...)
		return m.CheckPrompt(len(dst))
	})
	return dst, err
}

// NewRawPrompt returns a prompt of one text.
func NewRawPrompt(text string) RawPrompt { return RawPrompt{{text: text}} }

// Text returns the text of a prompt that is one text.
func (p RawPrompt) Text() (string, bool) {
	if len(p) != 1 || p[0].ids != nil {
		return "", false
	}
	return p[0].text, true
}

// CheckID refuses an id that is not in the model's vocabulary; field is the field that has it.
func CheckID(m *grove.Model, field string, id int64) error {
	if n := m.Vocabulary(); id < 0 || id >= int64(n) {
		return Refuse(field, "token id %d is out of range: the vocabulary has %d", id, n)
	}
	return nil
}
