package module

import (
	"context"
	"errors"

	"grove/internal/forest"
	"grove/method"
	"grove/method/grow"
)

// Predictors is a [Growing] of the predictors of a model's file, of which the first drafts the first token behind the text, the second the next one, and so on; the
// last drafts all further ones, as a [Source] does. Each has a sequence of its own. It is for one goroutine.
//
// A row of predictor p has the feature of a token and the token 1+p places behind that, and gives the logits of the one behind. So the rows of the text are p
// fewer than those of the first, and the first p tokens of a draft's path are rows that have features of the text, too: the target's last ones
// (MiMo), or, where the predictors are chained (DeepSeek-AI 2024, DeepSeek-V3, section 2.2), what the predictor before gave. A draft's row
// therefore needs those of its path, which run beside it.
type Predictors struct {
	sources []*Source
	chained bool
	ready   int // those that draft in this round
	last    []drawn
	up      []int // the path of a draft, itself first
}

// drawn is where the logits of a draft of the last pass are.
type drawn struct{ source, row int }

// NewPredictors returns the predictors of a file, of which m is the first, for a target's vocabulary.
func NewPredictors(m *method.Module, vocabulary int) *Predictors {
	c := &Predictors{sources: []*Source{NewSource(m, vocabulary)}, chained: m.Chained, ready: 1}
	for i, next := range m.Next {
		s := NewSource(next, vocabulary)
		s.ahead, s.rest = i+1, i+1
		if c.chained {
			s.rest, c.sources[i].feeds = 1, s
		}
		c.sources = append(c.sources, s)
	}
	return c
}

// Begin implements [Following].
func (c *Predictors) Begin(h *method.History) (err error) {
	for _, s := range c.sources {
		err = errors.Join(err, s.Begin(h))
	}
	return err
}

// Committed implements [Following].
func (c *Predictors) Committed(r method.Update) (err error) {
	for i, s := range c.sources {
		if i == 0 || !c.chained {
			err = errors.Join(err, s.Committed(r))
		}
	}
	return err
}

// Root implements [grow.LogitSource]: the predictors run the rows of the text that are new. Those from one on whose features are not known do not draft in this round.
func (c *Predictors) Root(ctx context.Context) (bool, error) {
	c.ready, c.last = 0, append(c.last[:0], drawn{})
	for _, s := range c.sources {
		ok, err := s.Root(ctx)
		if err != nil {
			return false, err
		}
		if !ok {
			break
		}
		c.ready++
	}
	return c.ready > 0, nil
}

// BeginRound implements [Growing]: a round begins with Root.
func (c *Predictors) BeginRound(*method.Tree) bool { return true }

// Expand implements [grow.LogitSource].
func (c *Predictors) Expand(ctx context.Context, t *method.Tree, drafts []int) error {
	c.last = c.last[:0]
	for range drafts {
		c.last = append(c.last, drawn{grow.None, 0})
	}
	for p, s := range c.sources[:c.ready] {
		s.rows = s.rows[:0]
		from := len(s.Live)
		for i, at := range drafts {
			c.path(t, at)
			if p != min(len(c.up), c.ready-1) {
				continue
			}
			for j := len(c.up) - 1; j >= 0; j-- {
				c.add(p, from, t, len(c.up)-j, c.up[j])
			}
			row := len(s.rows) - 1
			s.rows[row].Want.Logits = true
			c.last[i] = drawn{p, row}
		}
		if len(s.rows) == 0 {
			continue
		}
		if err := s.Grow(ctx, s.rows); err != nil {
			return err
		}
		for i := range s.rows {
			s.Live[from+i].Node = s.Result(i).Node
		}
		s.keepOwn(len(s.rows))
	}
	return nil
}

// path finds the path of a draft.
func (c *Predictors) path(t *method.Tree, at int) {
	for c.up = c.up[:0]; at != method.Root; at = int(t.Nodes()[at].Parent) {
		c.up = append(c.up, at)
	}
}

// add adds the row of a draft of a depth to the next pass of predictor p, whose live rows are from before, unless it has the row.
func (c *Predictors) add(p, from int, t *method.Tree, depth, at int) {
	s, n := c.sources[p], &t.Nodes()[at]
	if at < len(s.places) && s.places[at] != grow.None {
		return
	}
	l, row := grow.LiveRow{ID: n.ID, Parent: grow.None}, method.Row{Row: forest.Row{ID: n.ID, Want: forest.Want{State: true}}}
	if n.Parent != method.Root {
		if l.Parent = s.places[n.Parent]; l.Parent >= from {
			row.After = l.Parent - from + 1
		} else {
			row.Parent = s.Live[l.Parent].Node
		}
	}
	row.Vector = c.feature(p, depth, int(n.Parent))
	s.places.Set(at, len(s.Live))
	s.rows, s.Live = append(s.rows, row), append(s.Live, l)
}

// feature returns the feature of a draft's row of a depth in predictor p, behind a place of the tree. It is valid until the next round.
func (c *Predictors) feature(p, depth, parent int) []float32 {
	s, width := c.sources[p], c.sources[p].width
	switch {
	case depth > p && parent == method.Root:
		return s.own[:width]
	case depth > p:
		return s.own[(1+s.places[parent])*width:][:width]
	case c.chained && depth > 1:
		before := c.sources[p-1]
		return before.own[(1+before.places[parent])*width:][:width]
	case c.chained:
		return s.features[:width]
	}
	return s.features[(depth-1)*width:][:width]
}

// Logits implements [grow.LogitSource].
func (c *Predictors) Logits(i int) []float32 {
	return c.sources[c.last[i].source].Logits(c.last[i].row)
}

// State implements [grow.LogitSource].
func (c *Predictors) State(i int) []float32 { return c.sources[c.last[i].source].State(c.last[i].row) }

// Room implements [grow.LogitSource]: a draft may need the rows of its path, too.
func (c *Predictors) Room() (drafts, depth int) {
	drafts, depth = c.sources[0].Room()
	for p, s := range c.sources[1:max(1, c.ready)] {
		n, d := s.Room()
		drafts, depth = min(drafts, n/(p+2)), min(depth, d)
	}
	return drafts, depth
}

// Memory implements [Following].
func (c *Predictors) Memory(rows int) (all method.Memory) {
	for p, s := range c.sources {
		all.Logits += s.Memory(rows * (p + 1)).Logits
	}
	return all
}

// Held implements [Following].
func (c *Predictors) Held() (all method.Memory) {
	for _, s := range c.sources {
		all.Logits += s.Held().Logits
	}
	return all
}

// Ran implements [Following].
func (c *Predictors) Ran() (all method.Ran) {
	for _, s := range c.sources {
		all = all.Add(s.Ran())
	}
	return all
}

// Close implements [Following].
func (c *Predictors) Close() (err error) {
	for _, s := range c.sources {
		err = errors.Join(err, s.Close())
	}
	return err
}
