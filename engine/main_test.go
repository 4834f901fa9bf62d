package engine_test

import (
	"os"
	"testing"
)

// TestMain keeps the tests out of the user's cache directory.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "grove-engine-test")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CACHE_HOME", dir)
	os.Setenv("HOME", dir)
	os.Setenv("LocalAppData", dir)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}
