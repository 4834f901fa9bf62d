package driver

import (
	"context"
	"errors"

	"grove"
	"grove/internal/text/token"
	"grove/server/access"
	"grove/server/serving"
	"grove/server/wire"
)

// Embedded are the embeddings of texts.
type Embedded struct {
	Vectors [][][]float32 // of each text
	Tokens  int           // of all texts
}

// Embeddings is the body of the routes for embeddings of OpenAI and llama.cpp.
type Embeddings struct {
	Readings
	Model    string       `json:"model" bytes:"1024"`
	Input    wire.Prompts `json:"input" most:"2048"`
	Content  wire.Prompts `json:"content" most:"2048"` // llama.cpp's name of input
	Encoding string       `json:"encoding_format" bytes:"256"`
}

// Embed is [Request.Embed] for the texts and the options of the body. own is the route's name of the texts, which may have the other one, too.
func (q *Embeddings) Embed(x *Request, h *serving.OpenModel, own string, many bool) (e Embedded, err error) {
	texts, other := q.Input, "content"
	if own == other {
		other = "input"
	}
	switch {
	case texts.Given && q.Content.Given:
		return e, wire.Refuse(other, "%s is another name of the field; leave one of them out", own)
	case !texts.Given:
		texts = q.Content
	}
	o, err := q.Options()
	if err != nil {
		return e, err
	}
	return x.Embed(h, texts.List, o, many)
}

// Embed computes embeddings: one vector of each text, or with many as many as the pooling gives.
func (x *Request) Embed(h *serving.OpenModel, texts []wire.RawPrompt, o grove.EmbedOptions, many bool) (e Embedded, err error) {
	return x.EmbedWithin(h, texts, o, many, 0, false)
}

// EmbedWithin is [Request.Embed] for texts of most tokens at most; 0: of as many as the model takes. Longer ones are cut, or refused.
func (x *Request) EmbedWithin(h *serving.OpenModel, texts []wire.RawPrompt, o grove.EmbedOptions, many bool, most int, cuts bool) (e Embedded, err error) {
	if len(texts) == 0 {
		return e, wire.Refuse("input", "input is missing")
	}
	defer func() { access.CallerOf(x.R.Context()).Spend(e.Tokens) }()
	kept := 0 // bytes of vectors
	err = h.Compute(x.R.Context(), x.ID, func(ctx context.Context) error {
		for _, raw := range texts {
			ids, err := x.tokens(h, raw, most, cuts)
			if err != nil {
				return ofInput(err)
			}
			e.Tokens += len(ids)
			vectors, err := h.Model.EmbedIDs(ctx, ids, o, many)
			if err != nil {
				if ctx.Err() != nil {
					return err
				}
				return ofInput(wire.RefusalOf(err))
			}
			if kept += 4 * h.Info.Width * len(vectors); kept > MaxVectors {
				return wire.Refuse("input", "input: its vectors take more than %d MiB; send fewer texts at a time", MaxVectors>>20)
			}
			e.Vectors = append(e.Vectors, vectors)
		}
		return nil
	})
	return e, err
}

// MaxVectors bounds the vectors of an answer, in bytes.
const MaxVectors = 48 << 20

// errCut ends the reading of a text that is cut.
var errCut = errors.New("driver: the text has tokens enough")

// tokens returns the tokens of a text that is embedded: most of them at most, if that is not 0.
func (x *Request) tokens(h *serving.OpenModel, raw wire.RawPrompt, most int, cuts bool) (ids []token.ID, err error) {
	err = x.Work(func(ctx context.Context) error {
		p, err := raw.Resolve(ctx, h.Model)
		if ids = p.IDs; err == nil && ids == nil {
			ids, err = embedded(ctx, h, p.Text, most)
		}
		switch {
		case err != nil || most == 0 || len(ids) <= most:
			return err
		case !cuts:
			return &grove.PromptError{Tokens: len(ids), Context: most, More: true}
		}
		ids, err = cut(ctx, h, ids, most)
		return err
	})
	return ids, err
}

// embedded returns the tokens of a text, with those that begin and end it; no more than needed to see that it has more than most.
func embedded(ctx context.Context, h *serving.OpenModel, text string, most int) (ids []token.ID, err error) {
	err = h.Model.TokenizeEmbedded(ctx, text, func(part []token.ID) error {
		ids = append(ids, part...)
		if most > 0 && len(ids) > most {
			return errCut
		}
		return h.Model.CheckPrompt(len(ids))
	})
	if errors.Is(err, errCut) {
		err = nil
	}
	return ids, err
}

// cut shortens a text to most tokens. The tokens that end each text end this one, too, as in ollama.
func cut(ctx context.Context, h *serving.OpenModel, ids []token.ID, most int) ([]token.ID, error) {
	around, err := embedded(ctx, h, "", 0)
	if err != nil {
		return nil, err
	}
	n := 0 // of those that begin it
	for n < len(around) && around[n] == ids[n] {
		n++
	}
	end := around[n:]
	if len(around) >= most { // no room for any of the text
		return ids[:most], nil
	}
	return append(ids[:most-len(end):most-len(end)], end...), nil
}

// ofInput returns an error with the name that the field of a prompt has where texts are embedded.
func ofInput(err error) error {
	var refusal *wire.Error
	if errors.Is(err, grove.ErrContext) {
		e := *wire.ErrorOf(err)
		err = &e
	}
	if errors.As(err, &refusal) && refusal.Param == "prompt" {
		refusal.Param = "input"
	}
	return err
}

// Readings are the fields that say which states of texts are read, and how they become vectors.
type Readings struct {
	Pooling    string `json:"pooling" bytes:"256"`
	Normalize  *int   `json:"embd_normalize" range:"-1 *"`
	Scale      *bool  `json:"normalize"` // vLLM's: true is 2, false is -1
	Dimensions *int   `json:"dimensions" range:"1 *"`
	Layers     []int  `json:"layers" most:"128"`
	Tokens     []int  `json:"tokens" most:"65536"`
	Exit       *int   `json:"exit" range:"1 *"`
	Mask       string `json:"mask" bytes:"256"`
}

// Options returns the options that the fields ask for.
func (q *Readings) Options() (o grove.EmbedOptions, err error) {
	if n := q.Normalize; n != nil && *n != 2 && *n != -1 {
		return o, wire.Unsupported("embd_normalize", "2 and -1 are supported")
	}
	if q.Scale != nil && q.Normalize != nil && *q.Scale != (*q.Normalize == 2) {
		return o, wire.Refuse("normalize", "normalize and embd_normalize are two names of one field and differ")
	}
	o = grove.EmbedOptions{Pooling: q.Pooling, Raw: q.Normalize != nil && *q.Normalize == -1 || q.Scale != nil && !*q.Scale, Layers: q.Layers, Tokens: q.Tokens, Mask: q.Mask}
	wire.Set(&o.Dimensions, q.Dimensions)
	wire.Set(&o.Exit, q.Exit)
	return o, nil
}
