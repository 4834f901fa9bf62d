package module

import (
	"context"
	"errors"

	"grove/method"
	"grove/method/grow"
)

// Masked is the common part of sources whose passes run masks behind a text: a pass knows no draft, and nothing of it serves the next one. With Depths, Memory and Close it is a
// [Ranked]. It is for one goroutine.
type Masked struct {
	Size       method.Size // of the model that runs the rows
	Vocabulary int         // of the target
	Masks      int         // of a pass at most
	Text       *method.History
	Trunk      method.Trunk // behind which rows run; nil: it is not open
	Rows       []method.Row // of the next pass
	got        []method.Result
	ran        method.Ran
}

// Begin implements [Following].
func (m *Masked) Begin(h *method.History) error {
	m.Text = h
	return nil
}

// Committed implements [Following]: the text says all.
func (m *Masked) Committed(method.Update) error { return nil }

// Most implements [Ranked].
func (m *Masked) Most() int { return m.Masks }

// Pass runs Rows, of which n from first on have logits, and drops them. It returns first and n.
func (m *Masked) Pass(ctx context.Context, first, n int) (_, _ int, err error) {
	for i := range n {
		m.Rows[first+i].Want.Logits = true
	}
	m.ran.Pass(m.Rows, m.Size, 1)
	m.got, err = m.Trunk.Grow(ctx, m.Rows)
	return first, n, errors.Join(err, m.Trunk.Drop())
}

// Logits implements [Ranked].
func (m *Masked) Logits(i int) []float32 { return m.got[i].Logits[:m.Vocabulary] }

// Held implements [Following].
func (m *Masked) Held() method.Memory { return method.Memory{Logits: grow.HeldBytes(m.Trunk)} }

// Ran implements [method.Counter].
func (m *Masked) Ran() method.Ran { return m.ran }
