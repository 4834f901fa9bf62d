package sample

import (
	"cmp"
	"fmt"
	"slices"

	"grove/internal/kernel"
	"grove/internal/text/token"
)

// DRY (do not repeat yourself) lowers the logits of tokens that would continue a repetition: where the last n tokens of
// the text stand earlier in it, n at least AllowedLength, the token that followed them there loses
// Multiplier * Base^(n - AllowedLength), for the largest such n. Only tokens behind the last breaker are compared, the
// one that begins last, and breakers of one token are never penalized. A match counts 256 tokens beyond the allowed length at most, and no
// penalty is more than a million.
type DRY struct {
	Multiplier    float32 // 0: off
	Base          float32 // from 1; llama.cpp's default is 1.75
	AllowedLength int     // from 1; llama.cpp's default is 2
	Window        int     // the tokens that it looks at, as Penalties.Window; llama.cpp's default is -1
	Breakers      [][]token.ID
}

// Limits of the settings of DRY.
const (
	maxDRYBase       = 100
	maxDRYLength     = 1 << 16
	maxDRYMatch      = 256 // tokens beyond the allowed length
	maxBreaker       = 64  // tokens
	maxBreakers      = 1 << 16
	maxDRYMultiplier = maxPenalty
)

func (d *DRY) validate(vocab int) error {
	switch {
	case !(d.Multiplier >= 0 && d.Multiplier <= maxDRYMultiplier):
		return fmt.Errorf("sample: DRY's multiplier is %v; it must be from 0 (off) to %d", d.Multiplier, maxDRYMultiplier)
	case d.Multiplier == 0:
		return nil
	case !(d.Base >= 1 && d.Base <= maxDRYBase):
		return fmt.Errorf("sample: DRY's base is %v; it must be from 1 to %d", d.Base, maxDRYBase)
	case d.AllowedLength < 1 || d.AllowedLength > maxDRYLength:
		return fmt.Errorf("sample: DRY's allowed length is %d; it must be from 1 to %d", d.AllowedLength, maxDRYLength)
	case d.Window < -1:
		return fmt.Errorf("sample: DRY's window is %d tokens; it must be -1 (all), 0 (the answer) or more", d.Window)
	case len(d.Breakers) > maxBreakers:
		return fmt.Errorf("sample: DRY has %d breakers; at most %d are allowed", len(d.Breakers), maxBreakers)
	}
	for i, b := range d.Breakers {
		if len(b) == 0 || len(b) > maxBreaker {
			return fmt.Errorf("sample: breaker %d of DRY has %d tokens; it must have 1 to %d", i, len(b), maxBreaker)
		}
		if id, some := outside(b, vocab); some {
			return fmt.Errorf("sample: breaker %d of DRY holds token %d; it must be a token of the vocabulary, which has %d", i, id, vocab)
		}
	}
	return nil
}

// A repetition index applies DRY to a text that grows and shrinks at its end. It links each token to its last
// occurrence before, so that only the places of the last token are compared with the end. Nil applies nothing.
type repetitions struct {
	dry      DRY
	longest  int                       // that a match counts
	breakers map[token.ID][][]token.ID // by their first token, the longest first
	widest   int                       // tokens of the longest breaker
	last     []int32                   // of each token: one more than its last place in the text
	before   []int32                   // of each place: one more than the place before with the same token
	found    []match
}

// match is a token and the length of the match that it would continue.
type match struct {
	id     token.ID
	length int
}

func newRepetitions(d DRY, vocab int) *repetitions {
	r := &repetitions{dry: d, last: make([]int32, vocab), breakers: map[token.ID][][]token.ID{}}
	r.longest = d.AllowedLength + maxDRYMatch
	for _, b := range d.Breakers {
		r.breakers[b[0]] = append(r.breakers[b[0]], b)
		r.widest = max(r.widest, len(b))
	}
	for _, all := range r.breakers {
		slices.SortFunc(all, func(a, b []token.ID) int { return len(b) - len(a) })
	}
	return r
}

// push tells that a token was appended to the text.
func (r *repetitions) push(text []token.ID) {
	if r == nil {
		return
	}
	id := text[len(text)-1]
	r.before = append(r.before, r.last[id])
	r.last[id] = int32(len(text))
}

// pop tells that the last token of the text is about to be removed.
func (r *repetitions) pop(text []token.ID) {
	if r == nil {
		return
	}
	n := len(text) - 1
	r.last[text[n]] = r.before[n]
	r.before = r.before[:n]
}

// reset forgets a text.
func (r *repetitions) reset(text []token.ID) {
	if r == nil {
		return
	}
	for _, id := range text {
		r.last[id] = 0
	}
	r.before = r.before[:0]
}

// copyTo makes o, of the same settings, equal.
func (r *repetitions) copyTo(o *repetitions) {
	if r == nil {
		return
	}
	copy(o.last, r.last)
	o.before = append(o.before[:0], r.before...)
}

// apply changes the logits behind a text, of which it looks at the part from start on.
func (r *repetitions) apply(text []token.ID, start int, logits []float32) {
	allowed := r.dry.AllowedLength
	limit := r.unbroken(text[start:])
	if len(text)-start <= allowed || limit < allowed {
		return
	}
	end := len(text) - 1
	r.found = r.found[:0]
	for at := int(r.before[end]) - 1; at >= start; at = int(r.before[at]) - 1 {
		n := 1
		for n < limit && at-n >= start && text[at-n] == text[end-n] {
			n++
		}
		if n >= allowed && !r.breaks(text[at+1]) {
			r.found = append(r.found, match{text[at+1], n})
		}
	}
	slices.SortFunc(r.found, func(a, b match) int { return cmp.Or(int(a.id)-int(b.id), b.length-a.length) })
	for i, m := range r.found {
		if i == 0 || r.found[i-1].id != m.id {
			logits[m.id] -= r.penalty(m.length)
		}
	}
}

// penalty returns the penalty of a match.
func (r *repetitions) penalty(length int) float32 {
	p := float64(r.dry.Multiplier) * kernel.Pow64(float64(r.dry.Base), float64(length-r.dry.AllowedLength))
	return float32(min(p, maxBias))
}

// unbroken returns how many tokens stand behind the last breaker of a text, at most as many as a match counts. As in
// llama.cpp, of two breakers that overlap the one that begins later is the last.
func (r *repetitions) unbroken(text []token.ID) int {
	n := min(len(text), r.longest)
	for back := 0; back < min(len(text), n+r.widest); back++ {
		at := len(text) - 1 - back
		for _, b := range r.breakers[text[at]] {
			if len(b) <= back+1 && slices.Equal(b, text[at:at+len(b)]) {
				return min(n, back+1-len(b))
			}
		}
	}
	return n
}

// breaks reports whether a token is a breaker.
func (r *repetitions) breaks(id token.ID) bool {
	all := r.breakers[id]
	return len(all) > 0 && len(all[len(all)-1]) == 1
}

// applyDRY applies DRY behind the cursor.
func (c *Chain) applyDRY(_ State, logits []float32) {
	start := 0
	switch w := c.settings.Penalties.DRY.Window; {
	case w == 0:
		start = c.prompt
	case w > 0:
		start = max(0, len(c.text)-w)
	}
	c.repetitions.apply(c.text, start, logits)
}
