package kv

import (
	"crypto/sha256"
	"fmt"
	"iter"

	"grove/internal/forest"
	"grove/internal/text/token"
)

// Files names single pages, so that other caches of the same model find them in files by what they hold. A file has one page of one
// layer group, or one state; its name is a digest of the model's identity, of the layers that share a page, and of the name of the page. It
// does not change, and may be used from all goroutines.
type Files struct {
	k     *Cache
	kinds []digest // by group, and behind them of states: with what the names of files begin
}

// Page is a page of a text in a file: of a layer group, or the state behind the page where Kind is the number of groups.
type Page struct{ Kind, Index int }

// Files returns the files of the cache's pages. It waits for the model's identity. Errors: those of [Config].Identity, and a model whose
// pages depend on a source.
func (k *Cache) Files() (*Files, error) {
	if k.Crosses() {
		return nil, errCrosses
	}
	origin, err := k.origin(digest{})
	if err != nil {
		return nil, err
	}
	f := &Files{k: k}
	for g := range k.groups {
		h := sha256.New()
		fmt.Fprintf(h, "%x group %+v %v\n", origin, k.groups[g].keeps, k.groups[g].gaps)
		for l, pl := range k.places {
			if pl.group == g {
				fmt.Fprintf(h, "layer %d %+v at %d of %d bytes\n", l, k.config.Layers[l], pl.inPage, pl.bytes)
			}
		}
		f.kinds = append(f.kinds, digest(h.Sum(nil)))
	}
	if k.states != nil {
		f.kinds = append(f.kinds, sha256.Sum256(fmt.Appendf(nil, "%x states", origin)))
	}
	return f, nil
}

// Text is a text whose full pages are in files or may come from there. It is for one goroutine.
type Text struct {
	f      *Files
	ids    []token.ID
	names  []digest  // of its full pages
	n      int       // pages that the sequence has with those that were taken
	have   int       // of these, the ones that it had before
	tables [][]int32 // by group, the pages of the sequence
	state  int32     // that was taken; NoState: none
}

// Text names the pages of a text as sequences of a salt and of adapters name them; it keeps ids.
func (f *Files) Text(salt string, a Adapted, ids []token.ID) *Text {
	t := &Text{f: f, ids: ids, state: NoState}
	prev := a.apart(f.k.saltOf(salt))
	entries := make([]forest.Entry, 0, PageTokens)
	for i, id := range ids[:len(ids)/PageTokens*PageTokens] {
		e := forest.IDEntry(id)
		if a.Name != (digest{}) && i >= a.From {
			e = forest.NamedEntry(e, a.Name)
		}
		if entries = append(entries, e); len(entries) == PageTokens {
			prev, entries = chain(prev, entries), entries[:0]
			t.names = append(t.names, prev)
		}
	}
	return t
}

// Len returns the number of the text's full pages.
func (t *Text) Len() int { return len(t.names) }

// pool returns the pool of a page.
func (t *Text) pool(p Page) *pool {
	if p.Kind == len(t.f.k.groups) {
		return t.f.k.states.pool
	}
	return t.f.k.groups[p.Kind].pool
}

// Pages returns the pages of the text that files may hold: page by page, all kinds of it. Those that no row behind them needs are among them,
// since a shorter text may.
func (t *Text) Pages() iter.Seq[Page] {
	return func(yield func(Page) bool) {
		for i := range t.names {
			for kind := range t.f.kinds {
				if kind == len(t.f.k.groups) && (i+1)*PageTokens%t.f.k.states.cadence != 0 {
					continue
				}
				if !yield(Page{kind, i}) {
					return
				}
			}
		}
	}
}

// Keeps reports whether a page is of a group that keeps all tokens, so that no page behind it is of use without it.
func (t *Text) Keeps(p Page) bool {
	return p.Kind < len(t.f.k.groups) && !t.f.k.groups[p.Kind].keeps.Evicts()
}

// Cached returns how many of the first pages, most at most, the cache has, with all that a row behind them needs. It needs the cache to itself.
func (t *Text) Cached(most int) int {
	return t.Longest(0, most, func(p Page) bool {
		_, ok := t.pool(p).byHash[t.names[p.Index]]
		return ok
	})
}

// Longest returns the most pages of the text, from have to most, that a sequence with the first have pages can have by those that are
// stored.
func (t *Text) Longest(have, most int, stored func(Page) bool) int {
	n := have
	for n < most && t.all(n, n+1, t.Keeps, stored) {
		n++
	}
	evicts := func(p Page) bool { return !t.Keeps(p) }
	for n > have && !t.all(have, n, evicts, stored) {
		n--
	}
	return n
}

// all reports whether the pages of some kinds are stored that a row behind the first n pages needs, without the first have.
func (t *Text) all(have, n int, of, stored func(Page) bool) bool {
	if k := t.f.k; k.states != nil && n*PageTokens%k.states.cadence != 0 && of(Page{Kind: len(k.groups)}) {
		return false
	}
	for p := range t.behind(have, n) {
		if of(p) && !stored(p) {
			return false
		}
	}
	return true
}

// behind returns the pages that a sequence of the first have pages lacks of the first n, the last of each kind first.
func (t *Text) behind(have, n int) iter.Seq[Page] {
	return func(yield func(Page) bool) {
		k := t.f.k
		if k.states != nil && n > have && !yield(Page{len(k.groups), n - 1}) {
			return
		}
		for g := range k.groups {
			for i := n - 1; i >= max(have, k.firstSeen(g, n*PageTokens)); i-- {
				if !yield(Page{g, i}) {
					return
				}
			}
		}
	}
}

// Name returns the name of a page in files of any cache: a digest of all that its bytes depend on.
func (t *Text) Name(p Page) [sha256.Size]byte {
	return sha256.Sum256(append(t.f.kinds[p.Kind][:], t.names[p.Index][:]...))
}

// Bytes returns the bytes of a page.
func (t *Text) Bytes(p Page) int { return t.pool(p).pageBytes }

// Copy copies a page from the cache, and reports false where the cache does not have it. It needs the cache to itself.
func (t *Text) Copy(p Page, to []byte) bool {
	pool := t.pool(p)
	id, ok := pool.byHash[t.names[p.Index]]
	if ok {
		copy(to, pool.bytes(id))
	}
	return ok
}

// Take gives a sequence, which has some first pages of the text and no other token, those up to n, behind its end: its length is as before, and
// [Cache.Truncate] to that gives them back. Errors: [ErrFull]; nothing has changed then. It needs the cache to itself.
func (t *Text) Take(s forest.Seq, n int) (err error) {
	seq := &t.f.k.seqs[s]
	t.n, t.have = n, len(seq.hashes)
	t.tables, t.state, err = t.f.k.takePages(seq, n)
	return err
}

// Taken returns the pages that [Text.Take] took, each with the memory that is to be filled. This may be done while the cache is in use, as long
// as the sequence keeps its pages.
func (t *Text) Taken() iter.Seq2[Page, []byte] {
	return func(yield func(Page, []byte) bool) {
		for p := range t.behind(t.have, t.n) {
			id := t.state
			if p.Kind < len(t.tables) {
				id = t.tables[p.Kind][p.Index]
			}
			if !yield(p, t.pool(p).bytes(id)) {
				return
			}
		}
	}
}

// Adopt makes the pages that were taken and filled the trunk of their sequence, and lets others find them. It needs the cache to itself.
func (t *Text) Adopt(s forest.Seq) error { return t.f.k.adopt(s, t.ids, t.n) }
