package bytewise

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"grove/constrain/vocab"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
)

// Healing draws the first tokens of an answer from the exact distribution behind the bytes of a prompt, whatever the tokens in which the prompt ends: each cover of the
// bytes has its share of their probability, at temperature 1. Penalties, constraints and the like count as they do for every token; temperature and
// truncation change the draw of each token, as they do everywhere. Behind the cover the answer goes on token by token. It is the [sample.Stage] of that, the last of a chain, and
// changes nothing before [Healing.Weigh].
type Healing struct {
	Left int    // tokens of the prompt that stay
	Head []byte // the bytes of those that do not, with which the answer begins

	// Shown is Head without the blank that the tokenizer puts before a text, where that begins there.
	Shown []byte

	view *View
	rows []row // by state, from 1 on; 0: behind the cover
}

// row is the tokens that go on with the covers of the head behind some of its tokens.
type row []choice

// choice is a token, the logarithm of the probability of the rest of the head behind it, and the state behind it.
type choice struct {
	id    token.ID
	log   float32
	state sample.StageState
}

// Heal takes tokens back at the end of a prompt: those that some token could replace that begins in the text and goes on behind it. The prompt keeps its
// first token. Behind a token without bytes there is nothing to take back: Head is empty.
// Errors: a prompt whose tokens are not the encoding of their text.
func (v *Vocabulary) Heal(prompt []token.ID) (*Healing, error) {
	from := v.cut(prompt)
	first := max(from, 1) // of the tokens before it the view knows the text
	h := &Healing{view: v.New(nil, prompt[from:min(first, len(prompt))]), Left: first}
	if first >= len(prompt) {
		h.Left = len(prompt)
		return h, nil
	}
	for _, b := range []byte(v.Text(prompt[first:])) {
		if err := h.view.Push(b); err != nil {
			return nil, fmt.Errorf("bytewise: healing the end of a prompt: %w", err)
		}
	}
	trunk := h.view.shorten()
	h.Left += len(trunk)
	h.Head = []byte(v.Text(prompt[first:])[len(v.Text(trunk)):])
	h.Shown = h.Head
	if len(h.Head) > 0 {
		shown, err := v.text.AppendPieceAfter(nil, prompt[h.Left-1], prompt[h.Left], false)
		h.Shown = h.Head[max(0, len(v.words.Bytes(prompt[h.Left]))-len(shown)):]
		return h, err
	}
	return h, nil
}

// HealText is Heal for a text by itself, behind which the answer does not stand in the prompt. It returns what is left of the text.
func (v *Vocabulary) HealText(text string) (h *Healing, left string, err error) {
	ids, err := v.text.Encode([]token.ID{token.None}, text, tokenizer.Options{Plain: true})
	if err != nil {
		return nil, "", err
	}
	if h, err = v.Heal(ids); err != nil {
		return nil, "", err
	}
	left, ok := strings.CutSuffix(text, string(h.Head))
	if !ok && !strings.HasSuffix(string(h.Head), text) { // with a blank that the tokenizer puts before a text
		err = fmt.Errorf("bytewise: healing the end of a text: %w", ErrNone)
	} else if !ok {
		left = ""
	}
	return h, left, err
}

// cut returns a token of the prompt, at the beginning of a text or behind a boundary, before all places where tokens begin that reach the end.
func (v *Vocabulary) cut(prompt []token.ID) int {
	from := len(prompt)
	for from > 0 && v.Ordinary(prompt[from-1]) {
		from--
	}
	text := []byte(v.Text(prompt[from:]))
	reach := len(text)
	for at := max(0, len(text)-v.words.Longest()); at < reach; at++ {
		if v.begun(text[at:]) {
			reach = at
		}
	}
	cut := from
	for k, end := from, 0; k < len(prompt); k++ {
		if end <= reach && v.boundary(text, end) || end < reach && len(prompt)-k >= 2*mostBehind && utf8.RuneStart(text[end]) {
			cut = k
		}
		end += len(v.words.Bytes(prompt[k]))
	}
	return cut
}

// begun reports whether a text begins a longer token.
func (v *Vocabulary) begun(text []byte) bool {
	t := tree{v: v}
	at := 0
	for _, b := range text {
		if at = t.child(at, b); at < 0 {
			return false
		}
	}
	return v.trie[at].Size() > 1
}

