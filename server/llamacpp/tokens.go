package llamacpp

import (
	"context"
	"strings"
	"unicode/utf8"

	"grove/internal/text/token"
	"grove/server/driver"
	"grove/server/wire"
)

// tokenizeRequest is the body of /tokenize.
type tokenizeRequest struct {
	Model   string `json:"model" bytes:"1024"`
	Content string `json:"content"`
	Prompt  string `json:"prompt"` // vLLM's name of content
	Special bool   `json:"add_special"`
	Parse   *bool  `json:"parse_special"`
	Pieces  bool   `json:"with_pieces"`
}

// tokenize handles POST /tokenize.
func tokenize(x *driver.Request) error {
	var q tokenizeRequest
	if err := x.Read(&q); err != nil {
		return err
	}
	if q.Content != "" && q.Prompt != "" {
		return wire.Refuse("prompt", "content is another name of the field; leave one of them out")
	}
	h, err := x.Model(q.Model)
	if err != nil {
		return err
	}
	const part = 1 << 12
	var parts [][]token.ID // of part tokens each, so that they grow without a copy
	n := 0
	err = x.Work(func(ctx context.Context) error {
		return h.Model.TokenizeParts(ctx, q.Content+q.Prompt, q.Special, q.Parse != nil && !*q.Parse, func(ids []token.ID) error {
			for _, id := range ids {
				if n%part == 0 {
					parts = append(parts, make([]token.ID, part))
				}
				parts[n/part][n%part] = id
				n++
			}
			return nil
		})
	})
	if err != nil {
		return wire.RefusalOf(err)
	}
	q.Content, q.Prompt = "", ""
	return x.Reply(map[string]any{"tokens": wire.Each(n, func(i int) (any, error) {
		id := parts[i/part][i%part]
		if !q.Pieces {
			return id, nil
		}
		text, raw := h.Piece(id)
		if !utf8.Valid(raw) {
			return piece{id, driver.Numbers(raw)}, nil
		}
		return piece{id, text}, nil
	})})
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
	return x.Reply(map[string]string{"content": strings.ToValidUTF8(text, "\ufffd")})
}
