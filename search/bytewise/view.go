package bytewise

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"grove/constrain/vocab"
	"grove/internal/text/token"
)

// End is the symbol behind the bytes: the end of the text.
const End = 256

// Distribution is the probabilities of the symbols that may come next: of each byte, and of [End]. They sum to 1.
type Distribution struct {
	P [End + 1]float64
	// Kept is the share of the text's probability that the symbols have together. Tokens with which no valid sequence goes on have the rest.
	Kept float64
}

// Model gives the probabilities of tokens behind a text and paths of tokens. It is for one goroutine.
type Model interface {
	// Probs returns the probabilities of all tokens behind each path. The slices are the caller's. They sum to 1.
	Probs(ctx context.Context, paths [][]token.ID) ([][]float64, error)
}

// Errors of a text that cannot go on.
var (
	// ErrByte reports a byte that no valid token holds there.
	ErrByte = errors.New("bytewise: no valid sequence of tokens goes on with this byte")
	// ErrText reports bytes behind which no valid text has a probability: the request's biases and constraint leave none.
	ErrText = errors.New("bytewise: the model gives no probability to any valid text behind these bytes")
	// ErrCovers reports a vocabulary in which a text has more than [MaxHeads] covers that may go on.
	ErrCovers = fmt.Errorf("bytewise: the text has more than %d beginnings of tokens at its end", MaxHeads)
)

// MaxHeads bounds the beginnings of tokens at the end of a text, and so the work for a byte.
const MaxHeads = 512

// View is a text as bytes, behind a text of tokens. Its forks share what is computed. It is for one goroutine, together with them.
type View struct {
	tree  *tree
	heads []head
	text  []byte
	beam  *Beam
	law   *Distribution // nil: not computed
}

// head is a place in the trie of tokens behind a sequence of tokens: the bytes to the place end the text. At the root the sequence ends with the text.
type head struct {
	n  *node
	at int
}

// node is a sequence of tokens behind the view's beginning.
type node struct {
	parent *node
	id     token.ID
	window window
	log    float64   // of the probability of the sequence, where known
	known  bool      // log is
	probs  []float64 // of the tokens behind; nil: not computed
	valid  []uint8   // the verdicts on tokens behind its window; nil: to be looked up
}

// The verdicts on a token.
const (
	unknown uint8 = iota
	valid
	invalid
)

// tree is what a view and its forks share.
type tree struct {
	v        *Vocabulary
	m        Model
	verdicts map[string][]uint8 // by the tokens of windows
	computed []*node            // that have probabilities
	any      bool               // every sequence is valid
}

// maxVerdicts bounds the windows whose verdicts are kept.
const maxVerdicts = 64

// New returns the view behind a text of tokens, behind which a model's paths begin. What follows the text's last token without bytes is one text with
// what comes.
func (v *Vocabulary) New(m Model, before []token.ID) *View {
	root := &node{known: true}
	from := len(before)
	for from > max(0, len(before)-2*mostBehind) && v.Ordinary(before[from-1]) {
		from--
	}
	for _, id := range before[from:] {
		root.window = v.add(root.window, id)
	}
	return &View{tree: &tree{v: v, m: m, verdicts: map[string][]uint8{}}, heads: []head{{root, 0}}}
}

// Fork returns a view that goes on from the same text by itself.
func (w *View) Fork() *View {
	f := *w
	f.heads, f.text = slices.Clone(w.heads), slices.Clip(w.text)
	return &f
}

// Text returns the bytes since the view's beginning. They are not to be changed.
func (w *View) Text() []byte { return w.text }

// Push appends a byte. Errors: [ErrByte] and [ErrCovers], and then the view is as before.
func (w *View) Push(b byte) error {
	next, err := w.tree.push(w.heads, b)
	if err == nil && len(next) == 0 && w.beam != nil {
		next = w.tree.heal(w.heads, b)
	}
	if err == nil && len(next) == 0 {
		err = ErrByte
	}
	if err != nil {
		return fmt.Errorf("%w: 0x%02X behind %d bytes", err, b, len(w.text))
	}
	for _, h := range w.heads {
		if !slices.ContainsFunc(next, func(n head) bool { return n.n == h.n }) {
			h.n.valid = nil
		}
	}
	w.heads, w.law = next, nil
	w.text = append(w.text, b)
	return nil
}

