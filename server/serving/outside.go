package serving

import (
	"context"

	"grove/method"
)

// Outside is another server for which answers are computed, and which makes drafts for them.
type Outside interface {
	// Computes tells which model answers. It is called before anything is computed.
	Computes(h *OpenModel)
	// Salt returns the salt of a text, for that which its request names: the other server's callers have one each.
	Salt(named string) string
	// Drafts returns the drafts of an answer; nil: there are none.
	Drafts(answer int) method.Remote
	// Spent tells the tokens of the prompts and the answers.
	Spent(tokens int)
}

type outsideKey struct{}

// WithOutside returns a context for a request of another server.
func WithOutside(ctx context.Context, o Outside) context.Context {
	return context.WithValue(ctx, outsideKey{}, o)
}

// outsideOf returns the other server that a request is from; nil: it is from none.
func outsideOf(ctx context.Context) Outside {
	o, _ := ctx.Value(outsideKey{}).(Outside)
	return o
}
