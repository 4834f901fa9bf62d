package constrain

import (
	"grove/constrain/earley"
	"grove/internal/text/token"
)

// recognizer says what may follow the bytes of a text. Its states are immutable. It is safe for concurrent use.
type recognizer interface {
	// start returns the state of the empty text.
	start() (state, error)
	// next returns the state behind a token, or an error where it may not follow.
	next(s state, id token.ID) (state, error)
	// push returns the state behind the first n bytes of a text, which are all that may follow.
	push(s state, text []byte) (to state, n int, err error)
	// allows reports whether a token may follow.
	allows(s state, id token.ID) (bool, error)
	// mask returns the tokens that may follow, those that end the text among them. It is shared.
	mask(s state) (mask, error)
	// ends reports whether the text may end.
	ends(s state) bool
	// forced returns the bytes that must follow, at most max of them.
	forced(s state, max int) []byte
	// worn reports whether the recognizer has served so many texts that another one is to serve the next.
	worn() bool
	// held returns its memory in bytes, about, and waits for nobody.
	held() int
	// expected says in words what may follow.
	expected(s state) string
}

// state is a text to a recognizer. States are comparable.
type state struct {
	of    earley.State
	at    int   // of an automaton
	place int32 // of the recognizer that tests compare it with
}
