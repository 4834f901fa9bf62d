package constrain

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"sync"
)

// The bounds of a cache: constraints, bytes of their specs, and bytes of memory.
const (
	maxCached      = 16
	maxCachedBytes = 4 << 20
	maxCachedHeld  = 64 << 20
)

// Cache compiles specs for a vocabulary and keeps the constraints that were used last, as far as they take no more memory than 64 MiB
// together. Texts that are being written keep theirs besides. It is safe for concurrent use.
type Cache struct {
	v      *Vocabulary
	limits Limits
	most   int // bytes of memory

	mu    sync.Mutex
	kept  []cached // the one used last first
	bytes int
}

type cached struct {
	key   [sha256.Size]byte
	bytes int
	c     *Constraint
}

// NewCache returns an empty cache.
func NewCache(v *Vocabulary, l Limits) *Cache { return &Cache{v: v, limits: l, most: maxCachedHeld} }

// Vocabulary returns the vocabulary that the cache compiles for.
func (c *Cache) Vocabulary() *Vocabulary { return c.v }

// Compile is [Compile], or returns what an equal spec gave. What cannot be compiled is not kept.
func (c *Cache) Compile(spec Spec) (*Constraint, error) {
	if spec.Source != nil || spec.Automaton != nil || spec.Check != nil || spec.Monitor != nil || spec.Lookahead != nil { // programs cannot be compared
		return Compile(spec, c.v, c.limits)
	}
	text, err := json.Marshal(spec)
	if err != nil { // a schema that is no JSON
		return Compile(spec, c.v, c.limits)
	}
	key := sha256.Sum256(text)
	if known := c.find(key); known != nil {
		return known, nil
	}
	made, err := Compile(spec, c.v, c.limits)
	if err == nil {
		made.trim = c.trim
		c.keep(cached{key, len(text), made})
	}
	return made, err
}

func (c *Cache) find(key [sha256.Size]byte) *Constraint {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.kept, func(k cached) bool { return k.key == key })
	if i < 0 {
		return nil
	}
	found := c.kept[i]
	if rec := found.c.rec; rec != nil && rec.worn() {
		c.drop(i)
		return nil
	}
	copy(c.kept[1:], c.kept[:i])
	c.kept[0] = found
	c.trimHeld()
	return found.c
}

// drop forgets a constraint.
func (c *Cache) drop(i int) {
	c.bytes -= c.kept[i].bytes
	c.kept = slices.Delete(c.kept, i, i+1)
}

// trim is trimHeld for texts that are being written. Where the cache is at work, that is left to it.
func (c *Cache) trim() {
	if c.mu.TryLock() {
		c.trimHeld()
		c.mu.Unlock()
	}
}

// trimHeld forgets what was not used for longest, until what is kept takes no more memory than it may.
func (c *Cache) trimHeld() {
	held := 0
	for i := 0; i < len(c.kept); {
		n := c.kept[i].c.Held()
		if held+n > c.most {
			c.drop(i)
			continue
		}
		held += n
		i++
	}
}

func (c *Cache) keep(k cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = slices.Insert(c.kept, 0, k)
	for c.bytes += k.bytes; len(c.kept) > 1 && (len(c.kept) > maxCached || c.bytes > maxCachedBytes); {
		c.drop(len(c.kept) - 1)
	}
	c.trimHeld()
}
