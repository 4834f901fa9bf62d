// path.go drafts with heads that read the tokens down to a draft: those of Hydra (Ankner et al. 2024) and of Chimera (Zeng et al. 2024).
//
// Hydra's head k reads what the target's last state says of the text and the embeddings of the tokens since, the text's last one and k drafts. So a draft fits the
// drafts before it, which Medusa's does not. The module of Hydra++ has a layer that reads the states of the whole text, and what it gives stands for the last state.
//
// A layer of Chimera's module reads the target's states of the text, and behind them a trigram for each token since: one that is made of the embeddings of the token and the
// two before it. What the layer gives of a token's trigram stands for its state, and a head reads it with the last state that is known. So a draft knows all drafts
// before it, as Hydra's does, and the whole text, as EAGLE's does; but no draft's row waits for what its parent's has given.
//
// The tree grows level by level, by the best drafts so far, while that pays; the papers' are fixed. Drafts above temperature 0 are those that the
// random numbers of the text draw from the heads' logits, and the rule is match.

package heads

import (
	"context"

	"grove/internal/forest"
	"grove/method"
	"grove/method/grow"
	"grove/method/module"
)

// pathShape is best first, as deep as there are heads.
var pathShape = grow.Shape{Ranks: []int{4}, Beam: 4}

func init() {
	pathRegister("hydra", "Hydra and Hydra++: heads that read the drafts before theirs, 2024", false)
	pathRegister("chimera", "Chimera: heads that read all tokens, 2024", true)
}

// pathRegister adds a method that drafts with the modules of its name, whose rows are of trigrams or of whole paths.
func pathRegister(name, paper string, trigrams bool) {
	method.Register(module.Family{Name: name}.Method(method.Info{Name: name, Paper: paper, RunsRows: true, Auto: true}, nil, func(m *method.Module, vocabulary int, _ []int) method.Drafter {
		of := pathShape
		of.Depth = m.Heads
		return module.NewDrafter(of, newSource(m, vocabulary, trigrams), m, vocabulary)
	}))
}

// trigram is the tokens of a trigram.
const trigram = 3

// pathSource gives the heads' logits: those of the first head behind the text, and those of the next one behind a draft. A row of a path hangs from the trunk's end. Of rows of trigrams,
// that of the text's last token does, and that of a draft hangs from its parent's.
type pathSource struct {
	*module.Heads
	trigrams bool
	text     *method.History
	skip     []forest.Layers // by depth: the layers of other heads
	longest  int             // tokens that a row reads at most
	rows     []method.Row
	read     []forest.Weighted // tokens that rows read
	places   grow.Places       // of drafts in Live
}

func newSource(m *method.Module, vocabulary int, trigrams bool) *pathSource {
	s := &pathSource{Heads: module.NewHeads(m, vocabulary), trigrams: trigrams, longest: max(trigram, m.Heads)}
	for k := range m.Heads {
		first := s.Size.Layers - m.Heads
		s.skip = append(s.skip, forest.LayerRange(first, first+k).Union(forest.LayerRange(first+k+1, s.Size.Layers)))
	}
	return s
}

// Begin implements [module.Following].
func (s *pathSource) Begin(h *method.History) error {
	s.text = h
	return s.Heads.Begin(h)
}

// Root implements [grow.LogitSource].
func (s *pathSource) Root(ctx context.Context) (bool, error) {
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
func (s *pathSource) Expand(ctx context.Context, t *method.Tree, drafts []int) error {
	s.begin(len(drafts))
	for i, at := range drafts {
		s.add(t, at)
		s.places.Set(at, len(s.Live)+i)
	}
	return s.Run(ctx, s.rows)
}

// begin makes room for so many rows.
func (s *pathSource) begin(rows int) {
	s.rows, s.read = s.rows[:0], s.read[:0]
	if cap(s.read) < s.longest*rows {
		s.read = make([]forest.Weighted, 0, 2*s.longest*rows)
	}
}

// add adds the row of a draft, or of the text's last token.
func (s *pathSource) add(t *method.Tree, draft int) {
	depth := t.DepthOf(draft)
	row := s.Row(depth)
	if !s.trigrams {
		row.Mix = s.path(t, draft, depth+1)
	} else {
		path := s.path(t, draft, trigram)
		row.ID, row.Mix, row.Skip, row.To = path[trigram-1].ID, path[:trigram-1], s.skip[depth], 0
		if draft != method.Root {
			over := 0 // the row of the text's last token
			if parent := int(t.Nodes()[draft].Parent); parent != method.Root {
				over = s.places[parent]
			}
			row.Parent = s.Live[over].Node
		}
	}
	s.rows = append(s.rows, row)
}

// path returns the last n tokens down to a draft. Before the text's first token stands that token again.
func (s *pathSource) path(t *method.Tree, draft, n int) []forest.Weighted {
	first := len(s.read)
	s.read = s.read[:first+n] // begin made room: rows before keep their tokens
	path := s.read[first : first+n : first+n]
	for ; n > 0 && draft != method.Root; n-- {
		node := &t.Nodes()[draft]
		path[n-1], draft = forest.Weighted{ID: node.ID}, int(node.Parent)
	}
	ids := s.text.IDs()
	for i := len(ids) - 1; n > 0; i, n = i-1, n-1 {
		path[n-1] = forest.Weighted{ID: ids[max(0, i)]}
	}
	return path
}

// Room implements [grow.LogitSource]: rows of trigrams stand behind their parents'.
func (s *pathSource) Room() (drafts, depth int) {
	drafts, depth = s.Heads.Room()
	if s.trigrams {
		_, behind := s.Source.Room()
		depth = min(depth, behind-1)
	}
	return drafts, depth
}
