package openai

import (
	"context"
	"strings"
	"unicode/utf8"

	"grove/internal/text/token"
	"grove/server/driver"
	"grove/server/serving"
	"grove/server/wire"
)

// tokenizeRequest is the body of /tokenize, in llama.cpp's form with content, or in one of vLLM's: with a prompt, or with messages.
type tokenizeRequest struct {
	conversation
	Model   string  `json:"model" bytes:"1024"`
	Content *string `json:"content"`
	Special bool    `json:"add_special"`
	Parse   *bool   `json:"parse_special"`
	Pieces  bool    `json:"with_pieces"`

	Prompt     *string `json:"prompt"`
	AddSpecial *bool   `json:"add_special_tokens"` // vLLM's: true of a prompt, false of messages
	Texts      bool    `json:"return_token_strs"`
}

// Tolerated implements [wire.Tolerant].
func (tokenizeRequest) Tolerated() []wire.Toleration {
	return []wire.Toleration{{Names: "chat_template", Client: "vLLM", Reason: "a request cannot bring a template; grove serve --chat-template chooses one"}}
}

// text returns the text whose tokens are asked for, and whether it gets those that begin and end a text.
func (q *tokenizeRequest) text() (text string, special bool, err error) {
	switch {
	case q.Content != nil && q.Prompt != nil:
		return "", false, wire.Refuse("prompt", "content is another name of the field; leave one of them out")
	case q.Content != nil:
		text = *q.Content
	case q.Prompt != nil:
		text, special = *q.Prompt, true
	default:
		return "", false, wire.Refuse("content", "content, prompt or messages: one of them must be given")
	}
	special = special || q.Special
	wire.Set(&special, q.AddSpecial)
	return text, special, nil
}

// check refuses fields of a form that is not the body's.
func (q *tokenizeRequest) check() error {
	if q.Messages == nil {
		if len(q.Tools) > 0 {
			return wire.Refuse("tools", "tools are of messages, and there are none")
		}
		return nil
	}
	switch {
	case q.Content != nil || q.Prompt != nil:
		return wire.Refuse("messages", "messages cannot be combined with content or prompt")
	case q.Special || q.AddSpecial != nil && *q.AddSpecial:
		return wire.Unsupported("add_special_tokens", "the template writes the special tokens of a conversation")
	}
	return nil
}

// tokenize handles POST /tokenize.
func tokenize(x *driver.Request) error {
	var q tokenizeRequest
	if err := x.Read(&q); err != nil {
		return err
	}
	if err := q.check(); err != nil {
		return err
	}
	h, err := x.Model(q.Model)
	if err != nil {
		return err
	}
	var ids tokens
	if q.Messages != nil {
		c, err := q.chat()
		if err != nil {
			return err
		}
		p, err := x.Prompt(h, &c)
		if err != nil {
			return err
		}
		ids.add(p.Tokens)
	} else {
		text, special, err := q.text()
		if err != nil {
			return err
		}
		err = x.Work(func(ctx context.Context) error {
			return h.Model.TokenizeParts(ctx, text, special, q.Parse != nil && !*q.Parse, ids.add)
		})
		if err != nil {
			return wire.RefusalOf(err)
		}
	}
	pieces, texts := q.Pieces, q.Texts
	q = tokenizeRequest{}
	return x.Reply(ids.answer(h, pieces, texts))
}

// tokens are the ids of a text, in parts of tokensPart each, so that they grow without a copy.
type tokens struct {
	parts [][]token.ID
	n     int
}

const tokensPart = 1 << 12

func (t *tokens) add(ids []token.ID) error {
	for _, id := range ids {
		if t.n%tokensPart == 0 {
			t.parts = append(t.parts, make([]token.ID, tokensPart))
		}
		t.parts[t.n/tokensPart][t.n%tokensPart] = id
		t.n++
	}
	return nil
}

func (t *tokens) at(i int) token.ID { return t.parts[i/tokensPart][i%tokensPart] }

// answer returns the body of an answer: with pieces as llama.cpp has them in place of ids, and with texts beside the ids as vLLM has them.
func (t *tokens) answer(h *serving.OpenModel, pieces, texts bool) map[string]any {
	all := map[string]any{"count": t.n, "max_model_len": h.Info.Context, "token_strs": nil}
	all["tokens"] = wire.Each(t.n, func(i int) (any, error) {
		id := t.at(i)
		if !pieces {
			return id, nil
		}
		text, raw := h.Piece(id)
		if !utf8.Valid(raw) {
			return piece{id, driver.Numbers(raw)}, nil
		}
		return piece{id, text}, nil
	})
	if texts {
		all["token_strs"] = wire.Each(t.n, func(i int) (any, error) {
			text, _ := h.Piece(t.at(i))
			return text, nil
		})
	}
	return all
}

// piece is a token of /tokenize with its text, or its bytes where they are no characters.
type piece struct {
	ID   token.ID `json:"id"`
	Text any      `json:"piece"`
}

// detokenizeRequest is the body of /detokenize.
type detokenizeRequest struct {
	Model  string  `json:"model" bytes:"1024"`
	Tokens []int64 `json:"tokens" most:"1048576"`
}

// maxText bounds the text of /detokenize, in bytes.
const maxText = 32 << 20

// detokenize handles POST /detokenize.
func detokenize(x *driver.Request) error {
	var q detokenizeRequest
	h, err := x.Open(&q, &q.Model)
	if err != nil {
		return err
	}
	ids := make([]token.ID, len(q.Tokens))
	for i, id := range q.Tokens {
		if err := wire.CheckID(h.Model, "tokens", id); err != nil {
			return err
		}
		ids[i] = token.ID(id)
	}
	var text string
	err = x.Work(func(context.Context) (err error) {
		size := 0
		for _, id := range ids {
			_, raw := h.Piece(id)
			if size += len(raw); size > maxText {
				return wire.Refuse("tokens", "tokens: their text has more than %d MiB", maxText>>20)
			}
		}
		text, err = h.Model.Detokenize(ids)
		return err
	})
	if err != nil {
		return wire.RefusalOf(err)
	}
	text = strings.ToValidUTF8(text, "\ufffd")
	return x.Reply(map[string]string{"content": text, "prompt": text}) // as llama.cpp and as vLLM have it
}
