package server

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"math"

	"grove"
	"grove/server/serving"
	"grove/server/wire"
	"grove/text/token"
)

// embeddingRequest is the body of /v1/embeddings and /embedding.
type embeddingRequest struct {
	Model      string       `json:"model"`
	Input      wire.Prompts `json:"input"`
	Content    wire.Prompts `json:"content"` // llama.cpp's name of input
	Encoding   string       `json:"encoding_format"`
	Dimensions *int         `json:"dimensions"`
	Pooling    string       `json:"pooling"`
	Normalize  *int         `json:"embd_normalize"`
}

// embedded are the embeddings of texts.
type embedded struct {
	request embeddingRequest
	host    *serving.Host
	vectors [][][]float32 // of each text
	tokens  int           // of all texts
}

// embeddings handles POST /v1/embeddings.
func embeddings(x *request) error {
	e, err := embed(x, false)
	if err != nil {
		return err
	}
	data := []map[string]any{}
	for i, vectors := range e.vectors {
		var v any = vectors[0]
		if e.request.Encoding == "base64" {
			v = packed(vectors[0])
		}
		data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": v})
	}
	return x.reply(map[string]any{
		"object": "list", "model": e.host.Name, "data": data, "usage": map[string]int{"prompt_tokens": e.tokens, "total_tokens": e.tokens},
	})
}

// nativeEmbeddings handles POST /embedding, whose answers hold all vectors of a text.
func nativeEmbeddings(x *request) error {
	e, err := embed(x, true)
	if err != nil {
		return err
	}
	data := []map[string]any{}
	for i, vectors := range e.vectors {
		data = append(data, map[string]any{"index": i, "embedding": vectors})
	}
	return x.reply(data)
}

// embed computes the embeddings that a request asks for: one vector of each text, or with many as many as the pooling gives.
func embed(x *request, many bool) (e embedded, err error) {
	if err := x.read(&e.request); err != nil {
		return e, err
	}
	if e.host, err = x.model(e.request.Model); err != nil {
		return e, err
	}
	prompts, o, err := e.request.check()
	if err != nil {
		return e, err
	}
	var texts [][]token.ID
	for _, raw := range prompts {
		p, err := raw.Resolve(e.host.Model)
		if err == nil && p.IDs == nil {
			p.IDs, err = e.host.Model.Tokenize(p.Text, true, false)
		}
		if err != nil {
			return e, err
		}
		texts, e.tokens = append(texts, p.IDs), e.tokens+len(p.IDs)
	}
	err = e.host.Compute(x.r.Context(), x.id, func(ctx context.Context) error {
		for _, ids := range texts {
			vectors, err := e.host.Model.EmbedIDs(ctx, ids, o, many)
			if err != nil {
				if ctx.Err() != nil {
					return err
				}
				return wire.RefusalOf(err)
			}
			e.vectors = append(e.vectors, vectors)
		}
		return nil
	})
	return e, err
}

// check checks the fields and returns the texts.
func (q *embeddingRequest) check() ([]wire.RawPrompt, grove.EmbedOptions, error) {
	if !q.Input.Given {
		q.Input = q.Content
	}
	n, o := len(q.Input.List), grove.EmbedOptions{Pooling: q.Pooling, Raw: q.Normalize != nil && *q.Normalize == -1}
	switch {
	case n == 0:
		return nil, o, wire.Refuse("input", "input is missing")
	case n > wire.MaxAnswers:
		return nil, o, wire.Refuse("input", "%d texts; at most %d", n, wire.MaxAnswers)
	case q.Encoding != "" && q.Encoding != "float" && q.Encoding != "base64":
		return nil, o, wire.Refuse("encoding_format", "encoding_format %q is not known; float and base64 are", wire.Clip(q.Encoding))
	case q.Dimensions != nil:
		return nil, o, wire.Unsupported("dimensions", "vectors are as wide as the model")
	case q.Normalize != nil && *q.Normalize != 2 && *q.Normalize != -1:
		return nil, o, wire.Unsupported("embd_normalize", "2 and -1 are supported")
	}
	return q.Input.List, o, nil
}

// packed returns a vector as base64 of little-endian float32.
func packed(v []float32) string {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(b)
}