// push returns the heads behind a byte.
func (t *tree) push(heads []head, b byte) (next []head, err error) {
	for _, h := range heads {
		c := t.child(h.at, b)
		if c < 0 {
			continue
		}
		if t.alive(h.n, c) {
			next = append(next, head{h.n, c})
		}
		if id := t.v.trie[c].Token(); id != vocab.None && t.allows(h.n, token.ID(id)) {
			next = append(next, head{t.follow(h.n, token.ID(id)), 0})
		}
		if len(next) > MaxHeads {
			return nil, ErrCovers
		}
	}
	return next, nil
}

// child returns the place behind a byte; -1: there is none.
func (t *tree) child(at int, b byte) int {
	for c, end := at+1, at+t.v.trie[at].Size(); c < end; c += t.v.trie[c].Size() {
		if t.v.trie[c].Byte() == b {
			return c
		}
	}
	return -1
}

// alive reports whether a valid token goes on behind a place.
func (t *tree) alive(n *node, at int) bool {
	for _, place := range t.v.trie[at+1 : at+t.v.trie[at].Size()] {
		if id := place.Token(); id != vocab.None && t.allows(n, token.ID(id)) {
			return true
		}
	}
	return false
}

// follow returns the node of a token behind another one.
func (t *tree) follow(n *node, id token.ID) *node {
	c := &node{parent: n, id: id}
	if !t.any {
		c.window = t.v.add(n.window, id)
	}
	return c
}

// allows reports whether a token behind a sequence makes a valid one.
func (t *tree) allows(n *node, id token.ID) bool {
	if t.any {
		return true
	}
	if n.valid == nil {
		n.valid = t.verdictsOf(n.window)
	}
	if n.valid[id] == unknown {
		n.valid[id] = verdict(t.judge(n, id))
	}
	return n.valid[id] == valid
}

// judge is the verdict on a token: behind a boundary, that on the token alone.
func (t *tree) judge(n *node, id token.ID) bool {
	if t.v.parts(n.window.text, id) && t.whole(n) {
		alone := t.verdictsOf(window{})
		if alone[id] == unknown {
			alone[id] = verdict(t.v.follows(window{}, id))
		}
		return alone[id] == valid
	}
	return t.v.follows(n.window, id)
}

// whole reports whether a sequence is the encoding of its text.
func (t *tree) whole(n *node) bool {
	if n.valid == nil {
		n.valid = t.verdictsOf(n.window)
	}
	known := &n.valid[t.v.size]
	if *known == unknown {
		*known = verdict(t.v.whole(n.window))
	}
	return *known == valid
}

func verdict(ok bool) uint8 {
	if ok {
		return valid
	}
	return invalid
}

// verdictsOf returns the verdicts behind a window, those of an equal one where they are kept.
func (t *tree) verdictsOf(w window) []uint8 {
	var key []byte
	for _, id := range w.ids {
		key = append(key, byte(id), byte(id>>8), byte(id>>16))
	}
	known, ok := t.verdicts[string(key)]
	if !ok {
		if len(t.verdicts) >= maxVerdicts {
			clear(t.verdicts)
		}
		known = make([]uint8, t.v.size+1) // the last is that on the window itself
		t.verdicts[string(key)] = known
	}
	return known
}

// Next returns the distribution of the symbol behind the text. Errors are the model's, and that of a text whose covers have no probability.
func (w *View) Next(ctx context.Context) (Distribution, error) {
	if w.law != nil {
		return *w.law, nil
	}
	if err := w.prune(ctx); err != nil {
		return Distribution{}, err
	}
	if err := w.tree.compute(ctx, w.heads, true); err != nil {
		return Distribution{}, err
	}
	var law Distribution
	most, all := w.tree.most(w.heads), 0.0
	for _, h := range w.heads {
		scale := math.Exp(h.n.log - most)
		for c, end := h.at+1, h.at+w.tree.v.trie[h.at].Size(); c < end; c += w.tree.v.trie[c].Size() {
			law.P[w.tree.v.trie[c].Byte()] += scale * w.tree.mass(h.n, c, c+w.tree.v.trie[c].Size())
		}
		if all += scale * w.tree.below(h); h.at == 0 {
			law.P[End] += scale * w.tree.end(h.n)
		}
	}
	if err := law.scale(all); err != nil {
		return law, err
	}
	w.law = &law
	return law, nil
}

