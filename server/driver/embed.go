package driver

import (
	"context"
	"errors"

	"grove"
	"grove/server/access"
	"grove/server/serving"
	"grove/server/wire"
	"grove/text/token"
)

// Embedded are the embeddings of texts.
type Embedded struct {
	Vectors [][][]float32 // of each text
	Tokens  int           // of all texts
}

// Embed computes embeddings: one vector of each text, or with many as many as the pooling gives.
func (x *Request) Embed(h *serving.Host, texts []wire.RawPrompt, o grove.EmbedOptions, many bool) (e Embedded, err error) {
	if len(texts) == 0 {
		return e, wire.Refuse("input", "input is missing")
	}
	var all [][]token.ID
	for _, raw := range texts {
		p, err := raw.Resolve(h.Model)
		if err == nil && p.IDs == nil {
			p.IDs, err = h.Model.Tokenize(p.Text, true, false)
		}
		if err != nil {
			return e, ofInput(err)
		}
		all, e.Tokens = append(all, p.IDs), e.Tokens+len(p.IDs)
	}
	defer func() { access.CallerOf(x.R.Context()).Spend(e.Tokens) }()
	err = h.Compute(x.R.Context(), x.ID, func(ctx context.Context) error {
		for _, ids := range all {
			vectors, err := h.Model.EmbedIDs(ctx, ids, o, many)
			if err != nil {
				if ctx.Err() != nil {
					return err
				}
				return ofInput(wire.RefusalOf(err))
			}
			e.Vectors = append(e.Vectors, vectors)
		}
		return nil
	})
	return e, err
}

// ofInput returns an error with the name that the field of a prompt has where texts are embedded.
func ofInput(err error) error {
	var refusal *wire.Error
	if errors.As(err, &refusal) && refusal.Param == "prompt" {
		refusal.Param = "input"
	}
	return err
}

// EmbedOptions returns the options that the fields pooling and embd_normalize ask for; nil: the field is absent.
func EmbedOptions(pooling string, normalize *int) (grove.EmbedOptions, error) {
	if normalize != nil && *normalize != 2 && *normalize != -1 {
		return grove.EmbedOptions{}, wire.Unsupported("embd_normalize", "2 and -1 are supported")
	}
	return grove.EmbedOptions{Pooling: pooling, Raw: normalize != nil && *normalize == -1}, nil
}
