package llamacpp

import (
	"grove/server/driver"
	"grove/server/wire"
)

// embeddingRequest is the body of /embedding.
type embeddingRequest struct {
	driver.Readings
	Model    string       `json:"model" bytes:"1024"`
	Content  wire.Prompts `json:"content" most:"2048"`
	Input    wire.Prompts `json:"input" most:"2048"` // OpenAI's name of content
	Encoding string       `json:"encoding_format" bytes:"256"`
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
	o, err := q.Options()
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
