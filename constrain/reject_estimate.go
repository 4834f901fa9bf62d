package constrain

import (
	"math"

	"grove/internal/text/token"
)

// rejectSource is the tokens of a draw in the order of their scores, which is that of drawing without replacement.
type rejectSource interface {
	Next() (token.ID, bool)
	Probability() float64 // of the last token
	Most() float64        // the largest probability
	Number(n int) float64 // in (0, 1)
}

// Where one token has most of the probability, drawing with replacement estimates better (section 4 of the paper).
const peaked = 2.0 / 3

// first returns the first legal token, and no weight. It gives up behind limit illegal ones; 0: never.
func first(order rejectSource, legal func(token.ID) bool, limit int) (id token.ID, ok bool) {
	for n := 0; limit == 0 || n < limit; n++ {
		if id, ok = order.Next(); !ok || legal(id) {
			return id, ok
		}
	}
	return token.None, false
}

// recursive returns the first legal token and a weight whose expectation, together with the token's, is the token's
// probability: m is the product of 1-q over the rejected tokens, q being the probability of a token among those that are
// left, and the token behind the accepted one says whether that one's q remains.
func recursive(order rejectSource, legal func(token.ID) bool, limit int) (id token.ID, weight float64, ok bool) {
	m, rejected := 1.0, 0.0
	for n := 0; limit == 0 || n < limit; n++ {
		if id, ok = order.Next(); !ok {
			return token.None, 0, false
		}
		p := order.Probability()
		q := min(1, p/max(1-rejected, p))
		if !legal(id) {
			m, rejected = m*(1-q), rejected+p
			continue
		}
		if next, more := order.Next(); more && !legal(next) {
			m *= q
		}
		return id, m, true
	}
	return token.None, 0, false
}

// geometric returns the first legal token and a weight of the same expectation. It imagines draws with replacement up to
// the second legal one: a draw of a token that is known to be illegal costs no check, and their number is geometric. The
// weight is 1 / (1 + illegal draws).
func geometric(order rejectSource, legal func(token.ID) bool, limit int) (id token.ID, weight float64, ok bool) {
	rejects, rejected := 0.0, 0.0
	numbers := 0
	number := func() float64 { numbers++; return order.Number(numbers) }
	repeats := func() float64 { // draws of known tokens before one of another
		if rejected <= 0 {
			return 0
		}
		return math.Floor(math.Log(number()) / math.Log(min(rejected, 1-1e-9)))
	}
	id = token.None
	var accepted float64 // the probability of id
	for n := 0; limit == 0 || n < limit; n++ {
		rejects += repeats()
		if id != token.None && number()*max(1-rejected, accepted) < accepted {
			return id, 1 / (1 + rejects), true // the same one again
		}
		next, more := order.Next()
		if !more {
			break
		}
		p := order.Probability()
		switch {
		case !legal(next):
			rejects, rejected = rejects+1, rejected+p
		case id != token.None:
			return id, 1 / (1 + rejects), true
		default:
			id, accepted = next, p
		}
	}
	// What is left has no probability that a float32 holds, or the limit was reached.
	return id, 1 / (1 + rejects), id != token.None
}
