package constrain

import (
	"math"
	"slices"
	"sort"
	"strings"

	"grove/constrain/vocab"
	"grove/internal/sample"
	"grove/internal/text/token"
)

// Monitor says what may follow a text. It is safe for concurrent use.
type Monitor interface {
	// Complete returns the texts of which one must follow; none where anything may. It is asked behind each byte while it
	// binds nothing, so that it refuses most texts at once, by their last bytes. It keeps nothing of the text.
	Complete(text []byte) []string
	// Break reports whether a byte ends a name: a text of the list is followed by such a byte, or ends with one.
	Break(b byte) bool
}

// A bound is what a monitor demands behind a text: the texts from..to-1 of its list, of which n bytes were read. The
// zero value is idle.
type bound struct {
	list        []string // sorted; nil: idle
	from, to, n int
}

// newBound returns the demand of a list of texts.
func newBound(list []string) bound {
	list = slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == "" })
	if len(list) == 0 {
		return bound{}
	}
	slices.Sort(list)
	return bound{list: list, to: len(list)}
}

func (b bound) idle() bool { return b.list == nil }

// whole reports whether a text of the list was read to its end.
func (b bound) whole() bool { return len(b.list[b.from]) == b.n }

// step returns the demand behind a byte; false: the byte may not follow. An idle bound stays so.
func (b bound) step(by byte, ends func(byte) bool) (bound, bool) {
	if b.idle() || b.whole() && ends(by) {
		return bound{}, true
	}
	from := b.from + sort.Search(b.to-b.from, func(i int) bool { s := b.list[b.from+i]; return len(s) > b.n && s[b.n] >= by })
	to := b.from + sort.Search(b.to-b.from, func(i int) bool { s := b.list[b.from+i]; return len(s) > b.n && s[b.n] > by })
	if from == to {
		return bound{}, false
	}
	next := bound{b.list, from, to, b.n + 1}
	if next.whole() && ends(by) {
		return bound{}, true
	}
	return next, true
}

// left returns what may follow of the list, for tests and errors.
func (b bound) left() (all []string) {
	if b.idle() {
		return nil
	}
	for _, s := range b.list[b.from:b.to] {
		all = append(all, s[b.n:])
	}
	return all
}

// A MonitorStage forbids what a monitor does not let follow. It implements [sample.Picker], [sample.Keeper] and [sample.Forker].
// The monitor reads prompt and answer. Tokens without text are legal where the monitor is idle; the end of the text also
// behind a text of its list.
type MonitorStage struct {
	monitor Monitor
	vocab   *vocab.Vocabulary
	nodes   []monitorNode
	text    []byte // of a token that is tested
	mask    []uint64
	way     []bound // by depth of the trie
	asked   []bool  // whether the monitor was asked there
}

// A monitorNode is a text and what the monitor demands behind it.
type monitorNode struct {
	text  []byte
	bound bound
}

// NewMonitor returns the stage of a monitor.
func NewMonitor(v *vocab.Vocabulary, m Monitor) *MonitorStage {
	return &MonitorStage{monitor: m, vocab: v, nodes: make([]monitorNode, 1), mask: make([]uint64, v.Words())}
}

// String returns the name of the stage.
func (s *MonitorStage) String() string { return "monitor" }

// Start implements [sample.Stage].
func (s *MonitorStage) Start(prompt []token.ID) sample.StageState {
	var text []byte
	for _, id := range prompt {
		text = append(text, s.bytes(id)...)
	}
	s.nodes = append(s.nodes[:0], monitorNode{text: text, bound: newBound(s.monitor.Complete(text))})
	return 0
}

// bytes returns what a token adds to the text.
func (s *MonitorStage) bytes(id token.ID) []byte {
	if s.vocab.Kind(id) != vocab.Ordinary {
		return nil
	}
	return s.vocab.Bytes(id)
}

// read follows bytes behind a text, whose last bytes are in s.text; false: one may not follow.
func (s *MonitorStage) read(b bound, bytes []byte) (bound, bool) {
	for _, by := range bytes {
		var ok bool
		if b, ok = s.step(b, by); !ok {
			return b, false
		}
	}
	return b, true
}

// step appends a byte to s.text and returns the demand behind it.
func (s *MonitorStage) step(b bound, by byte) (bound, bool) {
	b, ok := b.step(by, s.monitor.Break)
	s.text = append(s.text, by)
	if ok && b.idle() {
		b = newBound(s.monitor.Complete(s.text))
	}
	return b, ok
}

