package regex

import (
	"errors"
	"fmt"
	"math/bits"
)

// ID names an expression of one [Store]. Expressions that the store sees to be equal have the same ID; two IDs may still
// stand for the same set.
type ID uint32

const (
	Nothing ID = 0 // Nothing is the empty set.
	Epsilon ID = 1 // Epsilon is the set of the empty string.
)

// Set is a set of bytes: byte b is bit b%64 of word b/64.
type Set [4]uint64

// Has reports whether the set holds b.
func (t Set) Has(b byte) bool { return t[b>>6]>>(b&63)&1 != 0 }

// Add puts the bytes from lo to hi, both included, in the set.
func (t *Set) Add(lo, hi byte) {
	for b := int(lo); b <= int(hi); b++ {
		t[b>>6] |= 1 << (b & 63)
	}
}

// Len returns how many bytes the set holds.
func (t Set) Len() int {
	return bits.OnesCount64(t[0]) + bits.OnesCount64(t[1]) + bits.OnesCount64(t[2]) + bits.OnesCount64(t[3])
}

// Or returns the union of two sets.
func (t Set) Or(u Set) Set { return Set{t[0] | u[0], t[1] | u[1], t[2] | u[2], t[3] | u[3]} }

// And returns the intersection of two sets.
func (t Set) And(u Set) Set { return Set{t[0] & u[0], t[1] & u[1], t[2] & u[2], t[3] & u[3]} }

// min returns the smallest byte of a set that is not empty.
func (t Set) min() byte {
	for i, w := range t {
		if w != 0 {
			return byte(i<<6 + bits.TrailingZeros64(w))
		}
	}
	return 0
}

// Range is a range of code points, both ends included.
type Range struct{ Lo, Hi rune }

// Machine is an automaton written by hand. Its dynamic type must be comparable: equal machines in equal states are the same
// expression. Step returns the state after a byte, and alive if a final state can be reached from there. It is never asked
// about the byte 0xFF. A machine with a method ASCII() bool that returns true accepts no other bytes than ASCII, which saves checks.
type Machine interface {
	Step(state int, b byte) (next int, alive bool)
	Final(state int) bool
}

// Limits bound what a store may spend. Zero means the default.
type Limits struct {
	Nodes int // expressions held, 64 bytes each; the lists and texts that they hold count too. Default: 1,000,000
	Fuel  int // steps of work since the last Refuel. Default: 1,000,000, some tenths of a second
}

const (
	defaultNodes = 1_000_000
	defaultFuel  = 1_000_000
	maxDepth     = 5000 // how deep a derivative may recurse
)

// ErrBudget is the error of a store that has spent one of its budgets. The text of the error names the budget.
var ErrBudget = errors.New("regex: budget spent")

// Store holds expressions. The zero value is not usable; use [New]. A store is not safe for concurrent use.
type Store struct {
	limits     Limits
	used, fuel int
	err        error

	nodes  []node
	table  []ID // hash table of nodes, open addressing
	kids   []ID // children of unions and intersections
	sets   []Set
	text   []byte        // bytes of literals
	words  []span        // sorted texts of dictionaries
	long   map[uint64]ID // of literals longer than shortText, by hash
	dicts  map[uint64]ID // of dictionaries, by the hash of their words
	auto   []auto
	autos  map[auto]uint32
	names  map[ID]string
	cleans map[ID]bool // what hasClean found

	locals map[uint64]ID  // of Local, by expression and number of bytes
	far    map[ID]uint32  // of farthest; inf: not known
	tried  map[ID]bool    // intersections of two that a short search did not find to be empty
	ranges map[ID][]Range // of sets of code points beyond ASCII, for Describe

	parts    []*partition
	partOf   map[[256]uint8]uint32
	products map[uint64]uint32
	rows     []ID     // derivatives by class of bytes
	pairs    []uint16 // scratch of product
	tmp      []ID     // scratch, used as a stack
	depthOr  int      // how deep unions of tails are nested
	plain    bool     // PlainQuotes

	single           [256]ID
	all, full        ID // all strings without 0xFF; all strings
	anyRune, allText ID // UTF-8 of one code point; valid UTF-8
}

// New returns an empty store.
func New(l Limits) *Store {
	if l.Nodes <= 0 {
		l.Nodes = defaultNodes
	}
	if l.Fuel <= 0 {
		l.Fuel = defaultFuel
	}
	s := &Store{limits: l, table: make([]ID, 256), rows: make([]ID, 1, 64), nodes: make([]node, 2, 128),
		partOf: map[[256]uint8]uint32{}, products: map[uint64]uint32{}}
	s.nodes[Nothing] = node{kind: kindNothing, flags: isEmpty | isText | noFF, part: 1}
	s.nodes[Epsilon] = node{kind: kindEpsilon, flags: isNullable | isSure | isText | noFF, part: 1}
	s.parts = append(s.parts, nil, &partition{n: 1, first: []byte{0}})
	s.partOf[[256]uint8{}] = 1
	s.products[0] = 1
	var bytes Set
	bytes.Add(0, 254)
	s.all = s.repeat(s.Bytes(bytes), 0, inf)
	bytes.Add(255, 255)
	s.full = s.repeat(s.Bytes(bytes), 0, inf)
	s.anyRune = s.Runes(Range{0, 0x10FFFF})
	s.allText = s.repeat(s.anyRune, 0, inf)
	return s
}

// Err returns nil, or an error that is an [ErrBudget] and names the budget that was spent. It is sticky: from then on every
// constructor and derivative returns [Nothing], and no answer of the store means anything.
func (s *Store) Err() error { return s.err }

// Refuel fills the tank of Limits.Fuel again. Whoever keeps a store for long calls it before each piece of work that is bounded
// on its own. It does not clear an error.
func (s *Store) Refuel() { s.fuel = 0 }

// Worn reports whether more than half of Limits.Nodes is spent. A store drops nothing that it has made, so one that serves many
// texts is replaced by a new one when it is worn.
func (s *Store) Worn() bool { return s.used > s.limits.Nodes/2 || s.err != nil }

// spend takes n steps of fuel and reports whether there was enough.
func (s *Store) spend(n int) bool {
	if s.fuel += n; s.fuel > s.limits.Fuel {
		s.fail("more than %d steps of work (fuel)", s.limits.Fuel)
	}
	return s.err == nil
}

// grow takes the memory of n nodes and reports whether there was enough.
func (s *Store) grow(n int) bool {
	if s.used += n; s.used > s.limits.Nodes {
		s.fail("more than %d expressions (nodes)", s.limits.Nodes)
	}
	return s.err == nil
}

// fail makes the store's error, once.
func (s *Store) fail(format string, args ...any) ID {
	if s.err == nil {
		s.err = fmt.Errorf("%w: "+format, append([]any{ErrBudget}, args...)...)
	}
	return Nothing
}
