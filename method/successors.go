package method

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"grove/internal/text/token"
)

// SuccessorWidth is the number of successors that are kept of a token.
const SuccessorWidth = 8

// Successor is a token that may follow, and how likely the model finds it among those kept.
type Successor struct {
	ID token.ID
	P  float32 // 0: there is none
}

// SuccessorRow holds successors, likeliest first.
type SuccessorRow [SuccessorWidth]Successor

// Successors holds the likeliest successors of each token, as the model said them when the token was last run, and if
// wanted those of pairs of tokens. It is safe for concurrent use; its size is fixed when it is made, and what is
// not used of it takes no memory.
type Successors struct {
	mu    sync.RWMutex
	rows  []SuccessorRow // by token
	pairs []pairRow      // sets of pairWays
	clock uint32

	primed []uint64 // a bit a token: no text taught its row; nil: texts taught all
}

// pairRow holds the successors of a pair of tokens.
type pairRow struct {
	before, id token.ID
	used       uint32 // when it was written; 0: never
	row        SuccessorRow
}

const pairWays = 4

// NewSuccessors makes a table for a vocabulary and for about as many pairs of tokens as given, which is 0 or a power
// of two from 4 up.
func NewSuccessors(vocabulary, pairs int) *Successors {
	return &Successors{rows: make([]SuccessorRow, vocabulary), pairs: make([]pairRow, pairs)}
}

// Of writes the successors of a token to row: behind the token before it where that pair is known, else behind it
// alone. It reports whether there are any.
func (s *Successors) Of(row *SuccessorRow, before, id token.ID) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if p := s.pair(before, id); p != nil && p.used > 0 && p.before == before && p.id == id {
		*row = p.row
	} else if id >= 0 && int(id) < len(s.rows) {
		*row = s.rows[id]
	} else {
		return false
	}
	return row[0].P > 0
}

// pair returns the place of a pair: its own, or the one to write it to; nil where no pairs are kept.
func (s *Successors) pair(before, id token.ID) *pairRow {
	if len(s.pairs) == 0 {
		return nil
	}
	h := (uint64(uint32(before))<<32 | uint64(uint32(id))) * 0x9e3779b97f4a7c15
	at := int(h>>32) & (len(s.pairs)/pairWays - 1) * pairWays
	oldest := &s.pairs[at]
	for i := range pairWays {
		switch p := &s.pairs[at+i]; {
		case p.used > 0 && p.before == before && p.id == id:
			return p
		case p.used < oldest.used:
			oldest = p
		}
	}
	return oldest
}

// Learn takes over what the rows of a round gave; before is the token before its first row. Where a token stands in
// several rows, the accepted one counts, then the first: it is written last.
func (s *Successors) Learn(rows []RowResult, before token.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, accepted := range []bool{false, true} {
		for i := len(rows) - 1; i >= 0; i-- {
			if o := &rows[i]; o.Accepted == accepted {
				ahead := before
				if o.Parent >= 0 {
					ahead = rows[o.Parent].ID
				}
				s.keep(ahead, o)
			}
		}
	}
}

func (s *Successors) keep(before token.ID, o *RowResult) {
	if o.ID < 0 || int(o.ID) >= len(s.rows) || len(o.Top) == 0 {
		return
	}
	var row SuccessorRow
	sum := 0.0
	n := min(len(o.Top), len(row))
	for i, top := range o.Top[:n] {
		p := math.Exp(float64(top.Logit - o.Top[0].Logit))
		row[i] = Successor{top.ID, float32(p)}
		sum += p
	}
	for i := range row[:n] {
		row[i].P = float32(float64(row[i].P) / sum)
	}
	s.set(o.ID, row)
	if p := s.pair(before, o.ID); p != nil {
		s.clock++
		*p = pairRow{before, o.ID, s.clock, row}
	}
}

// set writes the row of a token that a text taught.
func (s *Successors) set(id token.ID, row SuccessorRow) {
	s.rows[id] = row
	if s.primed != nil {
		s.primed[id/64] &^= 1 << (id % 64)
	}
}

// Primed reports whether no text taught the successors of a token.
func (s *Successors) Primed(id token.ID) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.isPrimed(id)
}

func (s *Successors) isPrimed(id token.ID) bool {
	return s.primed != nil && id >= 0 && int(id) < len(s.rows) && s.primed[id/64]&(1<<(id%64)) != 0
}

// Prime takes over what another table's MarshalBinary returned, as far as no text taught the successors of a token. It implements [Primer] for
// methods that embed the table. On error nothing has changed.
func (s *Successors) Prime(state []byte) error {
	return s.restore(state, func(id token.ID, row SuccessorRow) {
		if s.rows[id][0].P > 0 && !s.isPrimed(id) {
			return
		}
		if s.primed == nil {
			s.primed = make([]uint64, (len(s.rows)+63)/64)
		}
		s.rows[id] = row
		s.primed[id/64] |= 1 << (id % 64)
	})
}

// savedRow is the number of bytes of a token's row, its id before it.
const savedRow = 4 + 8*SuccessorWidth

// MaxPrimed bounds the tokens of which a table that is kept has successors.
const MaxPrimed = (MaxSaved - 4) / savedRow

// MarshalBinary returns the successors that texts taught, [MaxSaved] bytes at most: rows of lower ids, which vocabularies give to
// the commoner tokens, come first.
func (s *Successors) MarshalBinary() ([]byte, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(s.rows)))
	for id, row := range s.rows {
		if len(b)+savedRow > MaxSaved {
			break
		}
		if row[0].P == 0 || s.isPrimed(token.ID(id)) {
			continue
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
		for _, next := range row {
			b = binary.LittleEndian.AppendUint32(b, uint32(next.ID))
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(next.P))
		}
	}
	return b, nil
}

// UnmarshalBinary takes over what MarshalBinary returned for the same vocabulary. On error nothing has changed.
func (s *Successors) UnmarshalBinary(b []byte) error { return s.restore(b, s.set) }

// restore hands the rows on record to set.
func (s *Successors) restore(b []byte, set func(id token.ID, row SuccessorRow)) error {
	if len(b) < 4 || (len(b)-4)%savedRow != 0 || len(b) > MaxSaved {
		return errors.New("method: the saved successors are not a whole number of rows")
	}
	if n := binary.LittleEndian.Uint32(b); n != uint32(len(s.rows)) {
		return fmt.Errorf("method: successors on record are of a vocabulary of %d tokens, not %d", n, len(s.rows))
	}
	all := b[4:]
	for b := all; len(b) > 0; b = b[savedRow:] {
		if _, _, ok := s.parse(b); !ok {
			return errors.New("method: the saved successors are invalid")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for b := all; len(b) > 0; b = b[savedRow:] {
		id, row, _ := s.parse(b)
		set(id, row)
	}
	return nil
}

// parse reads a row on record.
func (s *Successors) parse(b []byte) (id token.ID, row SuccessorRow, ok bool) {
	id = token.ID(binary.LittleEndian.Uint32(b))
	ok = id >= 0 && int(id) < len(s.rows)
	for i := range row {
		next := Successor{token.ID(binary.LittleEndian.Uint32(b[4+8*i:])), math.Float32frombits(binary.LittleEndian.Uint32(b[8+8*i:]))}
		ok = ok && next.ID >= 0 && int(next.ID) < len(s.rows) && next.P >= 0 && next.P <= 1
		row[i] = next
	}
	return id, row, ok && row[0].P > 0
}