// Next implements [sample.Stage].
func (s *MonitorStage) Next(at sample.StageState, id token.ID) sample.StageState {
	n := s.nodes[at]
	s.text = append(s.text[:0], n.text...)
	b, ok := s.read(n.bound, s.bytes(id))
	text := append(n.text[:len(n.text):len(n.text)], s.bytes(id)...)
	if !ok { // the caller chose it: the monitor begins anew
		b = newBound(s.monitor.Complete(text))
	}
	s.nodes = append(s.nodes, monitorNode{text, b})
	return sample.StageState(len(s.nodes) - 1)
}

// Keep implements [sample.Keeper].
func (s *MonitorStage) Keep(at sample.StageState) sample.StageState {
	s.nodes = append(s.nodes[:0], s.nodes[at])
	return 0
}

// Fork implements [sample.Forker].
func (s *MonitorStage) Fork(at sample.StageState) (sample.Stage, sample.StageState) {
	f := NewMonitor(s.vocab, s.monitor)
	f.nodes[0] = s.nodes[at]
	return f, 0
}

// Allows implements [sample.Legal].
func (s *MonitorStage) Allows(at sample.StageState, id token.ID) bool {
	n := &s.nodes[at]
	switch s.vocab.Kind(id) {
	case vocab.Ordinary:
		s.text = append(s.text[:0], n.text...)
		_, ok := s.read(n.bound, s.vocab.Bytes(id))
		return ok
	case vocab.End:
		return n.bound.idle() || n.bound.whole()
	}
	return n.bound.idle()
}

// Forced implements [sample.Legal]: the shortest token is not known, so that nothing is forced.
func (s *MonitorStage) Forced(sample.StageState) []token.ID { return nil }

// Pick implements [sample.Picker].
func (s *MonitorStage) Pick(at sample.StageState, ranking *sample.Ranking) (token.ID, bool) {
	for {
		if id, ok := ranking.Next(); !ok || s.Allows(at, id) {
			return id, ok
		}
	}
}

// Apply implements [sample.Stage].
func (s *MonitorStage) Apply(at sample.StageState, logits []float32) {
	n := &s.nodes[at]
	clear(s.mask)
	s.text = append(s.text[:0], n.text...)
	s.way, s.asked = append(s.way[:0], n.bound), append(s.asked[:0], true)
	trie := s.vocab.Trie()
	for i := 1; i < len(trie); {
		depth := trie[i].Depth()
		s.text, s.way, s.asked = s.text[:len(n.text)+depth-1], s.way[:depth], s.asked[:depth]
		before := &s.way[depth-1]
		if !s.asked[depth-1] { // only now something follows
			s.asked[depth-1] = true
			if before.idle() {
				*before = newBound(s.monitor.Complete(s.text))
			}
		}
		b, ok := before.step(trie[i].Byte(), s.monitor.Break)
		if !ok {
			i += trie[i].Size()
			continue
		}
		s.text, s.way, s.asked = append(s.text, trie[i].Byte()), append(s.way, b), append(s.asked, false)
		if id := trie[i].Token(); id != vocab.None && s.vocab.Kind(token.ID(id)) == vocab.Ordinary {
			s.mask[id>>6] |= 1 << (id & 63)
		}
		i++
	}
	s.vocab.Spread(s.mask)
	for i := range logits {
		id := token.ID(i)
		if s.vocab.Kind(id) != vocab.Ordinary && s.Allows(at, id) || i>>6 < len(s.mask) && s.mask[i>>6]>>(i&63)&1 != 0 {
			continue
		}
		logits[i] = float32(math.Inf(-1))
	}
}

// MonitorWords is a monitor that knows one list: behind a text that ends with Trigger, one of List follows.
type MonitorWords struct {
	Trigger string
	List    []string
}

// Complete implements [Monitor].
func (w *MonitorWords) Complete(text []byte) []string {
	if strings.HasSuffix(string(text[max(0, len(text)-len(w.Trigger)):]), w.Trigger) {
		return w.List
	}
	return nil
}

// Break implements [Monitor]: letters, digits, underscores and bytes beyond ASCII extend a name.
func (w *MonitorWords) Break(b byte) bool { return !isName(b) }

func isName(b byte) bool {
	return b >= 0x80 || b == '_' || b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z'
}
