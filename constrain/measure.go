package constrain

import (
	"errors"
	"time"

	"grove/internal/text/token"
)

// ReadResult has the results of [Constraint.Read].
type ReadResult struct {
	Tokens int             // that were legal, from the first on
	Ends   bool            // all were, and the text may end behind them
	Steps  []time.Duration // of each token: the time of the mask before it, and of the step behind it
}

// Read reads tokens from the beginning of the legal text on, and measures the masks. Triggers and thoughts do not count. It makes the first
// mask even where there are no tokens. Errors are those of the constraint's budgets.
func (c *Constraint) Read(ids []token.ID) (ReadResult, error) {
	if c.rec == nil {
		return ReadResult{}, errors.New("constrain: the constraint has no language")
	}
	r := ReadResult{}
	at := c.root
	for {
		start := time.Now()
		m, err := c.rec.mask(at)
		if err != nil {
			return r, err
		}
		if r.Tokens == len(ids) {
			r.Ends = c.rec.ends(at)
			return r, nil
		}
		id := ids[r.Tokens]
		if id < 0 || int(id>>6) >= len(m) || m[id>>6]>>(id&63)&1 == 0 {
			r.Steps = append(r.Steps, time.Since(start))
			return r, nil
		}
		if at, err = c.rec.next(at, id); err != nil {
			return r, err
		}
		r.Steps = append(r.Steps, time.Since(start))
		r.Tokens++
	}
}
