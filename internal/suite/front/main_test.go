package front_test

import (
	"os"
	"testing"

	"grove"
	"grove/internal/fileio"
)

// long says that searches are compared with more draws, and drafts with more vocabularies and lengths.
var long = os.Getenv("GROVE_LONG") != ""

// threaded gives options that name no threads one thread in the short run: bits do not depend on the number, which TestGenerateBits, TestLogitsBits and
// the tests of package modeltest show, and threads of small models wait for each other most of the time. The race detector, which .ci runs with -short, has them.
func threaded(o grove.Options) grove.Options {
	if !long && !testing.Short() && o.Threads == 0 {
		o.Threads = 1
	}
	return o
}

// plainly returns a function that answers requests as generate does, each key once: plain decoding gives the same beside every method.
func plainly[K comparable](t *testing.T) func(key K, m *grove.Model, r grove.Request) answer {
	answers := map[K]answer{}
	return func(key K, m *grove.Model, r grove.Request) answer {
		t.Helper()
		a, ok := answers[key]
		if !ok {
			a, _ = generate(t, m, r)
			answers[key] = a
		}
		return a
	}
}

// crowds returns how often an answer of a seed is asked for again, beside others: the long run asks for each twice.
func crowds(seed uint64) int {
	if long || seed == 0 {
		return 2
	}
	return 0
}

// TestMain keeps the tests out of the user's cache directory.
func TestMain(m *testing.M) { os.Exit(fileio.RunApart(m)) }
