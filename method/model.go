package method

import (
	"context"
	"errors"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/text/token"
)

// Model is a model whose rows a method may run. It is safe for concurrent use. The steps that it runs are shared with
// all who want steps of the model.
type Model interface {
	Size() Size
	// Open opens a sequence of its own: [ErrBusy] where no slot is free.
	Open() (Branch, error)
}

// Size has the sizes of a model by which a method bounds its rows and its memory.
type Size struct {
	Vocabulary int
	Layers     int
	Width      int // of the residual stream
	Context    int // tokens of a sequence
	Rows       int // of a step, at most
	Live       int // rows that may hang from a trunk; 0: [MaxLive], which it does not exceed

	// AttentionShare is about how much of a layer's weights its attention part has, where rows may skip parts of layers; 0: they run layers as a whole.
	AttentionShare float64

	Canvas *Canvas // of a model of masked diffusion, whose rows see each other; nil: it gives the next token's logits
}

// Canvas describes a model of masked diffusion for drafters.
type Canvas struct {
	Mask  token.ID
	Shift bool // a row gives the token behind its own place
	Block int  // tokens of a block, of a model whose rows see the blocks before them and all of their own; 0: all rows see each other
}

// MostLive returns how many rows may hang from a trunk.
func (s Size) MostLive() int {
	if s.Live == 0 {
		return MaxLive
	}
	return min(s.Live, MaxLive)
}

// MaxLive bounds the rows that may hang from a trunk at a time: for so many there is room, whatever else the model runs.
const MaxLive = 64

// ErrPreempted reports that a text's own trunk is not there: its pages were given to another sequence, and are computed
// anew in the next step. The round runs what was drafted until then.
var ErrPreempted = errors.New("the trunk's pages were taken")

// ErrBusy reports a model without a free slot.
var ErrBusy = errors.New("too many sequences are open")

// Trunk is a text of a model, behind which a drafter grows rows. It is for one goroutine.
//
// A row that passes over every layer gives the model's embedding of its token, as its hidden state, or the head's
// logits behind a vector: so a draft module borrows both.
type Trunk interface {
	// Len returns the number of tokens of the trunk. That of a text's own trunk is one less than the text: the last
	// token is the first row of what is grown.
	Len() int
	// Grow runs rows, in a step that others share. The results are those of the rows, in order, valid until the next
	// Grow. The rows live on until they are dropped or committed. Errors: those of [forest.Step.Add], ctx's, the
	// model's.
	Grow(ctx context.Context, rows []Row) ([]Result, error)
	// Drop drops what hangs from the trunk.
	Drop() error
}

// Branch is a sequence of a [Model] that a drafter owns.
type Branch interface {
	Trunk
	// Commit makes a node the trunk's end; what else hangs from the trunk is dropped.
	Commit(n forest.Node) error
	// Truncate cuts the trunk to n tokens, or to fewer where the cache no longer has what rows behind them read: Len says to
	// how many.
	Truncate(n int) error
	// Close gives its slot back.
	Close() error
}

// Row is a row to run behind a trunk. The row's sequence is filled in.
type Row struct {
	forest.Row
	After int // behind an earlier row of the same call, counted from 1; 0: behind Parent
}

// Result has the outputs of one row, as its Want lists them, and the row's node.
type Result struct {
	Node forest.Node
	compute.Result
}
