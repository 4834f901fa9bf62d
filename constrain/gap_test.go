package constrain

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"grove/internal/sample"
	"grove/internal/text/token"
)

// TestGap: behind thoughts white space may stand, token by token, as long as it has four bytes at most; masks and single tokens agree.
func TestGap(t *testing.T) {
	v := words(t, false)
	s := subject{spec: Spec{Choices: []string{"abc"}, Thoughts: true}}
	stage := s.compile(t, v).Stages(nil)[0].(*Stage)
	at := stage.Next(stage.Start([]token.ID{bos, think}), unthink)
	for n := range maxGap + 1 {
		logits := make([]float32, v.size)
		alone := make([]bool, v.size)
		for id := range alone {
			alone[id] = stage.Allows(at, token.ID(id)) // before there is a mask
		}
		stage.Apply(at, logits)
		for id := range token.ID(v.size) {
			text := string(v.trie.Bytes(id))
			want := text != "" && strings.HasPrefix("abc", text) || v.white.has(id) && n+len(text) <= maxGap
			if got := logits[id] > float32(math.Inf(-1)); got != want || alone[id] != want {
				t.Errorf("behind %d bytes: token %q is legal by the mask: %v, by itself: %v; want %v", n, text, got, alone[id], want)
			}
		}
		at = stage.Next(at, v.id(t, "\n"))
	}
}

// TestEnded: a text has ended where no token may follow but those that end it, wherever these lie in a mask.
func TestEnded(t *testing.T) {
	v := words(t, false)
	s := subject{spec: Spec{Choices: []string{"abc", "abc0", "abc01"}}}
	stage := s.compile(t, v).Stages(nil)[0].(*Stage)
	at := stage.Next(stage.Start([]token.ID{firstByte + 'x'}), v.id(t, "abc"))
	for _, digit := range "01" {
		if stage.Ended(at) {
			t.Errorf("the text has ended before %c", digit)
		}
		at = stage.Next(at, firstByte+token.ID(digit))
	}
	if !stage.Ended(at) {
		t.Error("the text has not ended")
	}
}

// TestSpelledMarker: a marker of thoughts that is several tokens is completed once it has begun.
func TestSpelledMarker(t *testing.T) {
	tok := textOf(t, false)
	name, order := token.ID(0), token.ID(0)
	for id := range token.ID(tok.Size()) {
		switch tok.Text(id) {
		case "name":
			name = id
		case "order":
			order = id
		}
	}
	v, err := NewVocabulary(tok, tok.Size(), sample.Thinking{Budget: -1, Begin: []token.ID{name, order}, End: []token.ID{unthink}})
	if err != nil {
		t.Fatal(err)
	}
	s := subject{spec: Spec{Choices: []string{"abc"}, Thoughts: true}}
	stage := s.compile(t, v).Stages(nil)[0].(*Stage)
	for _, c := range []struct {
		text, next string
		want       bool
	}{
		{"", "na", true}, {"", "nam", true}, {"", "abc", true}, {"", "or", false},
		{"na", "m", true}, {"na", "abc", false}, {"na", "b", false}, {"nam", "e", true}, {"nam", "abc", false}, {"nam", "b", false}, {"nam", "n", false},
		{"name", "or", true}, {"name", "order", true}, {"name", "abc", false}, {"name", "n", false},
	} {
		at := stage.Start([]token.ID{firstByte + 'x'})
		for _, b := range []byte(c.text) {
			at = stage.Next(at, firstByte+token.ID(b))
		}
		id := v.id(t, c.next)
		alone := stage.Allows(at, id)
		logits := make([]float32, v.size)
		stage.Apply(at, logits)
		if got := logits[id] == 0; got != c.want || alone != c.want {
			t.Errorf("%q behind %q is legal by the mask: %v, by itself: %v; want %v", c.next, c.text, got, alone, c.want)
		}
	}
}

// TestTrigger compares the automaton with a search for the longest trigger that ends at each byte.
func TestTrigger(t *testing.T) {
	word := rapid.StringOfN(rapid.SampledFrom([]rune("ab")), 1, 5, -1)
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(word, 1, 4).Draw(t, "triggers")
		trigger, err := newTrigger(texts, true)
		if err != nil {
			t.Fatal(err)
		}
		text, at := rapid.StringOfN(rapid.SampledFrom([]rune("abx")), 0, 20, -1).Draw(t, "text"), int32(0)
		slices.SortFunc(texts, func(a, b string) int { return len(b) - len(a) })
		for i := range len(text) {
			want := ""
			if k := slices.IndexFunc(texts, func(w string) bool { return strings.HasSuffix(text[:i+1], w) }); k >= 0 {
				want = texts[k]
			}
			var got string
			if at, got = trigger.step(at, text[i]); got != want {
				t.Fatalf("%q of %q: %q, want %q", text[:i+1], texts, got, want)
			}
		}
	})
}