// shorten moves the view's beginning behind the tokens that all covers have in common, and returns these.
func (w *View) shorten() (trunk []token.ID) {
	root := w.heads[0].n
	for _, h := range w.heads {
		for !root.leads(h.n) {
			root = root.parent
		}
	}
	trunk = root.path()
	root.parent, root.log, root.known = nil, 0, true
	return trunk
}

// leads reports whether a sequence is another one or a beginning of it.
func (n *node) leads(to *node) bool {
	for to != nil && to != n {
		to = to.parent
	}
	return to == n
}

// Weigh computes the shares of the covers from a model whose paths begin behind the tokens that stay. The sequence's draws begin anew afterwards, with
// [Healing.Start]. Errors are the model's, and that of a model that gives the bytes no probability.
func (h *Healing) Weigh(ctx context.Context, m Model) error {
	if len(h.Head) == 0 {
		return nil
	}
	h.view.tree.m = m
	if err := h.view.tree.compute(ctx, h.view.heads, false); err != nil {
		return err
	}
	w := weighing{tree: h.view.tree, heads: map[*node][]head{}, next: map[*node][]*node{}}
	for _, at := range h.view.heads {
		w.heads[at.n] = append(w.heads[at.n], at)
		for n := at.n; n.parent != nil && !slices.Contains(w.next[n.parent], n); n = n.parent {
			w.next[n.parent] = append(w.next[n.parent], n)
		}
	}
	root := h.view.heads[0].n
	for root.parent != nil {
		root = root.parent
	}
	if _, sum := w.weigh(root); !(sum > 0) {
		return fmt.Errorf("bytewise: healing the end of a prompt: %w", ErrText)
	}
	h.rows = w.rows
	return nil
}

// weighing makes the rows of a healing, that of the beginning first.
type weighing struct {
	tree  *tree
	heads map[*node][]head
	next  map[*node][]*node // the sequences of one token more
	rows  []row
}

// weigh makes the rows of a sequence and those behind it. It returns the state and the probability, behind it, of the rest of the head.
func (w *weighing) weigh(n *node) (sample.StageState, float64) {
	if slices.ContainsFunc(w.heads[n], func(h head) bool { return h.at == 0 }) {
		return 0, 1
	}
	at, sum := len(w.rows), 0.0
	w.rows = append(w.rows, nil)
	var all row
	for _, next := range w.next[n] {
		if state, p := w.weigh(next); p > 0 {
			all = append(all, choice{next.id, float32(math.Log(p)), state})
			sum += math.Exp(next.log-n.log) * p
		}
	}
	for _, h := range w.heads[n] {
		for _, place := range w.tree.v.trie[h.at+1 : h.at+w.tree.v.trie[h.at].Size()] {
			if id := place.Token(); id != vocab.None && w.tree.allows(n, token.ID(id)) {
				all = append(all, choice{id: token.ID(id)})
				sum += n.probs[id]
			}
		}
	}
	slices.SortFunc(all, func(a, b choice) int { return cmp.Compare(a.id, b.id) })
	w.rows[at] = all
	return sample.StageState(at + 1), sum
}

// String returns the name of the stage.
func (h *Healing) String() string { return "heal" }

// Start implements [sample.Stage].
func (h *Healing) Start([]token.ID) sample.StageState { return sample.StageState(min(1, len(h.rows))) }

// Next implements [sample.Stage].
func (h *Healing) Next(s sample.StageState, id token.ID) sample.StageState {
	if s == 0 {
		return 0
	}
	r := h.rows[s-1]
	if at, ok := slices.BinarySearchFunc(r, id, func(c choice, id token.ID) int { return cmp.Compare(c.id, id) }); ok {
		return r[at].state
	}
	return 0
}

// Apply implements [sample.Stage].
func (h *Healing) Apply(s sample.StageState, logits []float32) {
	if s == 0 {
		return
	}
	r := h.rows[s-1]
	for id := range logits {
		if len(r) > 0 && r[0].id == token.ID(id) {
			logits[id] += r[0].log
			r = r[1:]
		} else {
			logits[id] = float32(math.Inf(-1))
		}
	}
}
