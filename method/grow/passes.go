package grow

import (
	"time"

	"grove/method"
)

// usual is the share of drafts behind an accepted one that are accepted, for the decision to get them.
const usual = 0.7

// Passes decides whether another drafting pass pays, by the time that passes took. The zero value knows of none.
type Passes struct {
	seconds float64 // of a pass, averaged
}

// Observe counts a pass.
func (p *Passes) Observe(d time.Duration) {
	if p.seconds == 0 {
		p.seconds = d.Seconds()
	}
	p.seconds += (d.Seconds() - p.seconds) / 8
}

// Pays reports whether it pays to get the drafts behind some of which score are expected to be accepted: more tokens
// are expected of them than are decoded in the same time.
func (p *Passes) Pays(t *method.Tree, score float64) bool {
	return score*usual > t.Throughput*p.seconds
}
