package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"grove/internal/engine"
	"grove/internal/forest"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/method"
)

// places notes the final state of each accepted row that a drafter is told of, by the text that ends with the row's token.
type places struct {
	t      *testing.T
	last   int // tokens of a prompt whose states are wanted; 0: all
	states map[string][]float32
}

// drafter drafts copies of the prediction, one of four wrong.
func (p *places) drafter() *drafter {
	d := scripted(5, func(at int) bool { return at%4 == 1 })()
	d.wants = method.Wants{Rows: forest.Want{State: true}, Prompt: forest.Want{State: true}, Last: p.last}
	d.rows = p.note
	return d
}

func (p *places) note(d *drafter, r method.Update) {
	for _, row := range r.Rows {
		if !row.Accepted {
			continue
		}
		ids, at := d.h.IDs(), int(row.At)
		if at >= len(ids)-1 || ids[at] != row.ID || len(row.State) == 0 {
			p.t.Errorf("a row of token %d at place %d of %d, with a state of %d values", row.ID, at, len(ids), len(row.State))
			continue
		}
		p.states[fmt.Sprint(ids[:at+1])] = slices.Clone(row.State)
	}
}

// TestRowPlaces forgets tokens that were drawn and cuts and extends a text, and expects of each row that a drafter is told of the place of its token and
// the state behind the text up to there, of places that are all told of but those before the last ones of a prompt.
func TestRowPlaces(t *testing.T) {
	for first := 6; first < 11; first++ { // a round is cut at other places
		t.Run(fmt.Sprint(first), func(t *testing.T) { rowPlaces(t, first) })
	}
}

func rowPlaces(t *testing.T, first int) {
	const last = 25
	b := deep(t)
	p := &places{t, last, map[string][]float32{}}
	e := b.engine(t, engine.Config{Chunk: 16})
	answer := engine.Answer{Sampling: sample.Params{Temperature: 1, Seed: 4}}
	s, err := e.NewSequence(answer)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := b.engine(t, engine.Config{}).NewSequence(answer)
	if err != nil {
		t.Fatal(err)
	}
	prompt := text(40)
	prediction := slices.Clone(prompt)
	for _, c := range draw(t, plain, 40, prompt) {
		prediction = append(prediction, c.ID)
	}
	if err := s.SetDrafting(openDrafters(t, e, true, p.drafter), prediction); err != nil {
		t.Fatal(err)
	}
	var ids []token.ID
	add := func(more []token.ID) {
		t.Helper()
		if err := s.Append(t.Context(), more); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, more...)
	}
	next := func(n int) {
		t.Helper()
		for range n {
			c, err := s.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, c.ID)
		}
	}
	add(prompt)
	next(first)
	add(text(5))
	next(12)
	p.check(b, ids)
	for at := len(ids) - 9; at < len(ids); at++ {
		delete(p.states, fmt.Sprint(ids[:at+1])) // the same may be drawn again
	}
	if err := s.Truncate(s.Len() - 9); err != nil {
		t.Fatal(err)
	}
	ids = ids[:len(ids)-9]
	next(7)
	gap := len(ids) - 1 // the last token is computed with what is appended
	add(text(30))
	behind := len(ids) - last
	s.SetSampleIndex(1)
	next(8)
	if st := s.SpecStats(); st.Accepted == 0 || st.Accepted == st.Drafted {
		t.Fatalf("%d of %d drafts accepted", st.Accepted, st.Drafted)
	}
	told := p.check(b, ids)
	for at := range len(ids) - 8 {
		if want := at >= 40-last && (at < gap || at >= behind); told[at] != want {
			t.Errorf("a row of place %d was told of: %v, want %v", at, told[at], want)
		}
	}
}

// check compares the states that were told of a text with those of a prompt, and returns of which places they were told.
func (p *places) check(b *bed, ids []token.ID) map[int]bool {
	p.t.Helper()
	told := map[int]bool{}
	for at, want := range b.statesOf(p.t, ids) {
		if got, ok := p.states[fmt.Sprint(ids[:at+1])]; ok {
			if told[at] = true; !slices.Equal(got, want) {
				p.t.Errorf("the state of the row at place %d is another", at)
			}
		}
	}
	return told
}

// statesOf returns the final state behind each token of a text but the last.
func (b *bed) statesOf(t *testing.T, ids []token.ID) [][]float32 {
	t.Helper()
	p := &places{t, 0, map[string][]float32{}}
	e := b.engine(t, engine.Config{})
	s, err := e.NewSequence(engine.Answer{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetDrafting(openDrafters(t, e, true, p.drafter), nil); err != nil {
		t.Fatal(err)
	}
	draw(t, s, 2, ids)
	var all [][]float32
	for at := range ids {
		all = append(all, p.states[fmt.Sprint(ids[:at+1])])
	}
	return all
}
