package search

import (
	"math"
	"testing"
)

// TestExtract finds final answers.
func TestExtract(t *testing.T) {
	for _, tt := range []struct{ extractor, text, want string }{
		{"number", "So 3 + 4 is 7.", "7"}, {"number", "It is $1,234.50 now", "1234.5"}, {"number", "-0.0", "0"}, {"number", "x = -12", "-12"}, {"number", "5-3", "3"},
		{"number", "a-3", "3"}, {"number", "(2)-3", "3"}, {"number", "none", ""}, {"number", "", ""}, {"number", "007", "7"}, {"number", "+8", "8"}, {"number", "1,23", "23"},
		{"number", "3.", "3"}, {"number", "-.5", "5"}, {"number", "3.140", "3.14"},
		{"line", "a\nb \n\n  ", "b"}, {"line", "", ""}, {"line", "one", "one"},
		{"boxed", `so \boxed{\frac{1}{2}} is`, `\frac{1}{2}`}, {"boxed", `\boxed{1} \boxed{ 2 }`, "2"}, {"boxed", `\boxed{1`, ""}, {"boxed", "1", ""},
		{"text", " a b\n", "a b"},
	} {
		if got := Extractors[tt.extractor](tt.text); got != tt.want {
			t.Errorf("%s of %q: %q, want %q", tt.extractor, tt.text, got, tt.want)
		}
	}
}

// FuzzExtract reads hostile texts: an extractor returns, and what it returns of its own answer is that answer.
func FuzzExtract(f *testing.F) {
	for _, text := range []string{"-1,000.50", `\boxed{{}}`, "a\n\nb", "+-+-", `\boxed{\boxed{`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, extract := range Extractors {
			answer := extract(text)
			if name == "boxed" {
				continue
			}
			if again := extract(answer); again != answer {
				t.Errorf("%s of %q: %q, and of that %q", name, text, answer, again)
			}
		}
	})
}

// TestVote chooses among scripted answers.
func TestVote(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers []string
		weighed bool
		at      int
		votes   int
		weights []float64
	}{
		{"the most common", []string{"1", "2", "2"}, false, 1, 2, []float64{1. / 3, 1. / 3, 1. / 3}},
		{"of ties the earliest", []string{"1", "2", "2", "1"}, false, 0, 2, []float64{.25, .25, .25, .25}},
		{"no answer is no vote", []string{"", "", "", "7"}, false, 3, 1, []float64{0, 0, 0, 1}},
		{"none has an answer", []string{"", ""}, false, 0, 0, []float64{0, 0}},
		{"a likely sample outweighs two", []string{"1", "2", "2"}, true, 0, 1, []float64{.8, .1, .1}},
	} {
		var all []Attempt
		for i, a := range tt.answers {
			logprob := math.Log(.1) * 2
			if i == 0 {
				logprob = math.Log(.8) * 2
			}
			all = append(all, Attempt{Answer: a, Tokens: 2, Logprob: logprob})
		}
		at, votes := Vote(all, tt.weighed)
		if at != tt.at || votes != tt.votes {
			t.Errorf("%s: sample %d with %d votes", tt.name, at, votes)
		}
		for i, want := range tt.weights {
			if math.Abs(all[i].Weight-want) > 1e-12 {
				t.Errorf("%s: weights %+v", tt.name, all)
			}
		}
	}
}
