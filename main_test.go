package grove_test

import (
	"os"
	"testing"

	"grove/internal/fileio"
)

// TestMain keeps the tests out of the user's cache directory. The tests of the front door are in internal/suite/front.
func TestMain(m *testing.M) { os.Exit(fileio.RunApart(m)) }
