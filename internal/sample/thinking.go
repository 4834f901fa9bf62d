package sample

import (
	"fmt"
	"math"
	"slices"

	"grove/internal/text/token"
)

// Thinking bounds the tokens between the markers of a model that thinks before it answers: after Budget tokens the End
// marker is forced, token by token, behind the Message. The tokens of all such parts of an answer count together, markers do not; in a part
// that the prompt opens only the answer's tokens count. The zero value is off.
type Thinking struct {
	Budget     int        // 0: the part is closed at once; less: off
	Begin, End []token.ID // the markers; without both it is off
	Message    []token.ID // before the forced marker; nil: nothing. It is part of the thoughts, and must not hold the first token of End
}

func (t *Thinking) marked() bool { return len(t.Begin) > 0 && len(t.End) > 0 }

func (t *Thinking) on() bool { return t.marked() && t.Budget >= 0 }

// Count returns a counter of the answer's tokens between the markers, behind a prompt; nil where no markers are set.
func (t Thinking) Count(prompt []token.ID) *Thoughts {
	if !t.marked() {
		return nil
	}
	stage := newThinking(t)
	return &Thoughts{stage: stage, state: stage.Start(prompt)}
}

// Thoughts counts the tokens of an answer as [Thinking] does. Nil counts nothing. It is for one goroutine.
type Thoughts struct {
	stage  *thinking
	state  StageState
	forced bool
}

// Add tells the next token of the answer.
func (t *Thoughts) Add(id token.ID) {
	if t != nil {
		t.forced = t.forced || t.stage.budget >= 0 && len(t.stage.forced(t.state)) > 0
		t.state = t.stage.Next(t.state, id)
	}
}

// Tokens returns the count so far.
func (t *Thoughts) Tokens() int {
	if t == nil {
		return 0
	}
	n, _, _ := unpackThinking(t.state)
	return n
}

// Forced reports whether the budget ended thoughts.
func (t *Thoughts) Forced() bool { return t != nil && t.forced }

// Inside reports whether the text ends between the markers.
func (t *Thoughts) Inside() bool {
	if t == nil {
		return false
	}
	_, _, inside := unpackThinking(t.state)
	return inside
}

func (t *Thinking) validate(vocab int) error {
	if (len(t.Begin) == 0) != (len(t.End) == 0) {
		return fmt.Errorf("sample: thinking has markers of %d and %d tokens; it needs both or none", len(t.Begin), len(t.End))
	}
	if t.Budget > 0 && !t.marked() {
		return fmt.Errorf("sample: the thinking budget is %d, and there are no markers; give those of the model", t.Budget)
	}
	if len(t.Message) > 0 && slices.Contains(t.Message, t.End[0]) {
		return fmt.Errorf("sample: the message before the end of thoughts holds token %d, which begins their end", t.End[0])
	}
	if id, some := outside(t.Message, vocab); some {
		return fmt.Errorf("sample: the message before the end of thoughts holds token %d; it must be a token of the vocabulary, which has %d", id, vocab)
	}
	for _, marker := range [][]token.ID{t.Begin, t.End} {
		if len(marker) > maxMarker {
			return fmt.Errorf("sample: a marker of thinking has %d tokens; it must have %d at most", len(marker), maxMarker)
		}
		if id, some := outside(marker, vocab); some {
			return fmt.Errorf("sample: a marker of thinking holds token %d; it must be a token of the vocabulary, which has %d", id, vocab)
		}
	}
	return nil
}

// maxMarker bounds the tokens of a marker.
const maxMarker = 64

// thinking is the stage of a [Thinking]. Its state holds the thought tokens, the length of the marker's prefix that the
// text ends with, and whether the text is between the markers.
type thinking struct {
	budget     int
	begin, end marker
	tail       []token.ID // the message and the marker of the end
}

func newThinking(t Thinking) *thinking {
	return &thinking{budget: t.Budget, begin: newMarker(t.Begin), end: newMarker(t.End), tail: slices.Concat(t.Message, t.End)}
}

// String returns the name of the stage.
func (t *thinking) String() string { return "thinking budget" }

func packThinking(n, matched int, inside bool) StageState {
	s := StageState(n)<<8 | StageState(matched)<<1
	if inside {
		s |= 1
	}
	return s
}

func unpackThinking(s StageState) (n, matched int, inside bool) {
	return int(s >> 8), int(s >> 1 & 0x7f), s&1 != 0
}

// Start implements [Stage].
func (t *thinking) Start(prompt []token.ID) (s StageState) {
	for _, id := range prompt {
		_, matched, inside := unpackThinking(t.Next(s, id))
		s = packThinking(0, matched, inside)
	}
	return s
}

// Next implements [Stage].
func (t *thinking) Next(s StageState, id token.ID) StageState {
	n, matched, inside := unpackThinking(s)
	m := &t.begin
	if inside {
		m = &t.end
		n++
	}
	if matched = m.next(matched, id); matched == len(m.ids) {
		if inside {
			n = max(0, n-matched)
		}
		matched, inside = 0, !inside
	}
	return packThinking(n, matched, inside)
}

// forced returns the tokens that must follow a state; none where the budget is not spent.
func (t *thinking) forced(s StageState) []token.ID {
	n, matched, inside := unpackThinking(s)
	if !inside || n < t.budget {
		return nil
	}
	message := len(t.tail) - len(t.end.ids)
	if matched > 0 || n-t.budget > message { // the marker has begun, or thoughts begin again
		return t.end.ids[matched:]
	}
	return t.tail[n-t.budget:]
}

// Apply implements [Stage].
func (t *thinking) Apply(s StageState, logits []float32) {
	ids := t.forced(s)
	if len(ids) == 0 {
		return
	}
	only := logits[ids[0]]
	for i := range logits {
		logits[i] = float32(math.Inf(-1))
	}
	logits[ids[0]] = only
}

// Allows implements [Legal].
func (t *thinking) Allows(s StageState, id token.ID) bool {
	ids := t.forced(s)
	return len(ids) == 0 || ids[0] == id
}

// Forced implements [Legal].
func (t *thinking) Forced(s StageState) []token.ID { return t.forced(s) }

// A marker is a string of tokens to be found in a text that comes token by token.
type marker struct {
	ids      []token.ID
	fallback []int // of each prefix: the length of the longest shorter one that it ends with
}

func newMarker(ids []token.ID) marker {
	m := marker{ids: ids, fallback: make([]int, len(ids)+1)}
	for i := 1; i < len(ids); i++ {
		m.fallback[i+1] = m.next(m.fallback[i], ids[i])
	}
	return m
}

// next returns the length of the longest prefix that a text ends with, where that was matched, less than all, before
// id.
func (m *marker) next(matched int, id token.ID) int {
	for matched > 0 && m.ids[matched] != id {
		matched = m.fallback[matched]
	}
	if m.ids[matched] == id {
		matched++
	}
	return matched
}
