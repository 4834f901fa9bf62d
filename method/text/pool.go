// pool.go drafts from a pool of n-grams that the texts of a salt share: the token that last followed the last n tokens, whatever text
// they were in (ngram-mod of ik_llama.cpp, 2025). A slot of the pool has no key: n-grams that share one draft wrongly, which
// verification finds.

package text

import (
	"context"
	"sync/atomic"

	"grove/internal/text/token"
	"grove/method"
)

func init() {
	method.Register(method.Info{
		Name: "ngram-pool", Paper: "ik_llama.cpp's ngram-mod, 2025", Kind: method.KindText, Grade: method.Exact, Lasting: true, Replays: true,
		NotAuto: "suffix-tree gives more",
		Open:    func(method.Env) (method.Method, error) { return newPool(slots), nil },
	})
}

const (
	slots          = 1 << 22 // of 4 bytes each
	n              = 8       // tokens of an n-gram
	poolShortest   = 2       // tokens of a draft: shorter ones are left out
	poolLongest    = 64
	maxWrongDrafts = 3 // drafts in a row of which less than half is right, after which drafts become half as long
)

// pool is what followed n-grams in the texts of a salt: the slot of an n-gram has the token plus one, 0 is empty. It is safe for concurrent
// use: a slot is written whole, and the last write counts.
type pool struct {
	next []atomic.Int32
	used atomic.Int64
}

func newPool(size int) *pool { return &pool{next: make([]atomic.Int32, size)} }

// slot returns the slot of an n-gram, of which h is the polynomial.
func (p *pool) slot(h uint64) *atomic.Int32 { return &p.next[(h^h>>31)%uint64(len(p.next))] }

// put notes what follows an n-gram.
func (p *pool) put(h uint64, id token.ID) {
	if p.slot(h).Swap(int32(id)+1) == 0 {
		p.used.Add(1)
	}
}

// tidy empties a pool of which more than a quarter is used: too many n-grams would share slots.
func (p *pool) tidy() {
	if p.used.Load() <= int64(len(p.next)/4) {
		return
	}
	p.used.Store(0)
	for i := range p.next {
		p.next[i].Store(0)
	}
}

// NewDrafter implements [method.Method].
func (p *pool) NewDrafter(method.Trunk) (method.Drafter, error) { return &poolDrafter{pool: p}, nil }

type poolDrafter struct {
	pool    *pool
	history *method.History
	read    int    // tokens of the text that the pool knows
	hash    uint64 // the polynomial of the last n of them, of fewer at first
	draft   []token.ID
	most    int // tokens of a draft
	wrong   int // drafts in a row
}

// factor is the polynomial's, and leaves what it gives the first token of an n-gram.
const factor = 6364136223846793005

var leaves = func() uint64 {
	x := uint64(1)
	for range n {
		x *= factor
	}
	return x
}()

// roll moves the polynomial of n tokens by one: in comes, out was the first of them, counted from 1 so that no token is nothing.
func roll(h uint64, out, in token.ID) uint64 {
	return h*factor - uint64(uint32(out+1))*leaves + uint64(uint32(in+1))
}

// Begin implements [method.Drafter].
func (d *poolDrafter) Begin(h *method.History) error {
	d.history, d.read, d.hash, d.draft, d.most, d.wrong = h, 0, 0, d.draft[:0], poolLongest, 0
	d.pool.tidy()
	d.learn()
	return nil
}

// learn puts the n-grams of new tokens into the pool.
func (d *poolDrafter) learn() {
	ids := d.history.IDs()
	for ; d.read < len(ids); d.read++ {
		if d.read >= n {
			d.pool.put(d.hash, ids[d.read])
		}
		d.hash = roll(d.hash, at(ids, nil, d.read-n), ids[d.read])
	}
}

// at returns a token of a text and what is drafted behind it; [token.None], which counts as nothing, before the text.
func at(text, draft []token.ID, place int) token.ID {
	switch {
	case place < 0:
		return token.None
	case place < len(text):
		return text[place]
	}
	return draft[place-len(text)]
}

// Committed implements [method.Drafter]. Drafts become shorter where they are wrong, and longer again where they are right.
func (d *poolDrafter) Committed(r method.Update) {
	right := 0
	for right < min(len(r.IDs), len(d.draft)) && r.IDs[right] == d.draft[right] {
		right++
	}
	switch {
	case len(d.draft) == 0:
	case right == len(d.draft):
		d.most, d.wrong = min(2*d.most, poolLongest), 0
	case right == len(r.IDs) || 2*right >= len(d.draft):
		d.wrong = 0 // as far as it is known
	default:
		if d.wrong++; d.wrong == maxWrongDrafts {
			d.most, d.wrong = max(d.most/2, poolShortest), 0
		}
	}
	d.draft = d.draft[:0]
	d.learn()
}

// Draft implements [method.Drafter]. The class of a draft is its depth.
func (d *poolDrafter) Draft(_ context.Context, t *method.Tree) error {
	d.draft = d.draft[:0]
	text, h := d.history.IDs(), d.hash
	if len(text) < n {
		return nil
	}
	for range d.most {
		next := d.pool.slot(h).Load()
		if next == 0 {
			break
		}
		id := token.ID(next - 1)
		h = roll(h, at(text, d.draft, len(text)+len(d.draft)-n), id)
		d.draft = append(d.draft, id)
	}
	if len(d.draft) < poolShortest {
		d.draft = d.draft[:0]
		return nil
	}
	place := method.Root
	for i, id := range d.draft {
		if place = t.Add(place, id, min(i, method.Classes-1), poolBelief); place == method.Root {
			break
		}
	}
	return nil
}

// poolBelief is how often a draft is accepted, before anything is known.
const poolBelief = 0.7
