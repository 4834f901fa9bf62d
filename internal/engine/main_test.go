package engine_test

import (
	"os"
	"testing"

	"grove/internal/fileio"
)

// long says that the random tests are longer, and that models whose steps several threads share have them: bits do not depend on the number.
var long = os.Getenv("GROVE_LONG") != ""

// few returns the threads of models whose tests are not about threads: two also for the race detector, which .ci runs with -short.
func few() int {
	if long || testing.Short() {
		return 2
	}
	return 1
}

// TestMain keeps the tests out of the user's cache directory.
func TestMain(m *testing.M) { os.Exit(fileio.RunApart(m)) }
