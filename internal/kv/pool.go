package kv

import (
	"crypto/sha256"

	"grove/internal/machine"
)

// digest is the hash of the entries of a sealed page and of all pages before it.
type digest [sha256.Size]byte

// pool owns the pages of one layer group: memory that grows to a bound, reference counts, and the idle list: sealed pages
// without references, which later sequences may find, the least recently used first. Memory comes in slabs of some pages, each
// allocated when its first page is taken, so that a large bound costs nothing until texts are as long.
//
//	K1  a page with references is in no list; one without references is in free (no hash) or in the idle list (hash)
//	K2  the bytes of a page with a hash never change
type pool struct {
	pageBytes int
	slabPages int      // pages of a slab
	slabs     [][]byte // of pageBytes each page; nil: not allocated
	pages     []page
	free      []int32
	byHash    map[digest]int32
	oldest    int32 // ends of the idle list
	newest    int32
	idle      int // its length
}

type page struct {
	refs       int32
	hashed     bool
	hash       digest
	prev, next int32 // in the idle list
}

const noPage = -1

// slabBytes is the least bytes of a slab: large enough that the system backs it by large pages.
const slabBytes = 32 << 20

func newPool(n, pageBytes int) *pool {
	p := &pool{
		pageBytes: pageBytes, slabPages: max(1, min(n, (slabBytes+pageBytes-1)/max(1, pageBytes))), pages: make([]page, n),
		free: make([]int32, n), byHash: make(map[digest]int32), oldest: noPage, newest: noPage,
	}
	p.slabs = make([][]byte, (n+p.slabPages-1)/p.slabPages)
	for i := range p.free {
		p.free[i] = int32(n - 1 - i) // page 0 is taken first: slabs are allocated in their order
	}
	if n > 0 {
		p.allocate(0) // short texts allocate nothing
	}
	return p
}

// allocate makes the slab of a page, if there is none. Readers of other slabs may run meanwhile.
func (p *pool) allocate(id int32) {
	i := int(id) / p.slabPages
	if p.slabs[i] != nil {
		return
	}
	p.slabs[i] = make([]byte, min(p.slabPages, len(p.pages)-i*p.slabPages)*p.pageBytes)
	machine.HugePages(p.slabs[i])
}

// size returns the bytes of all pages, once each was used.
func (p *pool) size() int { return len(p.pages) * p.pageBytes }

// bytes returns the memory of a page that was taken.
func (p *pool) bytes(id int32) []byte {
	at := int(id) % p.slabPages * p.pageBytes
	return p.slabs[int(id)/p.slabPages][at : at+p.pageBytes : at+p.pageBytes]
}

// available returns the number of pages that take can return.
func (p *pool) available() int { return len(p.free) + p.idle }

// take returns a page with one reference: a free one, or else the oldest idle one, which loses its hash. It
// returns false where neither exists.
func (p *pool) take() (int32, bool) {
	if n := len(p.free); n > 0 {
		id := p.free[n-1]
		p.free = p.free[:n-1]
		p.pages[id] = page{refs: 1}
		p.allocate(id)
		return id, true
	}
	id := p.oldest
	if id == noPage {
		return noPage, false
	}
	p.unlink(id)
	delete(p.byHash, p.pages[id].hash)
	p.pages[id] = page{refs: 1}
	return id, true
}

// share adds a reference to the page with the hash, and returns false where no page has it.
func (p *pool) share(h digest) (int32, bool) {
	id, ok := p.byHash[h]
	if ok {
		p.retain(id)
	}
	return id, ok
}

func (p *pool) retain(id int32) {
	if p.pages[id].refs == 0 {
		p.unlink(id)
	}
	p.pages[id].refs++
}

// drop removes one reference. A sealed page stays findable until its memory is needed.
func (p *pool) drop(id int32) {
	pg := &p.pages[id]
	if pg.refs--; pg.refs > 0 {
		return
	}
	if !pg.hashed {
		p.free = append(p.free, id)
		return
	}
	p.idle++
	pg.prev, pg.next = p.newest, noPage
	if p.newest == noPage {
		p.oldest = id
	} else {
		p.pages[p.newest].next = id
	}
	p.newest = id
}

// unlink removes a page from the idle list.
func (p *pool) unlink(id int32) {
	p.idle--
	pg := &p.pages[id]
	if pg.prev == noPage {
		p.oldest = pg.next
	} else {
		p.pages[pg.prev].next = pg.next
	}
	if pg.next == noPage {
		p.newest = pg.prev
	} else {
		p.pages[pg.next].prev = pg.prev
	}
}

// seal gives a full page its hash, so that other sequences find it, and returns the page that has the hash. Where
// another page has it already, the caller's reference moves to that page: equal hashes mean equal bytes.
func (p *pool) seal(id int32, h digest) int32 {
	if other, ok := p.share(h); ok {
		p.drop(id)
		return other
	}
	p.pages[id].hashed, p.pages[id].hash = true, h
	p.byHash[h] = id
	return id
}

// forget frees the page of a hash that has no references, if there is one.
func (p *pool) forget(h digest) {
	id, ok := p.byHash[h]
	if !ok || p.pages[id].refs > 0 {
		return
	}
	p.unlink(id)
	delete(p.byHash, h)
	p.pages[id] = page{}
	p.free = append(p.free, id)
}

// own returns a page of the same bytes that has one reference and no hash, in exchange for the caller's reference.
// It returns false, and changes nothing, where that needs a page and none is free.
func (p *pool) own(id int32) (int32, bool) {
	pg := &p.pages[id]
	if pg.refs == 1 && !pg.hashed {
		return id, true
	}
	if fresh, ok := p.take(); ok {
		copy(p.bytes(fresh), p.bytes(id))
		p.drop(id)
		return fresh, true
	}
	if pg.refs > 1 {
		return id, false
	}
	delete(p.byHash, pg.hash)
	*pg = page{refs: 1}
	return id, true
}
