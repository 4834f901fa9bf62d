package options

import (
	"slices"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	known := []string{"auto", "sam", "lookup", "recycle", "draft", "draft-block", "--top-k", "--top-p", "Q4_K_M"}
	for _, c := range []struct {
		name string
		want []string
	}{
		{"lokup", []string{"lookup"}}, {"recycl", []string{"recycle"}}, {"SAM", []string{"sam"}}, {"dra", []string{"draft", "draft-block"}},
		{"--top_k", []string{"--top-k", "--top-p"}}, {"q4-k-m", []string{"Q4_K_M"}}, {"same", []string{"sam"}},
		{"x", nil}, {"", nil}, {"klingon", nil}, {strings.Repeat("a", 1000), nil}, {"\xff\x00", nil},
	} {
		if got := NearNames(c.name, known); !slices.Equal(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.name, got, c.want)
		}
	}
	if got := NearHint("lokup", known); got != `; did you mean "lookup"?` {
		t.Error(got)
	}
	if got := NearHint("nothing like it", known); got != "" {
		t.Error(got)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"llama", "lama", 1}, {"kitten", "sitting", 3}, {"sma", "sam", 1}, {"ab", "ba", 1}, {"abc", "cab", 2}, {strings.Repeat("a", 101), strings.Repeat("a", 200), 0}} {
		if got := NearDistance(c.a, c.b); got != c.want {
			t.Errorf("%q, %q: got %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
