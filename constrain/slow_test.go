package constrain

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"grove/constrain/grammar"
	"grove/constrain/regex"
	"grove/constrain/vocab"
	"grove/internal/text/token"
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

func newSlow(v *Vocabulary, src grammar.Source) (*slow, error) {
	a, err := newDerivatives(src)
	return &slow{v: v, a: a, masks: map[state]mask{}}, err
}

func (r *slow) start() (state, error) { return state{}, nil }

func (r *slow) push(s state, text []byte) (state, int, error) {
	at := s.place
	for i, b := range text {
		to, ok := r.a.step(at, b)
		if !ok {
			return state{place: at}, i, nil
		}
		at = to
	}
	return state{place: at}, len(text), nil
}

func (r *slow) next(s state, id token.ID) (state, error) {
	if ok, _ := r.allows(s, id); !ok {
		return s, errIllegal
	}
	to, _, err := r.push(s, r.v.trie.Bytes(id))
	return to, err
}

func (r *slow) allows(s state, id token.ID) (bool, error) {
	switch p := r.v.trie.Bytes(id); {
	case r.v.trie.Kind(id) == vocab.End:
		return r.a.final(s.place), nil
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
	m := newMask(r.v.size)
	for id := range token.ID(r.v.size) {
		if ok, _ := r.allows(s, id); ok {
			m.set(id)
		}
	}
	r.masks[s] = m
	return m, nil
}

func (r *slow) worn() bool { return false }
func (r *slow) held() int  { return 0 }

func (r *slow) ends(s state) bool { return r.a.final(s.place) }

func (r *slow) forced(s state, max int) (text []byte) {
	for at := s.place; len(text) < max && !r.a.final(at); {
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
		if _, ok := r.a.step(s.place, byte(b)); ok {
			all = append(all, fmt.Sprintf("%q", string(rune(b))))
		}
	}
	if r.ends(s) {
		all = append(all, "the end")
	}
	return strings.Join(all, ", ")
}

// derivatives is the automaton of a regular expression: its derivatives.
type derivatives struct {
	mu    sync.Mutex
	store *regex.Store
	ids   []regex.ID
	known map[regex.ID]int32
}

// newDerivatives returns the automaton of a grammar of one lexeme.
func newDerivatives(src grammar.Source) (*derivatives, error) {
	edges, err := src.Edges(nil, src.Start())
	if err != nil {
		return nil, err
	}
	if len(edges) != 1 || edges[0].Lexeme == regex.Nothing {
		return nil, errors.New("constrain: grammars are not built yet")
	}
	id := edges[0].Lexeme
	if src.Final(src.Start()) {
		id = src.Store().Or(id, regex.Epsilon)
	}
	return &derivatives{store: src.Store(), ids: []regex.ID{id}, known: map[regex.ID]int32{id: 0}}, nil
}

func (d *derivatives) step(s int32, b byte) (int32, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := d.store.Derive(d.ids[s], b)
	if id == regex.Nothing {
		return 0, false
	}
	to, ok := d.known[id]
	if !ok {
		to = int32(len(d.ids))
		d.ids, d.known[id] = append(d.ids, id), to
	}
	return to, true
}

func (d *derivatives) final(s int32) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.store.Nullable(d.ids[s])
}
