package openai

import (
	"encoding/base64"
	"encoding/binary"
	"math"

	"grove"
	"grove/server/driver"
	"grove/server/wire"
)

// embeddingRequest is the body of /v1/embeddings.
type embeddingRequest struct {
	driver.Readings
	Model    string       `json:"model" bytes:"1024"`
	Input    wire.Prompts `json:"input" most:"2048"`
	Content  wire.Prompts `json:"content" most:"2048"` // llama.cpp's name of input
	Encoding string       `json:"encoding_format" bytes:"256"`
}

// embeddings handles POST /v1/embeddings.
func embeddings(x *driver.Request) error {
	var q embeddingRequest
	if err := x.Read(&q); err != nil {
		return err
	}
	h, err := x.Model(q.Model)
	if err != nil {
		return err
	}
	o, err := q.check()
	if err != nil {
		return err
	}
	e, err := x.Embed(h, q.Input.List, o, false)
	if err != nil {
		return err
	}
	data := []map[string]any{}
	for i, vectors := range e.Vectors {
		var v any = vectors[0]
		if q.Encoding == "base64" {
			v = packed(vectors[0])
		}
		data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": v})
	}
	return x.Reply(map[string]any{
		"object": "list", "model": h.Name, "data": data, "usage": map[string]int{"prompt_tokens": e.Tokens, "total_tokens": e.Tokens},
	})
}

// Tolerated implements [wire.Tolerant].
func (embeddingRequest) Tolerated() []wire.Toleration {
	return []wire.Toleration{{Names: "add_special_tokens", Values: "true", Reason: "a text has the model's special tokens; give token ids for other ones"}}
}

// check checks the fields.
func (q *embeddingRequest) check() (o grove.EmbedOptions, err error) {
	both := q.Input.Given && q.Content.Given
	if !q.Input.Given {
		q.Input = q.Content
	}
	switch {
	case both:
		return o, wire.Refuse("content", "input is another name of the field; leave one of them out")
	case q.Encoding != "" && q.Encoding != "float" && q.Encoding != "base64":
		return o, wire.Refuse("encoding_format", "encoding_format %q is not known; float and base64 are", wire.Clip(q.Encoding))
	}
	return q.Options()
}

// packed returns a vector as base64 of little-endian float32.
func packed(v []float32) string {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(b)
}