// scale makes the distribution sum to 1, where the text has the mass all.
func (l *Distribution) scale(all float64) error {
	sum := 0.0
	for _, p := range l.P {
		sum += p
	}
	if !(sum > 0) {
		return ErrText
	}
	for i := range l.P {
		l.P[i] /= sum
	}
	l.Kept = sum / all
	return nil
}

// LogProb returns the natural logarithm of the probability of the text's bytes: that of its covers. Errors are the model's.
func (w *View) LogProb(ctx context.Context) (float64, error) {
	if err := w.tree.compute(ctx, w.heads, false); err != nil {
		return 0, err
	}
	most, sum := w.tree.most(w.heads), 0.0
	for _, h := range w.heads {
		sum += math.Exp(h.n.log-most) * w.tree.below(h)
	}
	return most + math.Log(sum), nil
}

// most returns the largest logarithm of a head's sequence.
func (t *tree) most(heads []head) float64 {
	most := math.Inf(-1)
	for _, h := range heads {
		most = max(most, h.n.log)
	}
	return most
}

// below returns the probability, behind the head's sequence, of the tokens that go on from its place: 1 at the root.
func (t *tree) below(h head) float64 {
	if h.at == 0 {
		return 1
	}
	return t.mass(h.n, h.at+1, h.at+t.v.trie[h.at].Size())
}

// mass returns the probability of the valid tokens of places from..to-1.
func (t *tree) mass(n *node, from, to int) (sum float64) {
	for _, place := range t.v.trie[from:to] {
		if id := place.Token(); id != vocab.None && n.probs[id] > 0 && t.allows(n, token.ID(id)) {
			sum += n.probs[id]
		}
	}
	return sum
}

// end returns the probability that the text ends behind a sequence: 0 where it is not the text's encoding.
func (t *tree) end(n *node) (sum float64) {
	if !t.any && !t.whole(n) {
		return 0
	}
	for _, id := range t.v.ends {
		sum += n.probs[id]
	}
	return sum
}

// compute computes what the probabilities of heads need, in one call of the model: rows behind each sequence in which a head is, but for those at the
// root, whose rows only what comes next needs. It forgets the rows of others.
func (t *tree) compute(ctx context.Context, heads []head, next bool) error {
	var need []*node
	want := func(n *node) {
		if n.probs == nil && !slices.Contains(need, n) {
			need = append(need, n)
		}
	}
	for _, h := range heads {
		if h.at > 0 || next {
			want(h.n)
		}
		for n := h.n; !n.known; n = n.parent {
			want(n.parent)
		}
	}
	if len(need) > 0 {
		paths := make([][]token.ID, len(need))
		for i, n := range need {
			paths[i] = n.path()
		}
		rows, err := t.m.Probs(ctx, paths)
		if err != nil {
			return err
		}
		for i, n := range need {
			n.probs = rows[i]
		}
		t.computed = append(t.computed, need...)
	}
	for _, h := range heads {
		h.n.learn()
	}
	t.forget(heads)
	return nil
}

// learn finds the probability of a sequence from those of the tokens behind its beginnings.
func (n *node) learn() {
	if !n.known {
		n.parent.learn()
		n.log, n.known = n.parent.log+math.Log(n.parent.probs[n.id]), true
	}
}

// forget drops the rows of sequences in which no head is.
func (t *tree) forget(heads []head) {
	t.computed = slices.DeleteFunc(t.computed, func(n *node) bool {
		used := slices.ContainsFunc(heads, func(h head) bool { return h.n == n })
		if !used {
			n.probs = nil
		}
		return !used
	})
}

// path returns the tokens of a sequence.
func (n *node) path() (ids []token.ID) {
	for ; n.parent != nil; n = n.parent {
		ids = append(ids, n.id)
	}
	slices.Reverse(ids)
	return ids
}
