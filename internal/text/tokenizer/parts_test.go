package tokenizer

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"grove/internal/text/token"
)

// pathological are texts without a break, of special tokens, of white space, and a usual one.
var pathological = map[string]string{"a word": "a", "special tokens": "<s>", "lines": "\n", "signs": "<", "letters of two bytes": "é", "text": "hello the 12 he\nhell aaaa<tool>"}

// TestParts: the parts of a text's ids, joined, are its ids.
func TestParts(t *testing.T) {
	for _, v := range []Vocab{smallBPE(), smallSPM(), smallUnigram()} {
		k := must(t, v)
		for name, unit := range pathological {
			text := strings.Repeat(unit, 1<<17/len(unit))
			for _, o := range []Options{{}, {Special: true}, {Plain: true}, {Literal: []Span{{10, 1000}, {5000, 60000}}}} {
				want, err := k.Encode([]token.ID{7}, text, o)
				if err != nil {
					t.Fatal(err)
				}
				var got []token.ID
				longest := 0
				o.Part = func(ids []token.ID) error {
					got, longest = append(got, ids...), max(longest, len(ids))
					return nil
				}
				rest, err := k.Encode([]token.ID{7}, text, o)
				if !slices.Equal(want, got) || err != nil || len(rest) > 0 {
					t.Errorf("%s, %s: %d ids, want %d; error %v, %d ids are left", v.Model, name, len(got), len(want), err, len(rest))
				}
				if longest > partIDs+maxQueue && v.Model != "t5" {
					t.Errorf("%s, %s: a part of %d ids", v.Model, name, longest)
				}
			}
		}
	}
}

// TestPartEnds: an error of Part ends the encoding before much more is read.
func TestPartEnds(t *testing.T) {
	left := errors.New("the client has left")
	for _, v := range []Vocab{smallBPE(), smallSPM(), smallUnigram()} {
		k := must(t, v)
		for name, unit := range pathological {
			calls := 0
			_, err := k.Encode(nil, strings.Repeat(unit, 1<<20/len(unit)), Options{Part: func([]token.ID) error {
				calls++
				return left
			}})
			if !errors.Is(err, left) || calls != 1 {
				t.Errorf("%s, %s: %v after %d calls", v.Model, name, err, calls)
			}
		}
	}
}

// TestMemory: encoding in parts allocates a few bytes for each byte of a text, whatever the text.
func TestMemory(t *testing.T) {
	const size, most = 1 << 18, 16
	for _, v := range []Vocab{smallBPE(), smallSPM(), smallUnigram()} {
		k := must(t, v)
		for name, unit := range pathological {
			text := strings.Repeat(unit, size/len(unit))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := k.Encode(nil, text, Options{Part: func([]token.ID) error { return nil }})
			runtime.ReadMemStats(&after)
			if n := int(after.TotalAlloc - before.TotalAlloc); err != nil || n > most*size {
				t.Errorf("%s, %s: %d bytes for %d, error %v", v.Model, name, n, size, err)
			}
		}
	}
}
