package constrain

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"grove/constrain/vocab"
	"grove/internal/sample"
	"grove/internal/text/token"
)

// ErrNothingLegal means that no token may follow a text.
var ErrNothingLegal = errors.New("the check refuses every token")

// ErrRejects means that a draw met more illegal tokens than it may.
var ErrRejects = errors.New("the check refuses too many tokens of one draw")

// RejectOptions say what is legal.
type RejectOptions struct {
	// Check reports whether an answer's text is the beginning of a legal one. What no longer is stays so, whatever
	// follows. A token may end inside a character, so the text may, too. It must be safe for concurrent use, and keeps
	// nothing of the text.
	Check func(text []byte) bool
	// Ends reports whether an answer's text is legal as it is; nil: every text that passes Check is.
	Ends func(text []byte) bool
	// Weights asks for the weights of draws: about one check a token more. At temperature 0 they are 1.
	Weights bool
	// MaxRejects is how many illegal tokens a draw may meet; 0: all of them.
	MaxRejects int
}

// A RejectStage forbids what a check refuses. It implements [sample.Picker], [sample.Weigher], [sample.Keeper],
// [sample.Forker] and [sample.Failing]. A draw without truncation makes a few checks; with truncation, or where
// probabilities behind the mask are asked for, each token is checked whose own beginnings are legal.
type RejectStage struct {
	options RejectOptions
	vocab   *vocab.Vocabulary
	nodes   []rejectNode
	text    []byte // of a check
	checks  int
	mask    []uint64
}

// A rejectNode is a text.
type rejectNode struct {
	text     []byte
	parent   int
	id       token.ID // the last token
	verdicts map[token.ID]bool
	before   float64 // of the root: the logarithm of the weights of the draws that led to it
	drawn    token.ID
	weight   float64 // the logarithm of the weight of that draw
	fault    error
}

// NewReject returns the stage of a check.
func NewReject(v *vocab.Vocabulary, o RejectOptions) *RejectStage {
	return &RejectStage{options: o, vocab: v, nodes: []rejectNode{{drawn: token.None}}, mask: make([]uint64, v.Words())}
}

// String returns the name of the stage.
func (s *RejectStage) String() string { return "check" }

// Checks returns how many checks were made.
func (s *RejectStage) Checks() int { return s.checks }

// Start implements [sample.Stage].
func (s *RejectStage) Start([]token.ID) sample.StageState {
	s.nodes = append(s.nodes[:0], rejectNode{drawn: token.None})
	return 0
}

// Next implements [sample.Stage].
func (s *RejectStage) Next(at sample.StageState, id token.ID) sample.StageState {
	text := s.nodes[at].text
	s.nodes = append(s.nodes, rejectNode{
		text: append(text[:len(text):len(text)], s.bytes(id)...), parent: int(at), id: id, drawn: token.None,
	})
	return sample.StageState(len(s.nodes) - 1)
}

// bytes returns what a token adds to the text.
func (s *RejectStage) bytes(id token.ID) []byte {
	if s.vocab.Kind(id) != vocab.Ordinary {
		return nil
	}
	return s.vocab.Bytes(id)
}

// Keep implements [sample.Keeper].
func (s *RejectStage) Keep(at sample.StageState) sample.StageState {
	n := s.nodes[at]
	n.before, n.parent = s.LogWeight(at), 0
	s.nodes = append(s.nodes[:0], n)
	return 0
}

// Fork implements [sample.Forker].
func (s *RejectStage) Fork(at sample.StageState) (sample.Stage, sample.StageState) {
	f := NewReject(s.vocab, s.options)
	f.nodes[0].text = slices.Clone(s.nodes[at].text)
	f.nodes[0].before = s.LogWeight(at)
	return f, 0
}

// LogWeight implements [sample.Weigher]: the logarithm of the product of the weights of the draws that led to the text;
// 0 without Options.Weights, and for tokens that were not drawn.
func (s *RejectStage) LogWeight(at sample.StageState) float64 {
	n := &s.nodes[at]
	if at == 0 {
		return n.before
	}
	sum := s.LogWeight(sample.StageState(n.parent)) // in the order of the text, whatever of it was kept together
	if p := &s.nodes[n.parent]; p.drawn == n.id {
		sum += p.weight
	}
	return sum
}

