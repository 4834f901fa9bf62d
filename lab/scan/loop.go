package scan

import "grove/internal/text/token"

// Loop is a part of a text that repeats itself.
type Loop struct {
	Start  int `json:"start"`  // tokens before it
	Period int `json:"period"` // tokens that are repeated
	Tokens int `json:"tokens"` // of all repetitions, the last of which may be incomplete
}

// A text repeats itself where tokens come leastTimes, or twice where they are leastPeriod or more.
const (
	leastTimes  = 3
	leastPeriod = 8
)

// FindLoop returns the longest part of a text that repeats itself, with the shortest period that it has; nil: there is none. Its time grows with the square of
// the text's length.
func FindLoop(ids []token.ID) (best *Loop) {
	for period := 1; period <= len(ids)/2; period++ {
		l := longest(ids, period)
		if times := l.Tokens / period; times < leastTimes && (times < 2 || period < leastPeriod) {
			continue
		}
		if best == nil || l.Tokens > best.Tokens {
			best = &l
		}
	}
	return best
}

// longest returns the longest part of a text whose tokens are those so many places before.
func longest(ids []token.ID, period int) Loop {
	l, run := Loop{Period: period}, 0
	for i := period; i < len(ids); i++ {
		if run++; ids[i] != ids[i-period] {
			run = 0
		}
		if run > 0 && run+period > l.Tokens {
			l.Start, l.Tokens = i-run+1-period, run+period
		}
	}
	return l
}
