// Package hydra drafts with heads that read the drafts before their own (Hydra, Ankner et al. 2024).
//
// Head k reads what the target's last state says of the text and the embeddings of the tokens since, the text's last one and k drafts. So a draft fits the
// drafts before it, which Medusa's does not. The tree grows level by level, by the best drafts so far, while that pays; the paper's is fixed. The module of
// Hydra++ has a layer that reads the states of the whole text, and what it gives stands for the last state. Drafts above temperature 0 are those that the
// random numbers of the text draw from the heads' logits, and the rule is match.
package hydra

import (
	"context"

	"grove/forest"
	"grove/method"
	"grove/method/grow"
	"grove/method/module"
)

// shape is best first, as deep as there are heads.
var shape = grow.Shape{Ranks: []int{4}, Beam: 4}

func init() {
	method.Register(method.Info{
		Name: "hydra", Paper: "Hydra and Hydra++: heads that read the drafts before theirs, 2024", Kind: method.KindHeads, Grade: method.Exact, RunsRows: true, Auto: true,
		Needs: "heads of the family hydra (--heads)", CheckNeeds: method.MeetsModule("hydra"),
		Open: func(e method.Env) (method.Method, error) { return hydra{e.Module("hydra"), e.Vocabulary}, nil },
	})
}

// hydra is the heads.
type hydra struct {
	module     *method.Module
	vocabulary int
}

// NewDrafter implements [method.Method].
func (m hydra) NewDrafter(method.Trunk) (method.Drafter, error) {
	of := shape
	of.Depth = m.module.Heads
	return module.NewDrafter(of, &source{Heads: module.NewHeads(m.module, m.vocabulary)}, m.module, m.vocabulary), nil
}

// source gives the heads' logits: those of the first head behind the text, and those of the next one behind a draft.
type source struct {
	*module.Heads
	text *method.History
	rows []method.Row
	read []forest.Weighted // tokens that rows read
}

// Begin implements [module.Following].
func (s *source) Begin(h *method.History) error {
	s.text = h
	return s.Heads.Begin(h)
}

// Root implements [grow.LogitSource].
func (s *source) Root(ctx context.Context) (bool, error) {
	if ok, err := s.Read(ctx); !ok || err != nil {
		return false, err
	}
	if room, _ := s.Room(); room < 1 {
		return false, nil
	}
	s.begin(1)
	s.add(nil, method.Root)
	return true, s.Run(ctx, s.rows)
}

// Expand implements [grow.LogitSource].
func (s *source) Expand(ctx context.Context, t *method.Tree, drafts []int) error {
	n := 0
	for _, at := range drafts {
		n += 1 + t.DepthOf(at)
	}
	s.begin(n)
	for _, at := range drafts {
		s.add(t, at)
	}
	return s.Run(ctx, s.rows)
}

// begin makes room for rows that read so many tokens.
func (s *source) begin(tokens int) {
	s.rows, s.read = s.rows[:0], s.read[:0]
	if cap(s.read) < tokens {
		s.read = make([]forest.Weighted, 0, 2*tokens)
	}
}

// add adds the row behind a draft, or behind the text: it reads the text's last token and the drafts down to that one.
func (s *source) add(t *method.Tree, draft int) {
	depth := 0
	if draft != method.Root {
		depth = t.DepthOf(draft)
	}
	first := len(s.read)
	s.read = s.read[:first+depth+1] // begin made room: rows before keep their tokens
	path := s.read[first:]
	for i := depth; i > 0; i-- {
		n := &t.Nodes()[draft]
		path[i] = forest.Weighted{ID: n.ID}
		draft = int(n.Parent)
	}
	path[0] = forest.Weighted{ID: s.text.Last(0)}
	row := s.Row(depth)
	row.Mix = path[: depth+1 : depth+1]
	s.rows = append(s.rows, row)
}
