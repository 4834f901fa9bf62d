package wire

import (
	"bytes"
	"encoding/json"
	"slices"

	"grove"
	"grove/text/token"
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

type part struct {
	text string
	id   int64
	isID bool
}

// UnmarshalJSON implements [json.Unmarshaler].
func (p *Prompts) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	p.Given = true
	if e, ok := parsePart(b); ok && !e.isID {
		p.List = []RawPrompt{{e}}
		return nil
	}
	var items []json.RawMessage
	if json.Unmarshal(b, &items) != nil {
		return Refuse("", "it must be a text, a list of token ids, or a list of these")
	}
	ids, lists := false, false // among the items
	for _, item := range items {
		e, ok := parsePart(item)
		if ok {
			ids = ids || e.isID
			p.List = append(p.List, RawPrompt{e})
			continue
		}
		one, err := parseList(item)
		if err != nil {
			return err
		}
		lists = true
		p.List = append(p.List, one)
	}
	switch {
	case ids && lists:
		return Refuse("", "a list of prompts has a token id among them")
	case ids || len(items) == 0: // ids, perhaps with texts between them: one prompt
		p.List = []RawPrompt{slices.Concat(p.List...)}
	}
	return nil
}

// parseList reads a prompt of token ids and texts.
func parseList(b []byte) (RawPrompt, error) {
	var items []json.RawMessage
	if json.Unmarshal(b, &items) != nil || items == nil {
		return nil, Refuse("", "%s is not a text or a list of token ids", Clip(string(b)))
	}
	p := make(RawPrompt, 0, len(items))
	for _, item := range items {
		e, ok := parsePart(item)
		if !ok {
			return nil, Refuse("", "%s is not a token id", Clip(string(item)))
		}
		p = append(p, e)
	}
	return p, nil
}

// parsePart reads a text, in llama.cpp's form also an object with a prompt_string, or a token id.
func parsePart(b []byte) (e part, ok bool) {
	switch {
	case len(b) > 0 && b[0] == '{':
		var o struct {
			Text *string `json:"prompt_string"`
		}
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		if d.Decode(&o) != nil || o.Text == nil {
			return e, false
		}
		e.text = *o.Text
		return e, true
	case len(b) > 0 && b[0] == '"':
		return e, json.Unmarshal(b, &e.text) == nil
	case len(b) > 0 && (b[0] == '-' || b[0] >= '0' && b[0] <= '9'):
		e.isID = true
		return e, json.Unmarshal(whole(b), &e.id) == nil
	}
	return e, false
}

// Resolve returns a prompt in the form of the library. Texts after the first get no tokens that begin a text.
func (p RawPrompt) Resolve(m *grove.Model) (out Prompt, err error) {
	if len(p) == 1 && !p[0].isID {
		return Prompt{Text: p[0].text}, nil
	}
	out.IDs = []token.ID{}
	for i, e := range p {
		if e.isID {
			if err := CheckID(m, "prompt", e.id); err != nil {
				return out, err
			}
			out.IDs = append(out.IDs, token.ID(e.id))
			continue
		}
		ids, err := m.Tokenize(e.text, i == 0, false)
		if err != nil {
			return out, err
		}
		out.IDs = append(out.IDs, ids...)
	}
	if len(out.IDs) == 0 {
		return out, Refuse("prompt", "the prompt is an empty list of tokens")
	}
	return out, nil
}

// NewRawPrompt returns a prompt of one text.
func NewRawPrompt(text string) RawPrompt { return RawPrompt{{text: text}} }

// Text returns the text of a prompt that is one text.
func (p RawPrompt) Text() (string, bool) {
	if len(p) != 1 || p[0].isID {
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
