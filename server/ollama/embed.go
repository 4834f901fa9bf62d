package ollama

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"grove"
	"grove/server/driver"
	"grove/server/serving"
	"grove/server/wire"
)

// embedRequest is the body of /api/embed.
type embedRequest struct {
	Model      string       `json:"model" bytes:"1024"`
	Input      inputs       `json:"input" most:"2048"`
	Truncate   *bool        `json:"truncate"` // absent: true
	Dimensions *int         `json:"dimensions" range:"0 *"`
	KeepAlive  *keepAlive   `json:"keep_alive"`
	Options    embedOptions `json:"options"`
}

// embedOptions are the options of a request for vectors.
type embedOptions struct {
	Context *int `json:"num_ctx" range:"0 *"`
}

// Tolerated implements [wire.Tolerant].
func (embedOptions) Tolerated() []wire.Toleration {
	return append(options{}.Tolerated(), wire.Toleration{
		Names: "seed num_predict top_k top_p min_p tfs_z typical_p repeat_last_n temperature repeat_penalty presence_penalty frequency_penalty mirostat mirostat_tau mirostat_eta penalize_newline stop " +
			"rope_frequency_base rope_frequency_scale",
		Values: "*", Client: "ollama", Reason: "a vector depends on no draw of tokens",
	})
}

// most returns the tokens of a text.
func (o *embedOptions) most(h *serving.OpenModel) int {
	return (&options{Context: o.Context}).context(h)
}

// inputs are the texts of /api/embed. An empty text that is in no list is none, as in ollama.
type inputs struct{ wire.Prompts }

// ReadJSON implements [wire.Own].
func (i *inputs) ReadJSON(r *wire.Reader) error {
	list := r.Kind() == jsontext.KindBeginArray
	err := i.Prompts.ReadJSON(r)
	if text, is := wire.RawPrompt(nil), false; err == nil && len(i.List) == 1 {
		text = i.List[0]
		_, is = text.Text()
		if one, _ := text.Text(); len(text) == 0 || is && !list && one == "" {
			i.List = nil
		}
	}
	return err
}

// embed handles POST /api/embed. Without a text it opens the model.
func embed(x *driver.Request) error {
	var q embedRequest
	h, err := x.Open(&q, &q.Model)
	if err != nil {
		return err
	}
	opened, o := time.Now(), grove.EmbedOptions{}
	wire.Set(&o.Dimensions, q.Dimensions)
	var e driver.Embedded
	if len(q.Input.List) > 0 {
		e, err = x.EmbedWithin(h, q.Input.List, o, false, q.Options.most(h), q.Truncate == nil || *q.Truncate)
	}
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
	Model     string       `json:"model" bytes:"1024"`
	Prompt    string       `json:"prompt"`
	Truncate  *bool        `json:"truncate"` // absent: true
	KeepAlive *keepAlive   `json:"keep_alive"`
	Options   embedOptions `json:"options"`
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
	texts := []wire.RawPrompt{wire.NewRawPrompt(q.Prompt)}
	e, err := x.EmbedWithin(h, texts, grove.EmbedOptions{Raw: true}, false, q.Options.most(h), q.Truncate == nil || *q.Truncate)
	if err != nil {
		return err
	}
	return x.Reply(map[string]any{"embedding": e.Vectors[0][0]})
}
