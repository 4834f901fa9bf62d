// Package chimera drafts with heads that read all tokens of the text and of the path (Chimera, Zeng et al. 2024).
//
// A layer of the module reads the target's states of the text, and behind them a trigram for each token since: one that is made of the embeddings of the token and the
// two before it. What the layer gives of a token's trigram stands for its state, and a head reads it with the last state that is known. So a draft knows all drafts
// before it, as Hydra's does, and the whole text, as EAGLE's does; but no draft's row waits for what its parent's has given. The tree grows level by level, by the best
// drafts so far, while that pays; the paper's is fixed. Drafts above temperature 0 are those that the random numbers of the text draw from the heads' logits, and the
// rule is match.
package chimera

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
		Name: "chimera", Paper: "Chimera: heads that read all tokens, 2024", Kind: method.KindHeads, Grade: method.Exact, RunsRows: true, Auto: true,
		Needs: "heads of the family chimera (--heads)", CheckNeeds: method.MeetsModule("chimera"),
		Open: func(e method.Env) (method.Method, error) { return chimera{e.Module("chimera"), e.Vocabulary}, nil },
	})
}

// chimera is the heads.
type chimera struct {
	module     *method.Module
	vocabulary int
}

// NewDrafter implements [method.Method].
func (m chimera) NewDrafter(method.Trunk) (method.Drafter, error) {
	of := shape
	of.Depth = m.module.Heads
	return module.NewDrafter(of, newSource(m.module, m.vocabulary), m.module, m.vocabulary), nil
}

// source gives the heads' logits: those of the first head behind the text, and those of the next one behind a draft. The row of the text's last token hangs from the
// trunk's end, and that of a draft from its parent's.
type source struct {
	*module.Heads
	text   *method.History
	skip   []forest.Layers // by depth: the layers of other heads
	rows   []method.Row
	before []forest.Weighted // the tokens before those of rows, two for each
	places []int             // by place in the tree: in Live
}

func newSource(m *method.Module, vocabulary int) *source {
	s := &source{Heads: module.NewHeads(m, vocabulary)}
	first := s.Size.Layers - m.Heads
	for k := range m.Heads {
		s.skip = append(s.skip, forest.LayerRange(first, first+k).Union(forest.LayerRange(first+k+1, s.Size.Layers)))
	}
	return s
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
	s.begin(len(drafts))
	for i, at := range drafts {
		s.add(t, at)
		for len(s.places) <= at {
			s.places = append(s.places, grow.None)
		}
		s.places[at] = len(s.Live) + i
	}
	return s.Run(ctx, s.rows)
}

// begin makes room for so many rows.
func (s *source) begin(rows int) {
	s.rows, s.before = s.rows[:0], s.before[:0]
	if cap(s.before) < 2*rows {
		s.before = make([]forest.Weighted, 0, 4*rows)
	}
}

// add adds the row of a draft, or of the text's last token.
func (s *source) add(t *method.Tree, draft int) {
	path := s.path(t, draft)
	s.before = append(s.before, path[0], path[1]) // begin made room: rows before keep their tokens
	depth, n := t.DepthOf(draft), len(s.before)
	row := s.Row(depth)
	row.ID, row.Mix, row.Skip, row.To = path[2].ID, s.before[n-2:n:n], s.skip[depth], 0
	if draft != method.Root {
		over := 0 // the row of the text's last token
		if parent := int(t.Nodes()[draft].Parent); parent != method.Root {
			over = s.places[parent]
		}
		row.Parent = s.Live[over].Node
	}
	s.rows = append(s.rows, row)
}

// path returns the last three tokens down to a draft. Before the text's first token stands that token again.
func (s *source) path(t *method.Tree, draft int) (path [3]forest.Weighted) {
	n := len(path)
	for ; n > 0 && draft != method.Root; n-- {
		node := &t.Nodes()[draft]
		path[n-1].ID, draft = node.ID, int(node.Parent)
	}
	ids := s.text.IDs()
	for i := len(ids) - 1; n > 0; i, n = i-1, n-1 {
		path[n-1].ID = ids[max(0, i)]
	}
	return path
}

// Room implements [grow.LogitSource]: rows of drafts stand behind their parents'.
func (s *source) Room() (drafts, depth int) {
	drafts, depth = s.Heads.Room()
	_, behind := s.Source.Room()
	return drafts, min(depth, behind-1)
}
