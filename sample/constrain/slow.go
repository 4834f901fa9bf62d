package constrain

import (
	"fmt"
	"strings"
	"sync"

	"grove/text/token"
)

// automaton is a deterministic automaton over bytes, whose state 0 begins, and of which every state leads to a final one.
type automaton interface {
	step(state int32, b byte) (next int32, alive bool)
	final(state int32) bool
}

// slow is a recognizer that runs each token by itself.
type slow struct {
	v *Vocabulary
	a automaton

	mu    sync.Mutex
	masks map[state]mask
}

func newSlow(v *Vocabulary, a automaton) (*slow, error) {
	return &slow{v: v, a: a, masks: map[state]mask{}}, nil
}

func (r *slow) start() (state, error) { return 0, nil }

func (r *slow) push(s state, text []byte) (state, int, error) {
	at := int32(s)
	for i, b := range text {
		to, ok := r.a.step(at, b)
		if !ok {
			return state(at), i, nil
		}
		at = to
	}
	return state(at), len(text), nil
}

func (r *slow) next(s state, id token.ID) (state, error) {
	if ok, _ := r.allows(s, id); !ok {
		return s, errIllegal
	}
	to, _, err := r.push(s, r.v.pieces[id])
	return to, err
}

func (r *slow) allows(s state, id token.ID) (bool, error) {
	switch p := r.v.pieces[id]; {
	case r.v.kinds[id] == end:
		return r.a.final(int32(s)), nil
	case len(p) == 0:
		return false, nil
	default:
		_, n, err := r.push(s, p)
		return n == len(p), err
	}
}

func (r *slow) mask(s state) (mask, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m, ok := r.masks[s]; ok {
		return m, nil
	}
	m := newMask(len(r.v.kinds))
	for id := range token.ID(len(r.v.kinds)) {
		if ok, _ := r.allows(s, id); ok {
			m.set(id)
		}
	}
	r.masks[s] = m
	return m, nil
}

func (r *slow) ends(s state) bool { return r.a.final(int32(s)) }

func (r *slow) forced(s state, max int) (text []byte) {
	for at := int32(s); len(text) < max && !r.a.final(at); {
		next, only, n := int32(0), byte(0), 0
		for b := range 256 {
			if to, ok := r.a.step(at, byte(b)); ok {
				next, only, n = to, byte(b), n+1
			}
		}
		if n != 1 {
			break
		}
		text, at = append(text, only), next
	}
	return text
}

func (r *slow) expected(s state) string {
	var all []string
	for b := range 256 {
		if _, ok := r.a.step(int32(s), byte(b)); ok {
			all = append(all, fmt.Sprintf("%q", string(rune(b))))
		}
	}
	if r.ends(s) {
		all = append(all, "the end")
	}
	return strings.Join(all, ", ")
}

// tree is the automaton of a list of texts.
type tree struct {
	steps  []map[byte]int32
	finals []bool
}

func newTree(texts []string) *tree {
	t := &tree{steps: []map[byte]int32{{}}, finals: []bool{false}}
	for _, text := range texts {
		at := int32(0)
		for i := range len(text) {
			to, ok := t.steps[at][text[i]]
			if !ok {
				to = int32(len(t.steps))
				t.steps, t.finals = append(t.steps, map[byte]int32{}), append(t.finals, false)
				t.steps[at][text[i]] = to
			}
			at = to
		}
		t.finals[at] = true
	}
	return t
}

func (t *tree) step(s int32, b byte) (int32, bool) { to, ok := t.steps[s][b]; return to, ok }
func (t *tree) final(s int32) bool                 { return t.finals[s] }
