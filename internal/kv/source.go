package kv

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"grove/internal/forest"
	"grove/internal/kernel"
)

// Heads describes keys and values that a layer stores of a sequence's source.
type Heads struct {
	KVHeads   int // 0: none
	KeySize   int // values of a head's keys
	ValueSize int // values of a head's values; 0: as many
}

// HeadSize returns the values of one head.
func (h Heads) HeadSize() kernel.HeadSize {
	return Layer{KeySize: h.KeySize, ValueSize: h.ValueSize}.HeadSize()
}

// sources is the storage of the keys and values of sources: another text for each sequence, which its rows read in
// layers with cross attention. They are written once, before a row reads them. Their pages have the layout of the trunk's.
type sources struct {
	pool *pool // nil: no layer reads a source
	at   []int // by layer: its offset in a page
}

// source is what a sequence has of its source.
type source struct {
	tokens int // 0: it has none
	name   digest
	table  []int32
}

// newSources finds room for what layers read of sources, and returns the bytes of a page.
func newSources(layers []Layer, format *kernel.CacheFormat) (s sources, pageBytes int, err error) {
	s.at = make([]int, len(layers))
	for l, layer := range layers {
		s.at[l] = pageBytes
		h := layer.Cross
		if h == (Heads{}) {
			continue
		}
		size := h.HeadSize()
		if h.KVHeads < 1 || size.Key < 1 || size.Value < 1 || size.Key%format.Multiple != 0 || size.Value%format.Multiple != 0 {
			return s, 0, fmt.Errorf("kv: layer %d: cross attention of %d heads of %d and %d values; cache type %v needs multiples of %d (use --cache-type f16 or f32)",
				l, h.KVHeads, size.Key, size.Value, format.Type, format.Multiple)
		}
		pageBytes += h.KVHeads * (format.KeyBytes(size.Key) + format.ValueBytes(size.Value))
	}
	return s, pageBytes, nil
}

// sourcePages is the number of pages of sources: every open sequence has room for one of a context.
func (c *Config) sourcePages() int { return c.Seqs * pagesOf(c.Context) }

// Crosses reports whether layers read a source.
func (k *Cache) Crosses() bool { return k.sources.pool != nil }

// SetSource gives an empty sequence without a source one of n tokens, which a name tells from all others: the pages of
// the trunk are shared with sequences of the same source only, and so are those of the source. It reports whether the
// cache has its keys and values. Where it has not, they are to be written with [Cache.PutSource], and then shared by
// [Cache.SealSource], before a row reads them. Forks have the source of their origin. Errors: [forest.ErrSeq]; a model
// without cross attention; a sequence that has a text or a source; a source without tokens or longer than the context.
// Nothing has changed then.
func (k *Cache) SetSource(s forest.Seq, name string, n int) (stored bool, err error) {
	if _, err := k.Forest.Index(s, forest.Trunk); err != nil {
		return false, err
	}
	t := &k.seqs[s]
	switch {
	case !k.Crosses():
		return false, fmt.Errorf("kv: a source of %d tokens for a model without cross attention", n)
	case len(t.entries) > 0 || t.source.tokens > 0:
		return false, fmt.Errorf("kv: a source for a sequence of %d tokens with a source of %d; it must have neither", len(t.entries), t.source.tokens)
	case n < 1 || n > k.config.Context:
		return false, fmt.Errorf("kv: a source of %d tokens; it must have 1 to %d", n, k.config.Context)
	}
	digest := sha256.Sum256(append(t.salt[:], name...))
	pages := pagesOf(n)
	if stored = k.shareSource(t, digest, pages); !stored {
		pool := k.sources.pool
		if free := pool.available(); pages > free {
			return false, fmt.Errorf("kv: a source needs %d pages of %d tokens and %d are free: %w", pages, PageTokens, free, ErrFull)
		}
		for range pages {
			id, _ := pool.take()
			t.source.table = append(t.source.table, id)
		}
	}
	t.source.tokens, t.source.name = n, digest
	t.salt, t.own = digest, digest
	return stored, nil
}

// shareSource makes stored pages of a name those of a sequence's source, if all of them are stored.
func (k *Cache) shareSource(t *trunk, name digest, pages int) bool {
	for p := range pages {
		id, ok := k.sources.pool.share(sourcePage(name, p))
		if !ok {
			k.dropSource(t)
			return false
		}
		t.source.table = append(t.source.table, id)
	}
	return true
}

// sourcePage names a page of a source. Its keys depend on all tokens, those behind it too, so the chain of a trunk's
// pages does not name it.
func sourcePage(name digest, page int) digest {
	return sha256.Sum256(binary.LittleEndian.AppendUint32(append([]byte("source"), name[:]...), uint32(page)))
}

// SealSource says that the keys and values of a sequence's source are written: other sequences of the source find them.
func (k *Cache) SealSource(s forest.Seq) {
	src := &k.seqs[s].source
	for p, id := range src.table {
		src.table[p] = k.sources.pool.seal(id, sourcePage(src.name, p))
	}
}

// SourceLen returns the tokens of a sequence's source; 0: it has none.
func (k *Cache) SourceLen(s forest.Seq) int { return k.seqs[s].source.tokens }

// PutSource rounds and writes the key and the value of one head of a token of a sequence's source (N4). It may run for
// different tokens and heads at a time.
func (k *Cache) PutSource(s forest.Seq, layer, token, head int, key, value []float32) kernel.PutResult {
	b := k.SourceBlocks(s, layer)
	keys, values := b.Page(head, token/PageTokens)
	return k.Format.Put(keys, values, token%PageTokens, k.config.Layers[layer].Cross.HeadSize(), key, value)
}

// SourceBlocks returns the blocks of its source that the rows of an open sequence read in a layer: all of them.
func (k *Cache) SourceBlocks(s forest.Seq, layer int) Blocks {
	src, size := &k.seqs[s].source, k.config.Layers[layer].Cross.HeadSize()
	keys := k.Format.KeyBytes(size.Key)
	return Blocks{
		tokens: src.tokens, table: src.table, pool: k.sources.pool,
		at: k.sources.at[layer], keys: keys, head: keys + k.Format.ValueBytes(size.Value),
	}
}

// dropSource gives the pages of a sequence's source back.
func (k *Cache) dropSource(t *trunk) {
	for p := len(t.source.table) - 1; p >= 0; p-- {
		k.sources.pool.drop(t.source.table[p])
	}
	t.source = source{table: t.source.table[:0]}
}

// forkSource gives a fork the source of its origin.
func (k *Cache) forkSource(to, from *trunk) {
	for _, id := range from.source.table {
		k.sources.pool.retain(id)
	}
	to.source = source{tokens: from.source.tokens, name: from.source.name, table: slices.Clone(from.source.table)}
}

// padSource gives a sequence a source of n tokens of small constants.
func (k *Cache) padSource(s forest.Seq, n int) error {
	if !k.Crosses() || k.SourceLen(s) > 0 {
		return nil
	}
	if _, err := k.SetSource(s, "pad", max(1, n)); err != nil {
		return err
	}
	for _, id := range k.seqs[s].source.table {
		fill(k.sources.pool.bytes(id))
	}
	return nil
}
