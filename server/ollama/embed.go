package ollama

import (
	"encoding/json"
	"time"

	"grove"
	"grove/server/driver"
	"grove/server/wire"
)

// embedRequest is the body of /api/embed.
type embedRequest struct {
	Model      string          `json:"model" bytes:"1024"`
	Input      wire.Prompts    `json:"input" most:"2048"`
	Truncate   *bool           `json:"truncate"` // texts are never cut; one that is too long is refused
	Dimensions *int            `json:"dimensions" range:"0 *"`
	KeepAlive  *keepAlive      `json:"keep_alive"`
	Options    json.RawMessage `json:"options"` // of the draw of tokens: a vector depends on none
}

// embed handles POST /api/embed.
func embed(x *driver.Request) error {
	var q embedRequest
	h, err := x.Open(&q, &q.Model)
	if err != nil {
		return err
	}
	opened, o := time.Now(), grove.EmbedOptions{}
	wire.Set(&o.Dimensions, q.Dimensions)
	e, err := x.Embed(h, q.Input.List, o, false)
	if err != nil {
		return err
	}
	vectors := make([][]float32, len(e.Vectors))
	for i, v := range e.Vectors {
		vectors[i] = v[0]
	}
	if err := q.KeepAlive.apply(x.Server.Pool, h.Name); err != nil {
		return err
	}
	return x.Reply(map[string]any{
		"model": h.Name, "embeddings": vectors, "total_duration": time.Since(x.Began), "load_duration": opened.Sub(x.Began), "prompt_eval_count": e.Tokens,
	})
}

// embedOneRequest is the body of /api/embeddings.
type embedOneRequest struct {
	Model     string          `json:"model" bytes:"1024"`
	Prompt    string          `json:"prompt"`
	KeepAlive *keepAlive      `json:"keep_alive"`
	Options   json.RawMessage `json:"options"`
}

// embedOne handles POST /api/embeddings, the older route: one text, whose vector is not scaled to length 1.
func embedOne(x *driver.Request) error {
	var q embedOneRequest
	h, err := x.Open(&q, &q.Model)
	if err != nil {
		return err
	}
	if err := q.KeepAlive.apply(x.Server.Pool, h.Name); err != nil {
		return err
	}
	if q.Prompt == "" { // the request asks for the model to be opened
		return x.Reply(map[string]any{"embedding": []float32{}})
	}
	e, err := x.Embed(h, []wire.RawPrompt{wire.NewRawPrompt(q.Prompt)}, grove.EmbedOptions{Raw: true}, false)
	if err != nil {
		return err
	}
	return x.Reply(map[string]any{"embedding": e.Vectors[0][0]})
}
