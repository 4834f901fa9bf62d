package layers

import (
	"encoding/binary"
	"fmt"
	"sync"

	"grove/internal/forest"
)

// MostExits bounds the exits between which is chosen.
const MostExits = 8

const (
	keep      = 0.95 // what each round leaves of the past
	hopeful   = 0.95 // share of drafts that no exit is expected to exceed
	mostTried = 1000 // more than rounds of any length add up to
)

// Shares counts how often the drafts of each exit are accepted, forgetting slowly (DEL, 2025). It is safe for concurrent use: all texts of an engine
// may share it.
type Shares struct {
	Exits  []int // numbers of first layers that draft, rising; not to be changed
	layers int

	mu   sync.Mutex
	seen []share // by exit
}

// share is the weight of what was accepted and of all that was tried.
type share struct{ Accepted, Tried float64 }

// of returns the share of drafts that are accepted, 0 where none was tried.
func (s share) of() float64 {
	if s.Tried == 0 {
		return 0
	}
	return s.Accepted / s.Tried
}

// NewShares counts for exits at equal distances, the last of which has most layers; 0: all but one of the model's.
func NewShares(layers, most int) *Shares {
	s := &Shares{layers: layers}
	if most == 0 {
		most = layers - 1
	}
	step := (layers + MostExits - 1) / MostExits
	for l := step; l < most; l += step {
		s.Exits = append(s.Exits, l)
	}
	s.Exits = append(s.Exits, most)
	s.seen = make([]share, len(s.Exits))
	return s
}

// Before returns the layers behind which the exits before one are.
func (s *Shares) Before(exit int) (set forest.Layers) {
	for _, l := range s.Exits[:exit] {
		set = set.With(l - 1)
	}
	return set
}

// Learn counts the drafts of an exit, as a place among the exits, that were tried in a round.
func (s *Shares) Learn(exit, accepted, tried int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := &s.seen[exit]
	at.Accepted, at.Tried = keep*at.Accepted+float64(accepted), keep*at.Tried+float64(tried)
}

// Share returns the share of an exit's drafts that are accepted; 0 where none was tried.
func (s *Shares) Share(exit int) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[exit].of()
}

// Choice is how a round drafts. Exits are places among the exits.
type Choice struct {
	Exit, Depth int  // of the chain with the most tokens a second
	Pays        bool // it has more than plain decoding
	Farthest    int  // the last exit that would have more if [hopeful] of its drafts were accepted
}

// Choose predicts the tokens a second of chains of each exit, of most drafts at most.
func (s *Shares) Choose(m Model, most int) Choice {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, best, plain := Choice{Depth: 1}, 0.0, m.Plain()
	for i, l := range s.Exits {
		if depth, rate := Best(s.seen[i].of(), l, most, m.Exit); rate > best {
			c.Exit, c.Depth, c.Pays, best = i, depth, rate > plain, rate
		}
	}
	for i, l := range s.Exits {
		if _, rate := Best(hopeful, l, most, m.Exit); rate > max(best, plain) {
			c.Farthest = i
		}
	}
	return c
}

// shareRecord is what is kept between runs, in little-endian order.
type shareRecord struct {
	Layers uint32
	Exits  [MostExits]uint32
	Seen   [MostExits]share
}

// MarshalBinary implements [method.Saver].
func (s *Shares) MarshalBinary() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := shareRecord{Layers: uint32(s.layers)}
	for i, l := range s.Exits {
		r.Exits[i], r.Seen[i] = uint32(l), s.seen[i]
	}
	return binary.Append(nil, binary.LittleEndian, r)
}

// UnmarshalBinary implements [method.Saver].
func (s *Shares) UnmarshalBinary(b []byte) error {
	var r shareRecord
	if n, err := binary.Decode(b, binary.LittleEndian, &r); err != nil || n != len(b) {
		return fmt.Errorf("layers: the record has %d bytes; it must have %d", len(b), binary.Size(r))
	}
	if r.Layers != uint32(s.layers) {
		return fmt.Errorf("layers: the record is of a model of %d layers; this one has %d", r.Layers, s.layers)
	}
	for i, l := range s.Exits {
		if seen := r.Seen[i]; r.Exits[i] != uint32(l) || !(seen.Accepted >= 0 && seen.Accepted <= seen.Tried && seen.Tried <= mostTried) {
			return fmt.Errorf("layers: the record has exit %d, %v of %v drafts accepted; it must have exit %d and no more than was tried, which is at most %d",
				r.Exits[i], seen.Accepted, seen.Tried, l, mostTried)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	copy(s.seen, r.Seen[:])
	return nil
}
