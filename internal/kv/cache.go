// Package kv stores the keys and values of a forest. Committed tokens lie in pages of 64 indices, which
// sequences share by a hash of all entries from the first to the page's last. Live rows lie in scratch until
// they are committed or dropped. Pages and scratch have the same layout, so attention reads both alike (N2). A
// row's bytes are final when it is written (N4): committing copies them.
//
// Of recurrent layers it stores a state for each sequence, snapshots of states at the borders of some pages, and the inputs of
// live rows ([State], N8).
package kv

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"grove/internal/forest"
	"grove/internal/kernel"
	"grove/internal/weights/tensor"
)

// PageTokens is the number of indices that a page covers, equal to the attention block (N2).
const PageTokens = kernel.PageSlots

// ErrFull reports that no page is free.
var ErrFull = errors.New("cache is full")

// ErrSeqs reports a fork while as many sequences are open as the cache was made for.
var ErrSeqs = errors.New("no sequence is free")

// ErrMemory reports a cache that would be larger than its limit.
var ErrMemory = errors.New("not enough memory")

// ErrEvicted reports keys behind a sliding window, keys of an earlier chunk, or a state of recurrent layers, that are no
// longer stored.
var ErrEvicted = errors.New("keys behind the sliding window, or the state of recurrent layers, are gone")

// Config describes a cache.
type Config struct {
	Layers  []Layer
	Type    tensor.Type // F32, F16 or Q8_0
	Context int         // indices of a sequence
	Tokens  int         // tokens of all trunks together; rounded up to pages
	Seqs    int         // open sequences at a time: the size of window groups, and a limit of [Cache.Fork]
	Scratch int         // live rows; rounded up to pages
	Records int         // rows whose inputs to recurrent layers are kept, live ones and those committed since; 0: Scratch
	Limit   uint64      // of the cache's bytes; 0: none

	// Identity names all that decides the bytes: weights, rotary settings, numerics version. Only files of pages need it,
	// as the pages of a cache are of one model; it may take long. Nil is the identity "".
	Identity func() (string, error)
}

// group is the layers that keep the same tokens.
type group struct {
	keeps Keep
	gaps  bool // some tokens have no keys in it: those that have are counted by themselves
	pool  *pool
}

// place locates a layer's keys and values. That of a shared layer is the place of the layer that it reads.
type place struct {
	group     int // noGroup: it keeps none
	inPage    int // offset of the layer in a page of its group
	inScratch int // offset of the layer in a page of scratch
	bytes     int
}

// noGroup is the group of a layer without attention.
const noGroup = -1

// Cache is a forest with its keys and values. It is not safe for concurrent use, except that
// [Cache.Put] may run for different rows and heads at a time.
type Cache struct {
	Forest *forest.Forest
	Format *kernel.CacheFormat

	config       Config
	groups       []group
	places       []place
	scratch      []byte
	scratchBytes int // of one scratch page
	seqs         []trunk
	sources      sources
	states       *states // nil: no layer is recurrent
	stateBytes   float64
}

// trunk is the page tables, entries and hashes of a sequence.
type trunk struct {
	seq     forest.Seq
	tables  [][]int32 // by group, then by page; noPage where a window or a chunk has passed
	entries []forest.Entry
	hashes  []digest // of the sealed pages
	private int      // the first page that is not shared: a row saw more or less than its ancestors; noPage: none
	salt    digest   // with which the names of pages begin
	own     digest   // the same without a session's file
	adapter int      // the number of the set of adapters that rows from index adapted.From on have; 0: none
	adapted Adapted
	lists   [][]list // by layer and head, what [Cache.Select] chose; nil: nothing
	source  source
	state   Recurrence
}

// Memory is the bytes of a cache.
type Memory struct {
	Pages   int // of committed tokens, sources included
	Scratch int // of live rows
	States  int // of recurrent layers, with the inputs of rows
}

// Total returns the bytes of all.
func (m Memory) Total() int { return m.Pages + m.Scratch + m.States }

// MemoryOf returns the bytes that a cache takes once every page was used. Errors: those of [New], but for [ErrMemory].
func MemoryOf(c Config) (Memory, error) {
	c.Limit = 0
	k, sizes, sources, err := design(c)
	if err != nil {
		return Memory{}, err
	}
	m := Memory{Pages: k.config.sourcePages() * sources, Scratch: pagesOf(k.config.Scratch) * k.scratchBytes, States: int(k.stateBytes)}
	for g, size := range sizes {
		m.Pages += k.groupPages(g) * size
	}
	return m, nil
}

