// ngram.go drafts the token that most often followed the last tokens, by three counts: of the text, of all texts of its salt, and
// of a datastore (llama.cpp's lookup with an n-gram cache, 2024).

package text

import (
	"context"
	"sync"

	"grove/internal/text/token"
	"grove/method"
	"grove/method/datastore"
)

func init() {
	method.Register(method.Info{
		Name: "ngram-cache", Paper: "llama.cpp's lookup by an n-gram cache, 2024", Kind: method.KindText, Grade: method.Exact, Lasting: true, Replays: true,
		NotAuto: "adds under 1 % to sam and suffix-tree",
		Open: func(e method.Env) (method.Method, error) {
			return &cache{store: e.Datastore, dynamic: NewTrigram(dynamicMost)}, nil
		},
	})
}

const (
	orders       = 4       // tokens of the longest n-grams
	ngramLongest = 16      // tokens of a draft
	contextMost  = 1 << 17 // n-grams with a successor that are counted of a text
	dynamicMost  = 1 << 19 // and of the texts of a salt
	staticOrder  = 2
	preference   = 100 // how many times a count weighs for each time that the datastore has the token there
)

// threshold is what the counts behind an n-gram must have: the least number in all, and the share in percent of the best token.
type threshold struct{ sample, percent int }

// The thresholds of n-grams of 1 to 4 tokens.
var (
	lax    = [orders]threshold{{2, 66}, {2, 50}, {1, 50}, {1, 50}}
	strict = [orders]threshold{{4, 75}, {3, 66}, {2, 66}, {2, 66}}
)

// The sources of a draft, in the order in which they are asked.
const (
	inText = iota
	inTexts
	inStore
)

// ngramBeliefs are how often a draft of each source is accepted, before anything is known.
var ngramBeliefs = [...]float32{0.7, 0.7, 0.4}

// cache is what followed n-grams in the texts of a salt. It is safe for concurrent use.
type cache struct {
	store *datastore.Store // nil: none

	mu      sync.Mutex
	dynamic *TrigramMatrix
}

// NewDrafter implements [method.Method].
func (c *cache) NewDrafter(method.Trunk) (method.Drafter, error) {
	d := &ngramDrafter{cache: c, context: NewTrigram(contextMost)}
	d.read = d.draft
	return d, nil
}

type ngramDrafter struct {
	cache   *cache
	context *TrigramMatrix
	history *method.History
	counted int // tokens of the text
	tree    *method.Tree
	read    func() error // draft, made once
	ends    [orders]uint64
	recent  [orders]token.ID // the last tokens of the text and what is drafted, the last one first
	known   int              // of these
	next    []datastore.Range
}

// Begin implements [method.Drafter].
func (d *ngramDrafter) Begin(h *method.History) error {
	d.history, d.counted = h, 0
	d.context.Reset()
	d.count()
	return nil
}

// Committed implements [method.Drafter].
func (d *ngramDrafter) Committed(method.Update) { d.count() }

// count counts the n-grams of new tokens, those that begin before them too.
func (d *ngramDrafter) count() {
	ids := d.history.IDs()
	d.cache.mu.Lock()
	defer d.cache.mu.Unlock()
	d.look(ids[:d.counted])
	for ; d.counted < len(ids); d.counted++ {
		id := ids[d.counted]
		for n := range d.known {
			d.context.Add(d.ends[n], id)
			d.cache.dynamic.Add(d.ends[n], id)
		}
		d.push(id)
	}
}

// look makes recent the end of a text.
func (d *ngramDrafter) look(text []token.ID) {
	d.known = 0
	for _, id := range text[max(0, len(text)-orders):] {
		d.push(id)
	}
}

// push adds a token behind the recent ones.
func (d *ngramDrafter) push(id token.ID) {
	copy(d.recent[1:], d.recent[:])
	d.recent[0], d.known = id, min(d.known+1, orders)
	h := uint64(0xcbf29ce484222325)
	for n := range d.known {
		h = (h ^ uint64(uint32(d.recent[n]))) * 0x9e3779b97f4a7c15
		h ^= h>>29 ^ uint64(n)<<60
		d.ends[n] = h
	}
}

// Draft implements [method.Drafter]. The file of the datastore may become shorter while it is read, which is an error.
func (d *ngramDrafter) Draft(_ context.Context, t *method.Tree) error {
	d.tree = t
	d.cache.mu.Lock()
	defer d.cache.mu.Unlock()
	if d.cache.store == nil {
		return d.draft()
	}
	return d.cache.store.Read(d.read)
}

// draft adds one draft behind the other, as long as a source has one. The class of a draft is its source and the n-gram's length.
func (d *ngramDrafter) draft() error {
	d.look(d.history.IDs())
	at := method.Root
	for range ngramLongest {
		id, source, n := d.one()
		if id == token.None {
			break
		}
		if at = d.tree.Add(at, id, source*orders+n-1, ngramBeliefs[source]); at == method.Root {
			break
		}
		d.push(id)
	}
	return nil
}

// one returns the next draft, where it comes from, and the length of the n-gram before it; [token.None]: there is none.
func (d *ngramDrafter) one() (id token.ID, source, n int) {
	static := datastore.Range{}
	if d.cache.store != nil && d.known >= staticOrder {
		end := [staticOrder]token.ID{d.recent[1], d.recent[0]}
		static = d.cache.store.Longest(end[:], staticOrder, staticOrder)
	}
	if id, n = d.best(d.context, &lax, static); id != token.None {
		return id, inText, n
	}
	if id, n = d.best(d.cache.dynamic, &strict, static); id != token.None {
		return id, inTexts, n
	}
	best := datastore.Range{ID: token.None}
	if d.next = d.next[:0]; static.Count() > 0 {
		d.next = d.cache.store.Next(d.next, static)
	}
	for _, r := range d.next {
		if r.Count() > best.Count() {
			best = r
		}
	}
	if enough(lax[staticOrder-1], best.Count(), static.Count()) {
		return best.ID, inStore, staticOrder
	}
	return token.None, 0, 0
}

// best returns the successor of the longest n-gram whose counts are enough: the one of the best score, which is its count, times what the
// datastore says for it.
func (d *ngramDrafter) best(m *TrigramMatrix, least *[orders]threshold, static datastore.Range) (id token.ID, n int) {
	for n = d.known; n > 0; n-- {
		var best *Trigram
		most, total := 0, 0
		for t := m.First(d.ends[n-1]); t != nil; t = m.After(t) {
			score := int(t.Units)
			if static.Count() > 0 {
				if often := d.cache.store.Then(static, t.ID).Count(); often > 0 {
					score *= preference * often
				}
			}
			if total += int(t.Units); score > most {
				best, most = t, score
			}
		}
		if best != nil && enough(least[n-1], int(best.Units), total) {
			return best.ID, n
		}
	}
	return token.None, 0
}

// enough reports whether a count of all reaches a threshold.
func enough(t threshold, count, total int) bool {
	return total >= t.sample && 100*count >= t.percent*total
}