// Allows implements [sample.Legal]: one check.
func (s *RejectStage) Allows(at sample.StageState, id token.ID) bool {
	n := &s.nodes[at]
	verdict, known := n.verdicts[id]
	if known {
		return verdict
	}
	switch s.vocab.Kind(id) {
	case vocab.Ordinary:
		s.text = append(append(s.text[:0], n.text...), s.vocab.Bytes(id)...)
		s.checks++
		verdict = s.options.Check(s.text)
	case vocab.End:
		s.text = append(s.text[:0], n.text...)
		s.checks++
		if s.options.Ends != nil {
			verdict = s.options.Ends(s.text)
		} else {
			verdict = s.options.Check(s.text)
		}
	}
	if n.verdicts == nil {
		n.verdicts = map[token.ID]bool{}
	}
	n.verdicts[id] = verdict
	return verdict
}

// Forced implements [sample.Legal]: a check knows nothing of what must follow.
func (s *RejectStage) Forced(sample.StageState) []token.ID { return nil }

// Pick implements [sample.Picker].
func (s *RejectStage) Pick(at sample.StageState, ranking *sample.Ranking) (id token.ID, ok bool) {
	return s.pick(at, ranking, ranking.Greedy())
}

func (s *RejectStage) pick(at sample.StageState, order rejectSource, greedy bool) (id token.ID, ok bool) {
	refused := 0
	legal := func(id token.ID) bool {
		if s.Allows(at, id) {
			return true
		}
		refused++
		return false
	}
	weight := 1.0
	switch {
	case !s.options.Weights || greedy:
		id, ok = first(order, legal, s.options.MaxRejects)
	case order.Most() < peaked:
		id, weight, ok = recursive(order, legal, s.options.MaxRejects)
	default:
		id, weight, ok = geometric(order, legal, s.options.MaxRejects)
	}
	n := &s.nodes[at]
	if !ok {
		cause := ErrNothingLegal
		if s.options.MaxRejects > 0 && refused >= s.options.MaxRejects {
			cause = ErrRejects
		}
		n.fault = fmt.Errorf("reject: behind %s: %d tokens refused: %w", tail(n.text), refused, cause)
		return token.None, false
	}
	n.drawn, n.weight = id, math.Log(weight)
	return id, true
}

// tail quotes the end of a text.
func tail(text []byte) string {
	const most = 40
	if len(text) <= most {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("...%q", text[len(text)-most:])
}

// Err implements [sample.Failing].
func (s *RejectStage) Err(at sample.StageState) error { return s.nodes[at].fault }

// Apply implements [sample.Stage]. It checks the tokens in the order of their bytes: what begins with a refused token is
// not checked.
func (s *RejectStage) Apply(at sample.StageState, logits []float32) {
	clear(s.mask)
	trie := s.vocab.Trie()
	left := false
	for i := 1; i < len(trie); {
		id := trie[i].Token()
		if id == vocab.None {
			i++
			continue
		}
		if !s.Allows(at, token.ID(id)) {
			i += trie[i].Size()
			continue
		}
		s.mask[id>>6] |= 1 << (id & 63)
		i++
	}
	s.vocab.Spread(s.mask)
	for _, id := range s.vocab.End() {
		if s.Allows(at, id) {
			s.mask[id>>6] |= 1 << (id & 63)
		}
	}
	for id := range logits {
		if id>>6 < len(s.mask) && s.mask[id>>6]>>(id&63)&1 != 0 {
			left = left || !math.IsInf(float64(logits[id]), -1)
		} else {
			logits[id] = float32(math.Inf(-1))
		}
	}
	if n := &s.nodes[at]; !left && n.fault == nil {
		n.fault = fmt.Errorf("reject: behind %s: %w", tail(n.text), ErrNothingLegal)
	}
}
