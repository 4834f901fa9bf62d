package score

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/gopher"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
	"grove/internal/weights/gguf"
)

// words is a vocabulary of a model that begins texts with <s>, and that has tokens of letters, blanks and some words with a blank before them.
func words(t *testing.T) *tokenizer.Tokenizer {
	t.Helper()
	f, err := gguf.Parse(gopher.Named(gopher.NanoName))
	if err != nil {
		t.Fatal(err)
	}
	k, err := tokenizer.FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestSplit compares borders with those that lm-evaluation-harness finds: what prompt and continuation have together, behind as many tokens as the prompt
// has alone. White space at the prompt's end is the continuations'.
func TestSplit(t *testing.T) {
	k := words(t)
	encode := func(text string) ([]token.ID, error) { return k.Encode(nil, text, tokenizer.Options{}) }
	begin, _ := k.Around(tokenizer.Continue)
	for name, c := range map[string]struct {
		prompt, continuation string
		before               string // the text of the prompt's tokens
	}{
		"a blank before the continuation": {"package", " main", "package"},
		"a blank behind the prompt":       {"package ", "main", "package"},
		"line ends behind the prompt":     {"// text\n\n", "func main() {", "// text"},
		"inside a word":                   {"pack", "age main\n\nfunc main() {", "pack"},
		"no prompt":                       {"", "package main", ""},
		"a prompt of blanks":              {"  ", "package main", ""},
	} {
		t.Run(name, func(t *testing.T) {
			prefix, all, err := Split(k, c.prompt, []string{c.continuation, c.continuation + "\n"}, encode)
			if err != nil {
				t.Fatal(err)
			}
			own, err := encode(c.before)
			if err != nil {
				t.Fatal(err)
			}
			want := append(append([]token.ID{}, begin...), own...)
			if len(want) == 0 {
				want = []token.ID{k.EOS()}
			}
			if diff := cmp.Diff(want, prefix); diff != "" {
				t.Errorf("prefix (-want +got):\n%s", diff)
			}
			whole, err := encode(c.prompt + c.continuation)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(whole[len(own):], all[0]); diff != "" {
				t.Errorf("continuation (-want +got):\n%s", diff)
			}
		})
	}
	failed := errors.New("too long")
	if _, _, err := Split(k, "a", []string{"b"}, func(string) ([]token.ID, error) { return nil, failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	if _, _, err := Split(k, "package", []string{" main", ""}, encode); err == nil || !strings.Contains(err.Error(), "continuation 1") {
		t.Errorf("got %v", err)
	}
}

// TestNorms scores two continuations of other lengths in each way, by hand.
func TestNorms(t *testing.T) {
	free := []float64{-1, -6}
	short := New(" no", []Token{{ID: 1, Logprob: -2}})
	long := New(" ja è", []Token{{ID: 2, Logprob: -1, Greedy: true}, {ID: 3, Logprob: -2, Greedy: true}})
	short.Unconditional, long.Unconditional = &free[0], &free[1]
	if short.Greedy || !long.Greedy {
		t.Error("one continuation is greedy, the longer one")
	}
	all := []Continuation{short, long}
	for n, want := range map[Norm][2]float64{
		Plain: {-2, -3}, Characters: {-1, -0.75}, Bytes: {-1, -0.6}, Tokens: {-2, -1.5}, Mutual: {-1, 3},
	} {
		if got := [2]float64{short.Score(n), long.Score(n)}; got != want {
			t.Errorf("%s: %v, want %v", n, got, want)
		}
		best := 1
		if n == Plain {
			best = 0
		}
		if got := Best(all, n); got != best {
			t.Errorf("%s: the best is %d, want %d", n, got, best)
		}
	}
	if got := Best([]Continuation{short, short}, Plain); got != 0 {
		t.Errorf("of equal ones the best is %d", got)
	}
}

// TestAccuracy compares intervals with published ones (Newcombe, "Two-sided confidence intervals for the single proportion", 1998, table I, method 3).
func TestAccuracy(t *testing.T) {
	for _, c := range []struct {
		right, all int
		low, high  float64
	}{{81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {1, 29, 0.0061, 0.1718}} {
		a := Accuracy{c.right, c.all}
		low, high := a.Interval()
		if math.Abs(low-c.low) > 5e-5 || math.Abs(high-c.high) > 5e-5 {
			t.Errorf("%d of %d: %.4f to %.4f, want %.4f to %.4f", c.right, c.all, low, high, c.low, c.high)
		}
	}
	var a Accuracy
	if a.Add(true); a.Share() != 1 {
		t.Errorf("a share of %v", a.Share())
	}
}

// TestQuestions reads questions, and refuses each wrong line by its number.
func TestQuestions(t *testing.T) {
	zero := 0
	got, err := ParseQuestions("{\"prompt\":\"a\",\"choices\":[\"b\",\" c\"],\"answer\":0}\n\n{\"prompt\":\"a \",\"choices\":[\"b\"]}\n")
	want := []Question{{"a", []string{"b", " c"}, &zero}, {"a ", []string{"b"}, nil}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	for i, want := range [][]string{{" b", " c"}, {"b"}} {
		if diff := cmp.Diff(want, got[i].Continuations(" ")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	tally := NewTally(Norms(false))
	tally.Add([]Continuation{{Text: "long", Logprob: -3}, {Text: "x", Logprob: -2}}, 0)
	if diff := cmp.Diff([]Accuracy{{0, 1}, {1, 1}, {1, 1}, {0, 1}}, tally.Accuracies); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for text, want := range map[string]string{
		"":                              "there are no questions",
		"\n{":                           "line 2: unexpected EOF",
		`{"prompt":"a","choices":[]}`:   "line 1: choices: there are 0",
		`{"choices":["a"],"answer":1}`:  "answer is 1; it must be the place of a choice, from 0 to 0",
		`{"choices":["a"],"answer":-1}`: "answer is -1",
		`{"choices":["a"],"gold":1}`:    `unknown field "gold"`,
		`{"choices":["a"]} {}`:          "there is more behind the object",
	} {
		if _, err := ParseQuestions(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// FuzzQuestions reads hostile files of questions: those that are taken have choices, and an answer among them.
func FuzzQuestions(f *testing.F) {
	f.Add("{\"prompt\":\"a\",\"choices\":[\"b\",\" c\"],\"answer\":1}\n\n{\"choices\":[\"\"]}")
	f.Add("{\"prompt\":\"a\",\"choices\":[]}")
	f.Add("{\"answer\":1e9}\r\n\x00")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := ParseQuestions(text)
		if err != nil {
			return
		}
		for _, q := range all {
			if len(q.Choices) == 0 || q.Answer != nil && (*q.Answer < 0 || *q.Answer >= len(q.Choices)) || len(q.Continuations(" ")) != len(q.Choices) {
				t.Errorf("%q: %+v", text, q)
			}
		}
	})
}
