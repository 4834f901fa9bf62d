// clover.go drafts with a recurrent head (Clover, Xiao et al. 2024; Clover-2, Xiao et al. 2024).
//
// Layers of the module read the target's states and make a state of the text. Each draft makes the next state of its parent's and of its own token, without
// attention: so a draft costs the same behind a long text as behind a short one. The tree grows level by level, by the best drafts so far, while that pays; the
// paper's is fixed. Drafts above temperature 0 are those that the random numbers of the text draw from the head's logits, and the rule is match.

package heads

import (
	"context"

	"grove/internal/forest"
	"grove/method"
	"grove/method/grow"
	"grove/method/module"
)

// cloverShape is best first. The published head was trained for five drafts.
var cloverShape = grow.Shape{Ranks: []int{4}, Beam: 4, Depth: 5}

func init() {
	method.Register(module.Family{Name: "clover"}.Method(method.Info{
		Name: "clover", Paper: "Clover and Clover-2: a recurrent head, 2024", RunsRows: true, NotAuto: "no trained heads were at hand",
	}, nil, func(m *method.Module, vocabulary int, _ []int) method.Drafter {
		return module.NewDrafter(cloverShape, &cloverSource{Heads: module.NewHeads(m, vocabulary), layers: m.Prefix}, m, vocabulary)
	}))
}

// cloverSource gives the head's logits behind the text and behind drafts.
type cloverSource struct {
	*module.Heads
	layers int // of the module that read the text; the next ones are the cell, the head behind the text, and that behind a draft
	rows   []method.Row
	states []float32   // of the text, and of the drafts that were expanded
	places grow.Places // of the states of drafts, counted from 0
}

// Root implements [grow.LogitSource].
func (s *cloverSource) Root(ctx context.Context) (bool, error) {
	if ok, err := s.Read(ctx); !ok || err != nil {
		return false, err
	}
	if room, _ := s.Room(); room < 1 {
		return false, nil
	}
	row := s.Row(1)
	s.states = append(s.states[:0], row.Vector...)
	s.rows = append(s.rows[:0], row)
	return true, s.Run(ctx, s.rows)
}

// Expand implements [grow.LogitSource].
func (s *cloverSource) Expand(ctx context.Context, t *method.Tree, drafts []int) error {
	s.rows = s.rows[:0]
	width := s.Size.Width
	for i, at := range drafts {
		n, state := &t.Nodes()[at], 0
		if n.Parent != method.Root {
			state = s.places[n.Parent]
		}
		s.rows = append(s.rows, method.Row{Row: forest.Row{
			ID: n.ID, Vector: s.states[state*width:][:width], Skip: forest.LayerRange(0, s.layers).With(s.layers + 1),
			Want: forest.Want{Logits: true, Hidden: forest.Layers{}.With(s.layers)},
		}})
		s.places.Set(at, len(s.states)/width+i)
	}
	if err := s.Run(ctx, s.rows); err != nil {
		return err
	}
	for i := range drafts {
		s.states = append(s.states, s.Result(i).Hidden[0]...)
	}
	return nil
}

// Room implements [grow.LogitSource]: the head drafts behind each draft.
func (s *cloverSource) Room() (drafts, depth int) {
	drafts, _ = s.Heads.Room()
	return drafts, cloverShape.Depth
}
