package grove_test

import (
	"os"
	"testing"

	"grove/internal/cachefile"
)

// TestMain keeps the tests out of the user's cache directory.
func TestMain(m *testing.M) { os.Exit(cachefile.RunApart(m)) }
