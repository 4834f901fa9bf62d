package method

import (
	"context"

	"grove/forest"
	"grove/token"
)

// Runner is a second model that a method may run. It is safe for concurrent use.
type Runner interface {
	// Vocabulary returns the number of its tokens.
	Vocabulary() int
	// Context returns the number of tokens that a branch may have.
	Context() int
	// Branch opens a sequence of it.
	Branch() (Branch, error)
}

// Branch is a sequence of a [Runner], whose trees the method grows itself, over as many steps as it likes. It
// is for one goroutine.
type Branch interface {
	// Len returns the number of tokens of the trunk.
	Len() int
	// Run passes rows through the model, each behind a live node or the trunk (its Seq is filled in). It returns
	// the nodes, and for each row the logits behind it if it wants them. Both are valid until the branch's next
	// Run.
	Run(ctx context.Context, rows []forest.Row) ([]forest.Node, [][]float32, error)
	// Commit makes a node the trunk's end; what else hangs from the trunk is dropped.
	Commit(n forest.Node) error
	// Drop drops what hangs from the trunk.
	Drop() error
	// Truncate cuts the trunk.
	Truncate(n int) error
	// Close gives its room back.
	Close() error
}

// Vocabularies is what a method needs to know of two vocabularies that are not the same.
type Vocabularies interface {
	// Text returns the bytes of a token of either.
	Text(draft bool, id token.ID) []byte
	// Encode returns the tokens of a text.
	Encode(draft bool, text []byte) ([]token.ID, error)
}
