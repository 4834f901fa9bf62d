package constrain

import (
	"math"
	"slices"

	"grove/internal/sample"
	"grove/internal/text/token"
)

// States of a [PathStage] that are none of its rows.
const (
	atStart sample.StageState = 0
	atEnd   sample.StageState = 1 << 40 // behind a whole sequence
	astray  sample.StageState = 1 << 41 // behind a token that was not legal
)

// A PathStage lets an answer be one sequence of a set, followed by the end of the text. It implements [sample.Legal]; a
// state is a row of the set, so that it has no store and forks share it. A step costs what clearing the logits costs,
// and no more for a larger set.
type PathStage struct {
	set          *PathTokens
	ends, forced []token.ID
	kept         []float32
	next         []token.ID
}

// PathNewStage returns the stage of a set. ends are the tokens that end a text.
func PathNewStage(set *PathTokens, ends []token.ID) *PathStage {
	return &PathStage{set: set, ends: ends}
}

// String returns the name of the stage.
func (s *PathStage) String() string { return "set of token sequences" }

// Start implements [sample.Stage].
func (s *PathStage) Start([]token.ID) sample.StageState { return atStart }

// Next implements [sample.Stage].
func (s *PathStage) Next(at sample.StageState, id token.ID) sample.StageState {
	if slices.Contains(s.ends, id) && s.mayEnd(at) {
		return atEnd
	}
	var row int
	var whole, ok bool
	switch {
	case at == atStart:
		row, whole, ok = s.set.First(id)
	case at < atEnd:
		row, whole, ok = s.set.Step(int(at), id)
	}
	switch {
	case !ok:
		return astray
	case whole:
		return atEnd
	}
	return sample.StageState(row)
}

func (s *PathStage) mayEnd(at sample.StageState) bool {
	return at == atEnd || at != atStart && at < atEnd && s.set.Ends(int(at))
}

// follow returns the tokens that may follow a state, without those that end the text. The slice is the stage's.
func (s *PathStage) follow(at sample.StageState) []token.ID {
	switch {
	case at == atStart:
		return s.set.first
	case at >= atEnd:
		return nil
	}
	s.next = s.next[:0]
	for _, e := range s.set.row(int(at)) {
		if e.id != end {
			s.next = append(s.next, token.ID(e.id))
		}
	}
	return s.next
}

// Apply implements [sample.Stage].
func (s *PathStage) Apply(at sample.StageState, logits []float32) {
	ids := s.follow(at)
	s.kept = s.kept[:0]
	for _, id := range ids {
		s.kept = append(s.kept, logits[id])
	}
	if s.mayEnd(at) {
		for _, id := range s.ends {
			s.kept = append(s.kept, logits[id])
		}
	}
	for i := range logits {
		logits[i] = float32(math.Inf(-1))
	}
	for i, id := range ids {
		logits[id] = s.kept[i]
	}
	for i, l := range s.kept[len(ids):] {
		logits[s.ends[i]] = l
	}
}

// Allows implements [sample.Legal].
func (s *PathStage) Allows(at sample.StageState, id token.ID) bool {
	if slices.Contains(s.ends, id) && s.mayEnd(at) {
		return true
	}
	ok := false
	switch {
	case at == atStart:
		_, _, ok = s.set.First(id)
	case at < atEnd:
		_, _, ok = s.set.Step(int(at), id)
	}
	return ok
}

// Forced implements [sample.Legal].
func (s *PathStage) Forced(at sample.StageState) []token.ID {
	s.forced = s.forced[:0]
	for !s.mayEnd(at) {
		ids := s.follow(at)
		if len(ids) != 1 {
			break
		}
		s.forced = append(s.forced, ids[0])
		at = s.Next(at, ids[0])
	}
	return s.forced
}
