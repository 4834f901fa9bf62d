package sample

import "grove/internal/text/token"

// A StageState is the state of one [Stage] behind one text: a small value, or a handle into the stage's own store.
type StageState uint64

// A Stage changes logits by what it knows of the text before them. The states of a tree of drafts are made by Next in
// any order, so a state must not depend on anything but the arguments, and on what Apply saw for the state before. A
// stage serves one chain and needs no locks. Where it has a String method, errors name it so.
type Stage interface {
	// Start returns the state behind a prompt and forgets all others. The slice is the chain's.
	Start(prompt []token.ID) StageState
	// Next returns the state behind a token that follows s.
	Next(s StageState, id token.ID) StageState
	// Apply changes the logits behind s in place; minus infinity forbids a token. It does not allocate, and gives the
	// same for the same state and logits.
	Apply(s StageState, logits []float32)
}

// Legal is a stage that forbids tokens. Allows and Forced agree with Apply.
type Legal interface {
	Stage
	// Allows reports whether a token may follow s.
	Allows(s StageState, id token.ID) bool
	// Forced returns tokens that follow s, one after the other, because no other text may; none where there is a choice. They
	// are verified as drafts: the same text in other tokens may be likelier. The slice is the stage's until the next call.
	Forced(s StageState) []token.ID
}

// Preparer is a stage whose Apply takes time that can be spent while the model computes.
type Preparer interface {
	// Prepare computes what Apply needs behind s. It may run on any goroutine, while no other method of the stage does.
	Prepare(s StageState)
}

// Failing is a stage that may be at a loss behind a text. Its Apply then forbids every token.
type Failing interface {
	// Err returns why no token may be drawn behind s, nil where one may: the request fails with it, and no other.
	Err(s StageState) error
}

// Expecting is a stage that can say what a text needs, for the error of a request all of whose legal tokens other stages or biases forbid.
type Expecting interface {
	// Expected returns the place behind s and what may stand there, in words; empty where there is nothing to say.
	Expected(s StageState) string
}

// Ender is a stage that knows where a text is complete.
type Ender interface {
	// Ended reports whether nothing but the end of the text may follow s.
	Ended(s StageState) bool
}

// Keeper is a stage with a store behind its states.
type Keeper interface {
	// Keep forgets all states but s, and returns the state that stands for it from now on.
	Keep(s StageState) StageState
}

// Forker is a stage whose states two chains cannot share. Stages that are not are shared by a chain and its forks.
type Forker interface {
	// Fork returns a stage of its own for another chain, and its state for s.
	Fork(s StageState) (Stage, StageState)
}
