package front_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"grove"
	"grove/internal/gopher"
)

// TestProgress tells how far loading and reading a prompt are, up to the end, and changes nothing.
func TestProgress(t *testing.T) {
	var loaded []int64
	var of int64
	m, err := grove.OpenBytes(gopher.Named("gopher-nano"), grove.Options{Chunk: 16, Progress: func(done, all int64) { loaded, of = append(loaded, done), all }})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if n := len(loaded); n < 3 || !slices.IsSorted(loaded) || loaded[n-1] != of || of < 1000 {
		t.Errorf("loading tells %d of %d", loaded, of)
	}
	prompt := strings.Repeat("func f() {}\n", 8)
	var last string
	for _, watched := range []bool{false, true} {
		var read []int
		r := grove.Request{Prompt: prompt, MaxTokens: 8, CacheSalt: fmt.Sprint(watched)}
		if watched {
			r.Progress = func(done, all int) {
				if read = append(read, done); all != 0 && done > all {
					t.Errorf("%d of %d tokens are read", done, all)
				}
			}
		}
		g, err := m.Generate(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := g.Text()
		if err != nil {
			t.Fatal(err)
		}
		if watched && (text != last || len(read) < 2 || !slices.IsSorted(read) || read[len(read)-1] != len(g.Prompt())) {
			t.Errorf("the text is %q, want %q; reading tells %d of %d", text, last, read, len(g.Prompt()))
		}
		last = text
	}
}