// New makes an empty cache. It returns an error that names the layer or setting that cannot be stored, and
// [ErrMemory] before it allocates more than the limit.
func New(c Config) (*Cache, error) {
	k, sizes, sourceBytes, err := design(c)
	if err != nil {
		return nil, err
	}
	if k.Forest, err = forest.New(len(c.Layers), c.Context, c.Scratch); err != nil {
		return nil, err
	}
	var substitutable forest.Layers
	for l := range c.Layers {
		if c.Layers[l].Gaps {
			substitutable = substitutable.With(l)
		}
	}
	k.Forest.SetSubstitutable(substitutable)
	for g := range k.groups {
		k.groups[g].pool = newPool(k.groupPages(g), sizes[g])
	}
	if sourceBytes > 0 {
		k.sources.pool = newPool(c.sourcePages(), sourceBytes)
	}
	k.scratch = make([]byte, k.Forest.Slots()/PageTokens*k.scratchBytes)
	if k.states != nil {
		k.states.allocate(&k.config, k.Forest.Slots())
	}
	return k, nil
}

// design lays a cache out and checks its size. It returns the bytes of a page of each group, and of a source, and allocates none of them.
func design(c Config) (k *Cache, sizes []int, sources int, err error) {
	format, ok := kernel.CacheFormatOf(c.Type)
	if !ok {
		return nil, nil, 0, fmt.Errorf("kv: cache type %v is not supported; F32, F16 and Q8_0 are", c.Type)
	}
	if c.Context < 1 || c.Tokens < 1 || c.Seqs < 1 || c.Scratch < 1 {
		return nil, nil, 0, fmt.Errorf("kv: a cache for %d indices, %d tokens, %d sequences and %d rows; each must be 1 or more", c.Context, c.Tokens, c.Seqs, c.Scratch)
	}
	if c.Records == 0 {
		c.Records = c.Scratch
	}
	k = &Cache{Format: format, config: c, places: make([]place, len(c.Layers))}
	if sizes, err = k.placeLayers(); err != nil {
		return nil, nil, 0, err
	}
	if k.sources, sources, err = newSources(c.Layers, format); err != nil {
		return nil, nil, 0, err
	}
	return k, sizes, sources, k.checkMemory(sizes, sources)
}

// placeLayers gives each layer its place in the pages of a group, whose bytes it returns, and in those of scratch.
func (k *Cache) placeLayers() (sizes []int, err error) {
	format, layers := k.Format, k.config.Layers
	for l, layer := range layers {
		if err := layer.check(l, layers); err != nil {
			return nil, err
		}
		if layer.KVHeads == 0 {
			k.places[l] = place{group: noGroup}
			continue
		}
		size := layer.HeadSize()
		for _, n := range []int{size.Key, size.Value} {
			if n < 1 || n%format.Multiple != 0 {
				return nil, fmt.Errorf("kv: cache type %v needs heads of a multiple of %d values; layer %d has %d (use --cache-type f16 or f32)",
					k.config.Type, format.Multiple, l, n)
			}
		}
		if layer.Keeps.Kind == Shared {
			k.places[l] = k.places[layer.Keeps.From]
			continue
		}
		g := k.groupOf(layer.Keeps, layer.Gaps)
		if g == len(sizes) {
			sizes = append(sizes, 0)
		}
		n := layer.KVHeads * (format.KeyBytes(size.Key) + format.ValueBytes(size.Value))
		k.places[l] = place{group: g, inPage: sizes[g], inScratch: k.scratchBytes, bytes: n}
		sizes[g] += n
		k.scratchBytes += n
	}
	return sizes, nil
}

// checkMemory refuses a cache beyond its limit before anything is allocated. It counts in floats, which
// do not overflow.
func (k *Cache) checkMemory(sizes []int, source int) error {
	states, need, err := layout(&k.config)
	if err != nil {
		return err
	}
	if allowed := k.allowed(); need > allowed {
		return fmt.Errorf("kv: the states of recurrent layers take %.0f bytes, those of %d sequences and the inputs of %d rows, and %.0f bytes may be used: %w; fewer sequences take less",
			need, k.config.Seqs, k.config.Records, allowed, ErrMemory)
	}
	k.states, k.stateBytes = states, need
	need += float64(pagesOf(k.config.Scratch))*float64(k.scratchBytes) + float64(k.config.sourcePages())*float64(source)
	for g, size := range sizes {
		need += float64(k.groupPages(g)) * float64(size)
	}
	if allowed := k.allowed(); need > allowed {
		return fmt.Errorf("kv: a cache of %d tokens takes %.1f GiB and %.1f GiB may be used: %w; a shorter context (-c) or --cache-type q8_0 takes less",
			k.config.Tokens, need/(1<<30), allowed/(1<<30), ErrMemory)
	}
	return nil
}

func (k *Cache) allowed() float64 {
	if k.config.Limit == 0 {
		return maxBytes
	}
	return min(maxBytes, float64(k.config.Limit))
}

