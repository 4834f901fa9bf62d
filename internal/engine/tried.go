package engine

import (
	"context"
	"fmt"

	"grove/internal/engine/step"
	"grove/internal/forest"
	"grove/internal/text/token"
)

// tried is the job that runs several rows at one place of a sequence's text in one step, and makes one of them part of it; the others are dropped.
type tried struct {
	s      *Sequence
	at     int // tokens of the text before the rows
	rows   []forest.Row
	choose func(given [][]float32) (row int) // the row that stays, by the states of all, where they want these, or their logits
	drawn  SampledToken                      // its token, where the rows are behind the text
}

// Need implements [step.Job].
func (j *tried) Need() (step.Need, error) {
	s := j.s
	if err := s.cut(j.at); err != nil {
		return step.Need{}, err
	}
	s.trunk.Drop() // what drafters left
	n, err := s.reuse()
	if err != nil || n.Rows > 0 { // a prefix that is computed as a whole
		return n, err
	}
	if n.Prompt -= len(s.text) - j.at; n.Prompt == 0 {
		n.Rows, n.Decodes = len(j.rows), true
		n.PageTokens, n.WindowTokens = max(n.PageTokens, j.at+1), max(n.WindowTokens, j.at+1)
	}
	return n, nil
}

// Place implements [step.Job].
func (j *tried) Place(st *step.Step) error {
	if j.s.trunk.Len() < j.at {
		return j.s.placeText(st, st.Rows())
	}
	for _, r := range j.rows {
		if _, err := st.Add(r); err != nil {
			return err
		}
	}
	return nil
}

// Take implements [step.Job].
func (j *tried) Take(st *step.Step) (done bool, err error) {
	s := j.s
	if s.trunk.Len() < j.at {
		_, err := s.takeText(st)
		return false, err
	}
	given := make([][]float32, len(j.rows))
	for i, r := range j.rows {
		if given[i] = st.Result(i).Logits; r.Want.State {
			given[i] = st.Result(i).State
		}
	}
	row := j.choose(given)
	if row < 0 || row >= len(j.rows) {
		return true, fmt.Errorf("engine: of %d tokens that are tried none is chosen", len(j.rows))
	}
	id, behind := j.rows[row].ID, j.at == len(s.text)
	if behind {
		j.drawn, err = s.answer.describe(s.chain, 0, s.logits, j.at, id)
	}
	if err == nil {
		err = s.e.steps.Cache.Commit(s.trunk.Seq, st.Placed(row).Node)
	}
	if err != nil {
		return true, err
	}
	if behind {
		s.chain.Append([]token.ID{id}, false)
		s.text = append(s.text, id)
	}
	copy(s.logits, st.Result(row).Logits)
	s.known = len(s.text)
	return true, nil
}

// Try computes the text and, in one step, a row for each of some tokens behind it. It appends the one that choose returns, by its
// number, and returns it as a draw does. choose is told the states of the rows behind the final norm, in order, which are valid during the call; it
// must not wait or call the sequence, as steps wait for it. Errors: no token or too many for a step, a token that is none, [ErrContext],
// and those of [Sequence.Append].
func (s *Sequence) Try(ctx context.Context, ids []token.ID, choose func(states [][]float32) int) (SampledToken, error) {
	if _, err := s.Logits(ctx); err != nil {
		return SampledToken{}, err
	}
	if n := len(ids); n == 0 || n > s.e.steps.Chunk {
		return SampledToken{}, fmt.Errorf("engine: trying %d tokens; a step has 1 to %d", n, s.e.steps.Chunk)
	}
	j := &tried{s: s, at: len(s.text), choose: choose}
	for i, id := range ids {
		if err := s.e.fits(ids[i:i+1], j.at); err != nil {
			return SampledToken{}, err
		}
		r := forest.Row{ID: id, Want: forest.Want{Logits: true, State: true}}
		s.shallow(&r, j.at)
		j.rows = append(j.rows, r)
	}
	err := s.do(ctx, j)
	return j.drawn, err
}

// Exits computes the text and, in the step of its last token, the logits behind that token of the model's first layers, by the final norm and the head; 0 layers
// are its embedding, and all are the model's own. It tells give those of each number of layers, in order, and the model's own behind them; give must not change
// or keep them, nor wait. The step has a row more for each number. Errors: a number that the model does not have, an empty text, a text that skips layers or whose tokens see
// each other, and those of [Sequence.Append].
func (s *Sequence) Exits(ctx context.Context, layers []int, give func(logits [][]float32)) error {
	if err := s.usable(); err != nil {
		return err
	}
	s.round.forget()
	n, all := len(s.text), s.e.steps.Cache.Forest.Layers()
	switch {
	case n == 0:
		return fmt.Errorf("engine: exits: the text is empty; append a prompt first")
	case n <= s.prefix:
		return fmt.Errorf("engine: exits behind a prompt whose tokens see each other: its last row cannot run alone")
	case s.answer.Places.On():
		return fmt.Errorf("engine: exits: %w by places and stop early besides", ErrPlaces)
	case len(layers) >= s.e.steps.Chunk:
		return fmt.Errorf("engine: %d exits; a step has %d rows at most", len(layers), s.e.steps.Chunk)
	}
	j := &tried{s: s, at: n - 1, choose: func(logits [][]float32) int { give(logits); return len(layers) }}
	for _, l := range layers {
		r := forest.Row{ID: s.text[n-1], To: l, Transient: true, Want: forest.Want{Logits: true}}
		if l < 0 || l > all {
			return fmt.Errorf("engine: an exit behind %d layers; it must be 0 to %d", l, all)
		} else if l == 0 {
			r.Skip = forest.LayerRange(0, all)
		}
		j.rows = append(j.rows, r)
	}
	j.rows = append(j.rows, forest.Row{ID: s.text[n-1], Want: forest.Want{Logits: true}})
	return s.do(ctx, j)
}

// DrawFrom draws the token behind the text from other logits than the model's, through the answer's stages, appends it, and returns it as [Sequence.Next] does: its
// log-probability is the model's own. Errors are those of Next.
func (s *Sequence) DrawFrom(ctx context.Context, logits []float32) (d SampledToken, err error) {
	own, err := s.Logits(ctx)
	n := len(s.text)
	if err == nil && n == s.e.Context() {
		err = fmt.Errorf("engine: %d tokens: %w", n, ErrContext)
	}
	if err == nil {
		d, err = s.answer.draw(s.chain, 0, logits, n)
	}
	if err == nil && !s.answer.PostSampling {
		d, err = s.answer.describe(s.chain, 0, own, n, d.ID)
	}
	if err == nil {
		s.chain.Keep(s.chain.Next(0, d.ID))
		s.add(d.ID)
	}
	return d, err
}

// States computes the text anew from a token on and tells give the state of each of these tokens behind the final norm, by its place in the text; one may be told twice. A state is valid during the
// call, which must not wait. Errors are those of [Sequence.Append].
func (s *Sequence) States(ctx context.Context, from int, give func(at int, state []float32)) error {
	if err := s.usable(); err != nil {
		return err
	}
	s.round.forget()
	switch {
	case from >= len(s.text):
		return nil
	case from < s.prefix:
		from = 0
	}
	s.e.steps.Lock()
	err := s.cut(from)
	s.e.steps.Unlock()
	if err != nil {
		return err
	}
	s.known, s.stated = min(s.known, from), give
	defer func() { s.stated = nil }()
	return s.do(ctx, &s.prefill)
}
