package front_test

import (
	"os"
	"testing"

	"grove/internal/fileio"
)

// long says that searches are compared with more draws, and drafts with more vocabularies and lengths.
var long = os.Getenv("GROVE_LONG") != ""

// crowds returns how often an answer of a seed is asked for again, beside others: the long run asks for each twice.
func crowds(seed uint64) int {
	if long || seed == 0 {
		return 2
	}
	return 0
}

// TestMain keeps the tests out of the user's cache directory.
func TestMain(m *testing.M) { os.Exit(fileio.RunApart(m)) }
