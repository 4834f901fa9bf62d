package engine

import (
	"fmt"

	"grove/internal/engine/reading"
	"grove/internal/engine/step"
)

// ErrPrefix reports a prompt whose tokens cannot see each other.
var ErrPrefix = reading.ErrPrefix

// CheckPrefix returns an [ErrPrefix] where a text cannot begin with n tokens that see each other.
func (e *Engine) CheckPrefix(n int) error {
	if err := reading.Prefix(e.steps.Model.Info(), n, e.steps.Chunk); err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	return nil
}

// beginPrefix makes the first tokens of a text see each other, if the answer asks for that.
func (s *Sequence) beginPrefix(n int, session string) error {
	if !s.answer.Prefix || len(s.text) > 0 {
		return nil
	}
	if session != "" {
		return fmt.Errorf("engine: %w: %w, of a text whose keys are in a file", ErrSession, ErrPrefix)
	}
	if err := s.e.CheckPrefix(n); err != nil {
		return err
	}
	s.prefix = n
	return nil
}

// lacks returns what a sequence needs where its prefix is not computed: all of it, in one step. No pages are searched for it, as
// its keys are not those of a text whose tokens see what is before them.
func (s *Sequence) lacks() (n step.Need, lacks bool) {
	if s.prefix == 0 || s.trunk.Len() >= s.prefix {
		return step.Need{}, false
	}
	return step.Need{Rows: s.prefix, PageTokens: s.pageTokens(), WindowTokens: max(s.prefix, min(len(s.text), s.e.steps.Chunk))}, true
}

// cutPrefix sees to a text that is cut to n tokens: where the cut, or the token that is computed again, lies in the prefix, nothing of it
// stays computed.
func (s *Sequence) cutPrefix(n int) (last int) {
	last = max(0, n-1) // the last token is computed again, for its logits
	if last < s.prefix {
		s.prefix, last = min(s.prefix, n), 0
	}
	return last
}
