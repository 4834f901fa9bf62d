package engine

import "grove/engine/answer"

// How tokens are drawn; see package answer.
type (
	// Answer says how a sequence's tokens are drawn and what is reported of them.
	Answer = answer.Answer
	// Drawn is a token that was drawn, with how likely it was.
	Drawn = answer.Drawn
)
