package method

import (
	"context"
	"time"

	"grove/internal/text/token"
)

// Remote gives drafts of one text that are made elsewhere, such as by another program. It is told what becomes of the text. All methods are
// called by the goroutine that generates, and return soon but for Drafts.
type Remote interface {
	// Begin starts a text, or starts it anew where it was cut. The history is the caller's.
	Begin(h *History)
	// Committed tells the tokens that were added since the last call, how many of them were drafts of the remote's, and the rows and the time of the
	// step that drew them. IDs are the caller's.
	Committed(ids []token.ID, accepted, rows int, step time.Duration)
	// Drafts appends drafts that follow the text, the first one right behind it. It may wait for them, within a bound of its own and until ctx ends.
	Drafts(ctx context.Context, dst []token.ID) []token.ID
}
