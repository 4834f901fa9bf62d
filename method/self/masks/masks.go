// Package masks drafts with the target's own masks, of a model of blocks that decodes token by token: a pass runs the text's last token and a block of masks behind it, and what each
// mask gives is drafted (self-speculation of block diffusion by its autoregressive mode).
//
// The rows hang from the text's own trunk and see its keys, which are those of blocks of one token. What a mask gives does not know the drafts before, as that of heads does not.
package masks

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"grove/forest"
	"grove/method"
	"grove/method/grow"
	"grove/method/module"
)

// ranks and drafts bound the tree: candidates of a depth, and all drafts. most is the option's bound.
const ranks, drafts, most = 3, 24, 32

func init() {
	method.Register(method.Info{
		Name: "masks", Paper: "a model of blocks drafts with its own masks (SDAR, 2025; BD3-LM, 2025)", Kind: method.KindSelf, Grade: method.Exact, RunsRows: true,
		NotAuto: "no trained model of blocks was at hand",
		Needs:   "a model of blocks that decodes token by token (--block 1)", CheckNeeds: meets, Open: opener(0), WithOption: set, Options: "tokens=N",
	})
}

// meets returns an error where the target has no masks.
func meets(e method.Env) error {
	if e.Target != nil && e.Target.Size().Canvas != nil && e.Target.Size().Canvas.Block > 0 {
		return nil
	}
	return method.ErrNeeds
}

// set reads the option.
func set(option string) (func(method.Env) (method.Method, error), string, error) {
	text, ok := strings.CutPrefix(option, "tokens=")
	n, err := strconv.Atoi(text)
	if !ok || err != nil || n < 1 || n > most {
		return nil, "", fmt.Errorf("option %q is not known; use tokens=N, the tokens that a pass drafts, from 1 to %d", option, most)
	}
	return opener(n), option, nil
}

// opener opens the method with a number of drafts of a pass; 0: those of a block.
func opener(tokens int) func(method.Env) (method.Method, error) {
	return func(e method.Env) (method.Method, error) {
		m := &masks{size: e.Target.Size(), tokens: tokens}
		if tokens == 0 {
			m.tokens = min(m.size.Canvas.Block, most)
		}
		return m, nil
	}
}

type masks struct {
	size   method.Size
	tokens int
}

// NewDrafter implements [method.Method].
func (m *masks) NewDrafter(own method.Trunk) (method.Drafter, error) {
	if own == nil {
		return nil, fmt.Errorf("%w: the answer is on record", method.ErrNeeds)
	}
	return module.NewProduct(&source{masks: m, own: own}, method.Wants{}, ranks, drafts, m.size.Vocabulary), nil
}

// source runs passes over the text's last token and masks. It is a [module.Ranked].
type source struct {
	*masks
	own  method.Trunk
	text *method.History
	rows []method.Row
	got  []method.Result
	ran  method.Ran
}

// Begin implements [module.Following].
func (s *source) Begin(h *method.History) error {
	s.text = h
	return nil
}

// Committed implements [module.Following]: the trunk has what the text says.
func (s *source) Committed(method.Update) error { return nil }

// Most implements [module.Ranked].
func (s *source) Most() int { return s.tokens }

// Depths implements [module.Ranked]. With a shifted head the text's last token gives the first depth, and else the first mask.
func (s *source) Depths(ctx context.Context, depth int) (first, n int, err error) {
	at := len(s.text.IDs()) - s.text.SourceLen
	if !s.size.Canvas.Shift {
		first = 1
	}
	if n = min(s.tokens, depth, min(s.size.Rows, s.size.MostLive(), s.size.Context-at+1)-first); n < 1 || at == 0 {
		return 0, 0, nil
	}
	s.rows = append(s.rows[:0], method.Row{Row: forest.Row{ID: s.text.Last(0)}})
	for i := 1; i < first+n; i++ {
		s.rows = append(s.rows, method.Row{Row: forest.Row{ID: s.size.Canvas.Mask, Block: 1}, After: i})
	}
	for i := range n {
		s.rows[first+i].Want.Logits = true
	}
	s.ran.Pass(s.rows, s.size, 1)
	s.got, err = s.own.Grow(ctx, s.rows)
	return first, n, errors.Join(err, s.own.Drop())
}

// Logits implements [module.Ranked].
func (s *source) Logits(i int) []float32 { return s.got[i].Logits }

// Memory implements [module.Following].
func (s *source) Memory(rows int) method.Memory { return grow.PassMemory(s.size, rows+1, false) }

// Held implements [module.Following].
func (s *source) Held() method.Memory {
	if t, ok := s.own.(interface{ HeldBytes() int }); ok {
		return method.Memory{Logits: t.HeldBytes()}
	}
	return method.Memory{}
}

// Ran implements [method.Counter].
func (s *source) Ran() method.Ran { return s.ran }

// Close implements [module.Following]: the trunk is the text's.
func (*source) Close() error { return nil }
