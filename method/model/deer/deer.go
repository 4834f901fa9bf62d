// Package deer drafts with a model of masked diffusion (DEER, 2025): behind the text stand masks, one pass gives a distribution of each, and the likeliest paths are the tree.
//
// The draft model knows nothing of the target but the vocabulary. Its rows all see each other, so no key of a pass serves the next one: a pass runs the text's last tokens and the masks. What it
// gives at a mask does not know the drafts before, as that of heads does not.
package deer

import (
	"context"
	"errors"
	"fmt"

	"grove/forest"
	"grove/method"
	"grove/method/grow"
	"grove/method/module"
)

// ranks and drafts bound the tree: candidates of a depth, and all drafts.
const ranks, drafts = 4, 32

// options are what a user may choose. The paper drafts up to 32 tokens; on a processor, which pays for each row, less is more.
var options = []method.Option{
	{Name: "masks", Is: "N, the tokens that a pass drafts", Usual: 8, Least: 1, Most: 64},
	{Name: "window", Is: "N, the last tokens of the text that it reads", Usual: 256, Least: 1, Most: 1 << 16},
}

func init() {
	method.Register(method.Info{
		Name: "deer", Paper: "DEER: a diffusion model drafts in one pass, 2025", Kind: method.KindModel, Grade: method.Exact, RunsRows: true,
		NotAuto: "no trained diffusion model was at hand",
		Needs:   "a draft model of masked diffusion with the vocabulary (--draft)", CheckNeeds: meets,
	}.Takes(options, func(e method.Env, n []int) (method.Method, error) {
		return &deer{e.Draft, e.Vocabulary, n[0], n[1]}, nil
	}))
}

// meets checks that the draft model is one of masked diffusion, of the target's vocabulary.
func meets(e method.Env) error {
	switch {
	case e.Draft == nil:
		return method.ErrNeeds
	case e.Draft.Size().Canvas == nil:
		return fmt.Errorf("%w; the draft model is none of masked diffusion", method.ErrNeeds)
	case e.VocabMap.Mapping() != method.SameVocabulary:
		return fmt.Errorf("%w; the draft model's vocabulary is another: %v", method.ErrNeeds, e.VocabMap)
	}
	return nil
}

// deer is a diffusion model that drafts.
type deer struct {
	model      method.Model
	vocabulary int
	masks      int // of a pass at most
	window     int // tokens of the text that a pass reads at most
}

// NewDrafter implements [method.Method].
func (m *deer) NewDrafter(method.Trunk) (method.Drafter, error) {
	return module.NewProduct(&source{deer: m, size: m.model.Size()}, method.Wants{}, ranks, drafts, m.vocabulary), nil
}

// source runs passes over the text's end and masks. It is a [module.Ranked].
type source struct {
	*deer
	size   method.Size
	text   *method.History
	branch method.Branch // nil: it is not open
	rows   []method.Row
	got    []method.Result
	ran    method.Ran
}

// Begin implements [module.Following].
func (s *source) Begin(h *method.History) error {
	s.text = h
	return nil
}

// Committed implements [module.Following]: the text says all.
func (s *source) Committed(method.Update) error { return nil }

// Most implements [module.Ranked].
func (s *source) Most() int { return s.masks }

// Depths implements [module.Ranked]. Nothing is drafted while no slot is free.
func (s *source) Depths(ctx context.Context, depth int) (first, n int, err error) {
	if s.branch == nil {
		b, err := s.model.Open()
		if errors.Is(err, method.ErrBusy) {
			return 0, 0, nil
		}
		if err != nil {
			return 0, 0, err
		}
		s.branch = b
	}
	ids := s.text.IDs()
	if n = min(s.masks, depth, min(s.size.Rows, s.size.Context)-1); n < 1 || len(ids) == 0 {
		return 0, 0, nil
	}
	at := max(0, len(ids)-s.window, len(ids)+n-min(s.size.Rows, s.size.Context))
	ids = ids[at:]
	s.rows = s.rows[:0]
	for i := range len(ids) + n {
		row := forest.Row{ID: s.size.Canvas.Mask, Block: 1}
		if b := s.size.Canvas.Block; b > 0 {
			row.Block += (at + i) / b // blocks begin at the text's beginning
		}
		if i < len(ids) {
			row.ID = ids[i]
		}
		s.rows = append(s.rows, method.Row{Row: row, After: i})
	}
	if first = len(ids); s.size.Canvas.Shift {
		first--
	}
	for i := range n {
		s.rows[first+i].Want.Logits = true
	}
	s.ran.Pass(s.rows, s.size, 1)
	if s.got, err = s.branch.Grow(ctx, s.rows); err != nil {
		return 0, 0, errors.Join(err, s.branch.Drop())
	}
	return first, n, s.branch.Drop()
}

// Logits implements [module.Ranked].
func (s *source) Logits(i int) []float32 { return s.got[i].Logits[:s.vocabulary] }

// Memory implements [module.Following].
func (s *source) Memory(rows int) method.Memory { return grow.PassMemory(s.size, rows, false) }

// Held implements [module.Following].
func (s *source) Held() method.Memory {
	if t, ok := s.branch.(interface{ HeldBytes() int }); ok {
		return method.Memory{Logits: t.HeldBytes()}
	}
	return method.Memory{}
}

// Ran implements [method.Counter].
func (s *source) Ran() method.Ran { return s.ran }

// Close gives the sequence back.
func (s *source) Close() error {
	if s.branch == nil {
		return nil
	}
	return s.branch.Close()
}
