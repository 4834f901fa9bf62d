package grow

import "grove/internal/text/token"

// Stop decides where a chain of drafts ends, by a score of each draft: what a head says of the draft model's state, the draft's
// probability, or its number. It is for one text at a time, on one goroutine; no call allocates. A stop decides whether there is
// another draft and takes none back, so that it leaves the distribution of draws as it is.
type Stop interface {
	// Begin starts a text.
	Begin()
	// Ends is told of each draft in turn, and reports whether the chain ends with it.
	Ends(d ChainDraft) bool
	// Followed tells what followed the chain's beginning: of its drafts, the first judged have been compared with the text, of which the
	// first accepted were equal. A chain whose drafts all were has accepted equal to the number of its drafts.
	Followed(drafts, judged, accepted int)
}

// ChainDraft is a draft of a chain.
type ChainDraft struct {
	Depth int       // 1: right behind the text
	P     float32   // of the draft, by the draft model's processed distribution
	State []float32 // the draft model's final state behind the token before the draft, valid during the call; nil: [Shape.State] is not set
}

// chain is what a [Stop] is told of the drafts behind a text.
type chain struct {
	stop  Stop
	ids   []token.ID
	ended bool
}

// begin starts a text.
func (c *chain) begin() {
	c.ids, c.ended = c.ids[:0], false
	if c.stop != nil {
		c.stop.Begin()
	}
}

// tell tells the rule of a draft.
func (c *chain) tell(id token.ID, p float32, from LogitSource) {
	if c.stop == nil {
		return
	}
	c.ids = append(c.ids, id)
	c.ended = c.stop.Ends(ChainDraft{Depth: len(c.ids), P: p, State: from.State(0)})
}

// followed tells the rule which tokens followed, and forgets the chain.
func (c *chain) followed(ids []token.ID) {
	if c.stop != nil && len(c.ids) > 0 && len(ids) > 0 {
		judged, accepted := 0, 0
		for ; judged < min(len(c.ids), len(ids)) && judged == accepted; judged++ {
			if c.ids[judged] == ids[judged] {
				accepted++
			}
		}
		c.stop.Followed(len(c.ids), judged, accepted)
	}
	c.ids, c.ended = c.ids[:0], false
}
