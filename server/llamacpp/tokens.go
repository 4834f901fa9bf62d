package llamacpp

import (
	"strings"
	"unicode/utf8"

	"grove/server/driver"
	"grove/server/wire"
	"grove/text/token"
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
	ids, err := h.Model.Tokenize(q.Content+q.Prompt, q.Special, q.Parse != nil && !*q.Parse)
	if err != nil {
		return wire.RefusalOf(err)
	}
	if !q.Pieces {
		return x.Reply(map[string]any{"tokens": append([]token.ID{}, ids...)})
	}
	tokens := []map[string]any{}
	for _, id := range ids {
		text, raw := h.Piece(id)
		var piece any = text
		if !utf8.Valid(raw) {
			piece = driver.Numbers(raw)
		}
		tokens = append(tokens, map[string]any{"id": id, "piece": piece})
	}
	return x.Reply(map[string]any{"tokens": tokens})
}

// detokenizeRequest is the body of /detokenize.
type detokenizeRequest struct {
	Model  string  `json:"model" bytes:"1024"`
	Tokens []int64 `json:"tokens" most:"1048576"`
}

// detokenize handles POST /detokenize.
func detokenize(x *driver.Request) error {
	var q detokenizeRequest
	if err := x.Read(&q); err != nil {
		return err
	}
	h, err := x.Model(q.Model)
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
	text, err := h.Model.Detokenize(ids)
	if err != nil {
		return wire.RefusalOf(err)
	}
	return x.Reply(map[string]string{"content": strings.ToValidUTF8(text, "\ufffd")})
}
