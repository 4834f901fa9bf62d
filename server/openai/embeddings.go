package openai

import (
	"encoding/base64"
	"encoding/binary"
	"math"

	"grove/server/driver"
	"grove/server/wire"
)

// embeddingRequest is the body of /v1/embeddings.
type embeddingRequest struct{ driver.Embeddings }

// embeddings handles POST /v1/embeddings.
func embeddings(x *driver.Request) error {
	var q embeddingRequest
	h, err := x.Open(&q, &q.Model)
	switch {
	case err != nil:
		return err
	case q.Encoding != "" && q.Encoding != "float" && q.Encoding != "base64":
		return wire.Refuse("encoding_format", "encoding_format %q is not known; float and base64 are", wire.Clip(q.Encoding))
	}
	e, err := q.Embed(x, h, "input", false)
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
	return []wire.Toleration{{Names: "add_special_tokens", Values: "true", Client: "vLLM", Reason: "a text has the model's special tokens; give token ids for other ones"}}
}

// packed returns a vector as base64 of little-endian float32.
func packed(v []float32) string {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(b)
}
