package llamacpp

import (
	"grove/server/driver"
	"grove/server/wire"
)

// embeddings handles POST /embedding, whose answers hold all vectors of a text.
func embeddings(x *driver.Request) error {
	var q driver.Embeddings
	h, err := x.Open(&q, &q.Model)
	switch {
	case err != nil:
		return err
	case q.Encoding != "" && q.Encoding != "float":
		return wire.Unsupported("encoding_format", "this route writes numbers; /v1/embeddings has base64")
	}
	e, err := q.Embed(x, h, "content", true)
	if err != nil {
		return err
	}
	data := []map[string]any{}
	for i, vectors := range e.Vectors {
		data = append(data, map[string]any{"index": i, "embedding": vectors})
	}
	return x.Reply(data)
}
