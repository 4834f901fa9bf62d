// Package layers has what methods share that draft with some of the model's own layers: the tokens a second that chains of such drafts give, sets
// of layers as users write them, and the search for a set to pass over.
package layers

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"

	"grove/internal/forest"
	"grove/method"
)

// The search tries one set of layers after the other against the best one. Both draft the token behind the same
// places of texts, and the set on trial becomes the best one if it drafts more of them. The paper instead runs a
// window of the text again for each set; a second row of a step that runs anyway costs less, and it drafts exactly as
// the set would.
const (
	window          = 32   // places of a trial
	enough          = 0.95 // share of places that ends the search
	maxFailedTrials = 64   // trials without success that end it
)

// Search is the search for the layers to pass over, or the parts of layers, which are of one number and neither of the first nor of the last layer (SWIFT,
// Xia et al. 2024). The numbers of attention and of feed-forward parts stay what they are, so that all sets cost the same. It is safe
// for concurrent use: all texts of an engine may share it.
type Search struct {
	layers int
	sizes  [2]int // attention parts, feed-forward parts
	parts  bool   // they are chosen apart; else both are of the same layers

	mu     sync.Mutex
	rng    *rand.Rand
	best   Set
	score  float64 // share of places that best drafted in its last trial; 0: it had none
	other  Set
	number int    // of the trial
	seen   int    // places
	hits   [2]int // drafted right by best and other
	failed int    // trials since the last success
	open   bool   // the search goes on
}

// Trial has the two sets that draft at a place of a text.
type Trial struct {
	Best, Other Set
	Open        bool // Other is on trial
	number      int
}

// NewSearch starts a search for whole layers with every other layer passed over, as many as the share, from 0 to 1, of the layers between the first and the
// last is; at least one unless the share is 0. The model has 3 layers or more.
func NewSearch(layers int, share float64) *Search { return newSearch(layers, false, share, share) }

// SearchOf starts a search for a model, by shares of the attention parts and of the feed-forward parts: for parts of layers where its rows may skip these apart, and else
// for whole layers by the first share. It begins as [NewSearch] does.
func SearchOf(m method.Size, attention, feedForward float64) *Search {
	if m.AttentionShare == 0 {
		return NewSearch(m.Layers, attention)
	}
	return newSearch(m.Layers, true, attention, feedForward)
}

func newSearch(layers int, parts bool, shares ...float64) *Search {
	s := &Search{layers: layers, parts: parts, rng: rand.New(rand.NewPCG(1, uint64(layers)))}
	for k, share := range shares {
		size := int(math.Round(share * float64(layers-2)))
		if share > 0 {
			size = max(1, size)
		}
		for l, n := 1, 0; n < size; l, n = l+2, n+1 {
			if l >= layers-1 {
				l = 2 // all odd layers are in the set
			}
			s.best[k] = s.best[k].With(l)
		}
		s.sizes[k] = size
	}
	s.open = s.moves(Attention) || s.moves(FeedForward) // else there is one set
	s.propose()
	return s
}

// moves reports whether there is more than one set of a kind of parts.
func (s *Search) moves(kind int) bool { return s.sizes[kind] > 0 && s.sizes[kind] < s.layers-2 }

// Next returns the sets of the next place.
func (s *Search) Next() Trial {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Trial{s.best, s.other, s.open, s.number}
}

// Count tells which sets of a trial drafted the token that followed a place.
func (s *Search) Count(t Trial, best, other bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open || t.number != s.number {
		return // another text has ended the trial
	}
	s.seen++
	for i, right := range []bool{best, other} {
		if right {
			s.hits[i]++
		}
	}
	if s.seen == window {
		s.decide()
	}
}

// decide ends a trial.
func (s *Search) decide() {
	kept := s.hits[0]
	s.failed++
	if s.hits[1] > kept {
		s.best, kept, s.failed = s.other, s.hits[1], 0
	}
	s.score = float64(kept) / window
	s.open = s.score < enough && s.failed < maxFailedTrials
	s.propose()
}

// propose makes the next set to try: a random one or, every other time, the best one with one layer exchanged, or one part of a layer.
func (s *Search) propose() {
	s.number, s.seen, s.hits = s.number+1, 0, [2]int{}
	if !s.open {
		return
	}
	for s.other = s.best; s.other == s.best; {
		if s.number%2 == 1 {
			s.exchange()
			continue
		}
		for k := range s.other {
			if k == FeedForward && !s.parts {
				s.other[k] = s.other[Attention]
				continue
			}
			for s.other[k] = (forest.Layers{}); s.other[k].Len() < s.sizes[k]; {
				s.other[k] = s.other[k].With(s.pick(s.other[k], false))
			}
		}
	}
}

// exchange makes other the best set with one layer or part exchanged for another of its kind.
func (s *Search) exchange() {
	kind := Attention
	if s.parts && (!s.moves(Attention) || s.moves(FeedForward) && s.rng.IntN(2) == 1) {
		kind = FeedForward
	}
	out := s.pick(s.best[kind], true)
	s.other[kind] = s.best[kind].Minus(forest.LayerRange(out, out+1)).With(s.pick(s.best[kind], false))
	if !s.parts {
		s.other[FeedForward] = s.other[Attention]
	}
}

// pick returns a random layer, neither the first nor the last, that is in the set or is not.
func (s *Search) pick(set forest.Layers, in bool) int {
	for {
		if l := 1 + s.rng.IntN(s.layers-2); set.Has(l) == in {
			return l
		}
	}
}

// record is what is kept between runs, in little-endian order.
type record struct {
	Layers uint32
	Best   Set
	Score  float64
	Open   bool
}

// MarshalBinary implements [method.Saver].
func (s *Search) MarshalBinary() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return binary.Append(nil, binary.LittleEndian, record{uint32(s.layers), s.best, s.score, s.open})
}

// UnmarshalBinary implements [method.Saver].
func (s *Search) UnmarshalBinary(b []byte) error {
	var r record
	if n, err := binary.Decode(b, binary.LittleEndian, &r); err != nil || n != len(b) {
		return fmt.Errorf("layers: the record has %d bytes; it must have %d", len(b), binary.Size(r))
	}
	if r.Layers != uint32(s.layers) {
		return fmt.Errorf("layers: the record is of a model of %d layers; this one has %d", r.Layers, s.layers)
	}
	right := r.Best.Within(1, s.layers-1) == r.Best && (s.parts || r.Best == Whole(r.Best[Attention])) && r.Score >= 0 && r.Score <= 1
	for k, size := range s.sizes {
		right = right && r.Best[k].Len() == size
	}
	if !right {
		return fmt.Errorf("layers: the record is damaged: the set %x, score %v; the set must have %d attention parts and %d feed-forward parts, none of the first or the last layer",
			r.Best, r.Score, s.sizes[Attention], s.sizes[FeedForward])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.best, s.score, s.failed = r.Best, r.Score, 0
	s.open = r.Open && (s.moves(Attention) || s.moves(FeedForward))
	s.propose()
	return nil
}
