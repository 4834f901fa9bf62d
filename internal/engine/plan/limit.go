package plan

import (
	"sort"
	"time"
)

const (
	// stepLimit bounds a step that others wait for.
	stepLimit = 250 * time.Millisecond
	// prefillStretch is how many times longer prompts are meant to make a step that others decode in: it is three
	// times at most, and predictions err.
	prefillStretch = 2.5
	// leastStretch lets prompts go on where the model takes longer than the limit for a single row.
	leastStretch = 1.5
)

// Limit returns the most seconds of a step that other callers wait for, or decode in; usual is its time without the rows that are added.
func Limit(usual float64, decoding bool) float64 {
	limit := max(stepLimit.Seconds(), leastStretch*usual)
	if decoding {
		limit = min(limit, prefillStretch*usual)
	}
	return limit
}

// Within returns the largest number up to most for which a function that rises stays within a limit, or 0.
func Within(limit float64, most int, seconds func(n int) float64) int {
	return sort.Search(max(0, most), func(n int) bool { return seconds(n+1) > limit })
}
