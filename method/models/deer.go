// deer.go drafts with a model of masked diffusion (DEER, 2025): behind the text stand masks, one pass gives a distribution of each, and the likeliest paths are the tree.
//
// The draft model knows nothing of the target but the vocabulary. Its rows all see each other, so no key of a pass serves the next one: a pass runs the text's last tokens and the masks. What it
// gives at a mask does not know the drafts before, as that of heads does not.

package models

import (
	"context"
	"errors"
	"fmt"

	"grove/internal/forest"
	"grove/method"
	"grove/method/grow"
	"grove/method/module"
)

// deerRanks and drafts bound the tree: candidates of a depth, and all drafts.
const deerRanks, drafts = 4, 32

// deerOptions are what a user may choose. The paper drafts up to 32 tokens; on a processor, which pays for each row, less is more.
var deerOptions = []method.Option{
	{Name: "masks", Is: "N, the tokens that a pass drafts", Usual: 8, Least: 1, Most: 64},
	{Name: "window", Is: "N, the last tokens of the text that it reads", Usual: 256, Least: 1, Most: 1 << 16},
}

func init() {
	method.Register(method.Info{
		Name: "deer", Paper: "DEER: a diffusion model drafts in one pass, 2025", Kind: method.KindModel, Grade: method.Exact, RunsRows: true,
		NotAuto: "no trained diffusion model was at hand",
		Needs:   "a draft model of masked diffusion with the vocabulary (--draft)", CheckNeeds: deerMeets,
	}.Takes(deerOptions, func(e method.Env, n []int) (method.Method, error) {
		return &deer{e.Draft, e.Vocabulary, n[0], n[1]}, nil
	}))
}

// deerMeets checks that the draft model is one of masked diffusion, of the target's vocabulary.
func deerMeets(e method.Env) error {
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
	s := &source{Masked: module.Masked{Size: m.model.Size(), Vocabulary: m.vocabulary, Masks: m.masks}, deer: m}
	return module.NewProduct(s, method.Wants{}, deerRanks, drafts, m.vocabulary), nil
}

// source runs passes over the text's end and masks. It is a [module.Ranked].
type source struct {
	module.Masked
	deer   *deer
	branch method.Branch // the trunk; nil: it is not open
}

// open opens a sequence of the draft model; false: none is free.
func (s *source) open() (ok bool, err error) {
	if s.branch != nil {
		return true, nil
	}
	b, err := s.deer.model.Open()
	if err != nil {
		if errors.Is(err, method.ErrBusy) {
			err = nil
		}
		return false, err
	}
	s.branch, s.Trunk = b, b
	return true, nil
}

// Depths implements [module.Ranked]. Nothing is drafted while no slot is free.
func (s *source) Depths(ctx context.Context, depth int) (first, n int, err error) {
	if ok, err := s.open(); !ok {
		return 0, 0, err
	}
	ids, most := s.Text.IDs(), min(s.Size.Rows, s.Size.Context)
	if n = min(s.Masks, depth, most-1); n < 1 || len(ids) == 0 {
		return 0, 0, nil
	}
	at := max(0, len(ids)-s.deer.window, len(ids)+n-most)
	ids = ids[at:]
	s.Rows = s.Rows[:0]
	for i := range len(ids) + n {
		row := forest.Row{ID: s.Size.Canvas.Mask, Block: 1}
		if b := s.Size.Canvas.Block; b > 0 {
			row.Block += (at + i) / b // blocks begin at the text's beginning
		}
		if i < len(ids) {
			row.ID = ids[i]
		}
		s.Rows = append(s.Rows, method.Row{Row: row, After: i})
	}
	if first = len(ids); s.Size.Canvas.Shift {
		first--
	}
	return s.Pass(ctx, first, n)
}

// Memory implements [module.Following].
func (s *source) Memory(rows int) method.Memory { return grow.PassMemory(s.Size, rows, false) }

// Close gives the sequence back.
func (s *source) Close() error {
	if s.branch == nil {
		return nil
	}
	return s.branch.Close()
}
