package bytewise

import (
	"grove/internal/engine"
)

// TreeView is a view of bytes behind the text of a sequence. Its forks share the sequence and what is computed; one of them is closed. It is for the sequence's
// goroutine, and nothing else moves the text before Close.
type TreeView struct {
	*View
	rows *TreeRows
}

// TreeCost counts the work of a view and its forks.
type TreeCost struct {
	Bytes    int // of the view's text
	Forwards int // steps that rows were asked of
	Rows     int // rows of these
}

// OpenTree returns a view behind a sequence's text.
func OpenTree(v *Vocabulary, s *engine.Sequence) *TreeView {
	rows := NewTree(s)
	return &TreeView{v.New(rows, s.Tokens()), rows}
}

// TreeBeam returns a view with a beam behind a sequence's text.
func TreeBeam(v *Vocabulary, s *engine.Sequence, b Beam) *TreeView {
	rows := NewTree(s)
	return &TreeView{v.Beam(rows, b), rows}
}

// Fork returns a view that goes on from the same text by itself.
func (w *TreeView) Fork() *TreeView { return &TreeView{w.View.Fork(), w.rows} }

// Cost returns what the view and its forks took so far.
func (w *TreeView) Cost() TreeCost { return TreeCost{len(w.Text()), w.rows.Forwards, w.rows.Tokens} }

// Close gives the sequence the text that it had before.
func (w *TreeView) Close() error { return w.rows.End() }
