package llamacpp

import (
	"grove/server/driver"
	"grove/server/wire"
)

// embeddingRequest is the body of /embedding.
type embeddingRequest struct {
	Model     string       `json:"model"`
	Content   wire.Prompts `json:"content"`
	Input     wire.Prompts `json:"input"` // OpenAI's name of content
	Encoding  string       `json:"encoding_format"`
	Pooling   string       `json:"pooling"`
	Normalize *int         `json:"embd_normalize"`
}

// embeddings handles POST /embedding, whose answers hold all vectors of a text.
func embeddings(x *driver.Request) error {
	var q embeddingRequest
	if err := x.Read(&q); err != nil {
		return err
	}
	h, err := x.Model(q.Model)
	if err != nil {
		return err
	}
	if q.Encoding != "" && q.Encoding != "float" {
		return wire.Unsupported("encoding_format", "this route writes numbers; /v1/embeddings has base64")
	}
	if q.Content.Given && q.Input.Given {
		return wire.Refuse("input", "content is another name of the field; leave one of them out")
	}
	if !q.Content.Given {
		q.Content = q.Input
	}
	o, err := driver.EmbedOptions(q.Pooling, q.Normalize)
	if err != nil {
		return err
	}
	e, err := x.Embed(h, q.Content.List, o, true)
	if err != nil {
		return err
	}
	data := []map[string]any{}
	for i, vectors := range e.Vectors {
		data = append(data, map[string]any{"index": i, "embedding": vectors})
	}
	return x.Reply(data)
}