// maxBytes is more than any machine's memory, and far from overflow.
const maxBytes = 1 << 46

func (k *Cache) groupOf(keeps Keep, gaps bool) int {
	for g := range k.groups {
		if k.groups[g].keeps == keeps && k.groups[g].gaps == gaps {
			return g
		}
	}
	k.groups = append(k.groups, group{keeps: keeps, gaps: gaps})
	return len(k.groups) - 1
}

// groupPages returns the number of a group's pages. A group of a window or of chunks has twice the pages that its sequences
// see, and those that one step commits: the last pages of closed sequences can then be found again.
func (k *Cache) groupPages(g int) int {
	all := pagesOf(k.config.Tokens) + k.config.Seqs // a partial page for each sequence
	keeps := k.groups[g].keeps
	if !keeps.Evicts() {
		return all
	}
	return min(all, 2*k.config.Seqs*(pagesOf(keeps.Window)+1)+pagesOf(k.config.Scratch)+1)
}

func pagesOf(tokens int) int { return (tokens + PageTokens - 1) / PageTokens }

// Bytes returns the memory of the cache, in bytes, once every page was used.
func (k *Cache) Bytes() int { return k.Memory().Total() }

// Memory returns the bytes that the cache takes once every page was used: those of [MemoryOf].
func (k *Cache) Memory() (m Memory) {
	m.Scratch = len(k.scratch)
	for _, g := range k.groups {
		m.Pages += g.pool.size()
	}
	if k.Crosses() {
		m.Pages += k.sources.pool.size()
	}
	if st := k.states; st != nil {
		m.States = st.pool.size() + 4*len(st.records)
	}
	return m
}

// Usage counts the pages of a cache, all groups together; the state of recurrent layers behind a row is one, too.
type Usage struct {
	Used  int // by sequences
	Idle  int // by none, but findable by hash until their memory is needed
	Total int
}

// Usage returns the number of pages by their use.
func (k *Cache) Usage() (u Usage) {
	add := func(p *pool) {
		u.Total += len(p.pages)
		u.Idle += p.idle
		u.Used += len(p.pages) - p.available()
	}
	for _, g := range k.groups {
		add(g.pool)
	}
	if k.states != nil {
		add(k.states.pool)
	}
	return u
}

// Held returns the number of pages and states that a sequence uses, with its reserved and its shared ones.
func (k *Cache) Held(s forest.Seq) (n int) {
	for _, table := range k.seqs[s].tables {
		for _, id := range table {
			if id != noPage {
				n++
			}
		}
	}
	if k.states != nil {
		r := &k.seqs[s].state
		for _, id := range [...]int32{r.Base, r.AheadState, r.loaded} {
			if id != noPage {
				n++
			}
		}
		n += len(r.pending)
	}
	return n
}

// Config returns the configuration that the cache was made with.
func (k *Cache) Config() Config { return k.config }

// NewSeq opens an empty sequence, which holds no page. Sequences share pages only where their salts are equal. The
// caller keeps to Config.Seqs sequences; where it does not, commits find fewer pages and return [ErrFull].
func (k *Cache) NewSeq(salt string) forest.Seq {
	s := k.Forest.NewSeq()
	for int(s) >= len(k.seqs) {
		k.seqs = append(k.seqs, trunk{tables: make([][]int32, len(k.groups))})
	}
	t := &k.seqs[s]
	t.salt = k.saltOf(salt)
	t.own = t.salt
	t.adapter, t.adapted = 0, Adapted{}
	t.private, t.lists, t.seq = noPage, nil, s
	t.state.begin()
	return s
}

// saltOf returns the digest with which the hashes of a sequence's pages begin.
func (k *Cache) saltOf(salt string) digest {
	return sha256.Sum256(append([]byte{byte(k.config.Type)}, salt...))
}

// CloseSeq drops the sequence's live nodes and ends it. Its sealed pages stay findable until their memory is
// needed. Errors: [forest.ErrSeq].
func (k *Cache) CloseSeq(s forest.Seq) error {
	if err := k.Forest.CloseSeq(s); err != nil {
		return err
	}
	t := &k.seqs[s]
	k.dropPages(t, 0)
	k.dropSource(t)
	k.clearStates(t)
	t.entries, t.hashes = t.entries[:0], t.hashes[:0]
	return nil
}

// dropPages gives back the pages behind the first n tokens, the last page first: a prefix is found longer than its
// continuation.
func (k *Cache) dropPages(t *trunk, n int) {
	for g := range t.tables {
		first := pagesOf(k.kept(t, g, n))
		for p := len(t.tables[g]) - 1; p >= first; p-- {
			if id := t.tables[g][p]; id != noPage {
				k.groups[g].pool.drop(id)
			}
		}
		t.tables[g] = t.tables[g][:min(first, len(t.tables[g]))]
	}
}
