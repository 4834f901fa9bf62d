package method

import (
	"context"
	"errors"

	"grove/forest"
	"grove/text/token"
)

// Runner is a second model that a method may run. It is safe for concurrent use.
type Runner interface {
	// Vocabulary returns the number of its tokens.
	Vocabulary() int
	// Context returns the number of tokens that a branch may have.
	Context() int
	// Chunk returns the most rows of a step.
	Chunk() int
	// Branch opens a sequence of it.
	Branch() (Branch, error)
}

// MaxLive bounds the rows that may hang from a branch's trunk: for so many there is room, whatever else the model runs.
const MaxLive = 64

// Branch is a sequence of a [Runner], whose trees the method grows itself, over as many steps as it likes. It
// is for one goroutine.
type Branch interface {
	// Len returns the number of tokens of the trunk.
	Len() int
	// Run passes rows through the model. It returns their nodes, and for each row the logits behind it if it wants
	// them. Both are valid until the branch's next Run.
	Run(ctx context.Context, rows []BranchRow) ([]forest.Node, [][]float32, error)
	// Commit makes a node the trunk's end; what else hangs from the trunk is dropped.
	Commit(n forest.Node) error
	// Drop drops what hangs from the trunk.
	Drop() error
	// Truncate cuts the trunk.
	Truncate(n int) error
	// Close gives its room back.
	Close() error
}

// Trimmer is a branch whose model can leave out a part of its vocabulary.
type Trimmer interface {
	// Trim makes Run compute the logits of some tokens alone: of n*[compute.SubsetGroup] and those that follow it, for each
	// n of groups, which ascend, until the next call. All others are [compute.Masked]. The slice is kept. nil: all.
	Trim(groups []int32)
}

// BranchRow is a token to run behind a node of a branch.
type BranchRow struct {
	ID     token.ID
	Parent forest.Node // a live node, or forest.Trunk
	After  int         // instead, the number of an earlier row of the same call, counted from 1; 0: Parent
	Logits bool        // wanted
}

// ErrNeeds reports a method that cannot be opened without what it needs.
var ErrNeeds = errors.New("none is given")
