package engine

import (
	"grove/internal/forest"
	"grove/internal/kv"
	"grove/method"
)

// SetCost replaces what the engine knows of its steps.
func (e *Engine) SetCost(c *Cost) { e.steps.Costs.Set(c) }

// Held returns the cache's pages in use and live rows, and the open sequences.
func (e *Engine) Held() (u kv.Usage, live, open int) {
	e.steps.Lock()
	defer e.steps.Unlock()
	return e.steps.Cache.Usage(), e.steps.Cache.Forest.AllLive(), e.steps.Admitted()
}

// Aligned returns what the cache holds of a sequence: the trunk's tokens, and the tokens taken of the last round, of
// which the trunk will be made.
func (s *Sequence) Aligned() (trunk, taken, live int) {
	s.e.steps.Lock()
	defer s.e.steps.Unlock()
	return s.e.steps.Cache.Forest.Len(s.trunk.Seq), s.round.taken, s.e.steps.Cache.Forest.Live(s.trunk.Seq)
}

// Impatient makes sequences that nobody calls for lose their pages and slots at once to those that want them.
func (e *Engine) Impatient() { e.steps.IdleGrace, e.steps.SlotGrace = 0, 0 }

// Lock keeps the engine from making steps until Unlock.
func (e *Engine) Lock() { e.steps.Lock() }

// Unlock ends what Lock began.
func (e *Engine) Unlock() { e.steps.Unlock() }

// Resumes reports whether the row of a draft, or of the text's last token, takes further what a drafter has run of it.
func Resumes(live method.Live, want forest.Want) bool {
	return row(1, live.Parent, live, want).Resume == live.Node
}
