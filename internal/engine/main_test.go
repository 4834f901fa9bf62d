package engine_test

import (
	"os"
	"testing"

	"grove/internal/fileio"
)

// TestMain keeps the tests out of the user's cache directory.
func TestMain(m *testing.M) { os.Exit(fileio.RunApart(m)) }
