package tree

import (
	"grove/bytewise"
	"grove/engine"
)

// View is a view of bytes behind the text of a sequence. Its forks share the sequence and what is computed; one of them is closed. It is for the sequence's
// goroutine, and nothing else moves the text before Close.
type View struct {
	*bytewise.View
	rows *Rows
}

// Cost counts the work of a view and its forks.
type Cost struct {
	Bytes    int // of the view's text
	Forwards int // steps that rows were asked of
	Rows     int // rows of these
}

// Open returns a view behind a sequence's text.
func Open(v *bytewise.Vocabulary, s *engine.Sequence) *View {
	rows := New(s)
	return &View{v.New(rows, s.Tokens()), rows}
}

// Beam returns a view with a beam behind a sequence's text.
func Beam(v *bytewise.Vocabulary, s *engine.Sequence, b bytewise.Beam) *View {
	rows := New(s)
	return &View{v.Beam(rows, b), rows}
}

// Fork returns a view that goes on from the same text by itself.
func (w *View) Fork() *View { return &View{w.View.Fork(), w.rows} }

// Cost returns what the view and its forks took so far.
func (w *View) Cost() Cost { return Cost{len(w.Text()), w.rows.Forwards, w.rows.Tokens} }

// Close gives the sequence the text that it had before.
func (w *View) Close() error { return w.rows.End() }
