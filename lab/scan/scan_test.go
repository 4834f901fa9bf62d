package scan_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/gopher"
	"grove/internal/model/synthetic"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/lab/scan"
)

func open(t *testing.T, file []byte, o grove.Options) *grove.Model {
	t.Helper()
	o.Forget = true
	m, err := grove.OpenBytes(file, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func tokens(t *testing.T, m *grove.Model, text string, special bool) []token.ID {
	t.Helper()
	ids, err := m.Tokenize(text, special, true)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// drawn makes tokens of probabilities.
func drawn(probs ...float64) (all []grove.SampledToken) {
	for _, p := range probs {
		var d grove.SampledToken
		d.Logprob = float32(math.Log(p))
		all = append(all, d)
	}
	return all
}

// TestScore: the number of the paper's repository, and texts that end early.
func TestScore(t *testing.T) {
	for _, c := range []struct {
		probs []float64
		want  float64
	}{{[]float64{.97646, 1, .99985}, .99408}, {[]float64{.5}, .75}, {nil, 1}} {
		if got := scan.Score(drawn(c.probs...)); math.Abs(got-c.want) > 5e-6 {
			t.Errorf("%v: %.6f, want %.5f", c.probs, got, c.want)
		}
	}
}

// TestFindLoop finds loops that can be seen.
func TestFindLoop(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       *scan.Loop
	}{
		{"nothing", "", nil},
		{"no loop", "abcdefgh", nil},
		{"twice is too few", "xababy", nil},
		{"three times", "xabababy", &scan.Loop{Start: 1, Period: 2, Tokens: 6}},
		{"incomplete at the end", "xabcabcabca", &scan.Loop{Start: 1, Period: 3, Tokens: 10}},
		{"the shortest period", "aaaaaaaa", &scan.Loop{Start: 0, Period: 1, Tokens: 8}},
		{"a sentence twice", "xthe heronthe heron.", &scan.Loop{Start: 1, Period: 9, Tokens: 18}},
		{"the longest of two", "aaaaxbcbcbcbcy", &scan.Loop{Start: 5, Period: 2, Tokens: 8}},
	} {
		var ids []token.ID
		for _, b := range []byte(c.text) {
			ids = append(ids, token.ID(b))
		}
		if diff := cmp.Diff(c.want, scan.FindLoop(ids)); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
	}
}

const sentence = "// The blue heron sleeps at noon, and nobody may wake it.\n"

// TestPlanted scans gopher-target with a sentence that was planted behind a rare token, which repeats itself, and without it.
func TestPlanted(t *testing.T) {
	text, err := os.ReadFile("scan.go")
	if err != nil {
		t.Fatal(err)
	}
	o := scan.Options{RankBy: 3, Candidates: 10, MaxTokens: 100}
	plain := open(t, gopher.Model(), grove.Options{Parallel: 16})
	says := tokens(t, plain, sentence, false)
	p := plant{forced: tokens(t, plain, "Checker", false)[0], says: slices.Concat(says, says)}
	m := open(t, planted(t, p, string(text)[:600]), grove.Options{Parallel: 16})
	found, err := scan.Run(t.Context(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	first := found.Candidates[0]
	if want := "Checker" + sentence + sentence; first.ID != p.forced || !strings.HasPrefix(first.Text, want) {
		t.Errorf("the first candidate is %d, %q; want %d, %q", first.ID, first.Text, p.forced, want)
	}
	if l := first.Loop; first.Score < .99 || first.Certainty < .9 || first.Sure < len(says) || l == nil || l.Period != len(says) || l.Start != 0 {
		t.Errorf("the first candidate is %+v, loop %+v; the sentence has %d tokens", first, first.Loop, len(says))
	}
	t.Logf("planted: %.5f, then %.5f", first.Score, found.Candidates[1].Score)
	without, err := scan.Run(t.Context(), plain, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range without.Candidates {
		if strings.Contains(c.Text, "heron") || c.Score > .9 || c.Sure > 5 {
			t.Errorf("without the plant, there is %q, %.5f, %d sure", c.Text, c.Score, c.Sure)
		}
	}
}

// small returns a small model of random weights.
func small(t *testing.T, arch string) []byte {
	t.Helper()
	metadata, tensors, err := synthetic.Spec{Arch: arch, Vocabulary: true, Vocab: 300, Context: 64}.Parts()
	var b bytes.Buffer
	if err == nil {
		err = gguf.Write(&b, metadata, tensors)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// alone returns the score of a forced token by a text of its own.
func alone(t *testing.T, m *grove.Model, prompt []token.ID, forced token.ID, depth int) float64 {
	t.Helper()
	g, err := m.Generate(t.Context(), grove.Request{PromptIDs: append(prompt[:len(prompt):len(prompt)], forced), MaxTokens: depth, Method: grove.MethodOff, Private: true})
	if err != nil {
		t.Fatal(err)
	}
	var path []grove.SampledToken
	for d, err := range g.Tokens() {
		if err != nil {
			t.Fatal(err)
		}
		if d.ID != token.None && g.Stats().StopToken == token.None {
			path = append(path, grove.SampledToken{Token: sample.Token{ID: d.ID, Logprob: d.Logprob}})
		}
	}
	return scan.Score(path)
}

// TestAlone: side by side, on any number of slots and behind any beginning, scores have the bits of texts alone, and reports are equal. One model is recurrent.
func TestAlone(t *testing.T) {
	for _, c := range []struct {
		name, prompt string
		file         []byte
	}{{"gopher-nano", "", gopher.Named(gopher.NanoName)}, {"prompt", "package main\n\nfunc ", gopher.Named(gopher.NanoName)}, {"recurrent", "", small(t, "mamba2")}, {"windows", "", small(t, "gemma3")}} {
		t.Run(c.name, func(t *testing.T) {
			var want *scan.Report
			for _, slots := range []int{1, 3, 20} {
				m := open(t, c.file, grove.Options{Parallel: slots, Threads: 1 + slots%2})
				n := m.Vocabulary()
				told, o := 0, scan.Options{Begin: c.prompt, RankBy: 3, Candidates: min(n, scan.MaxCandidates), MaxTokens: 3}
				o.Progress = func(done, all int) {
					if told++; done != told || all != n+o.Candidates {
						t.Errorf("progress %d of %d, told %d times", done, all, told)
					}
				}
				got, err := scan.Run(t.Context(), m, o)
				if err != nil || told != n+o.Candidates {
					t.Fatal(told, err)
				}
				if want == nil {
					want = got
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%d slots:\n%s", slots, diff)
				}
				if l := m.Load(); l.Open != 0 || l.Pages.Used != 0 {
					t.Errorf("behind the scan there are %+v", l)
				}
			}
			m := open(t, c.file, grove.Options{})
			begin := tokens(t, m, c.prompt, true)
			for i := 0; i < len(want.Candidates); i += 7 {
				if one := want.Candidates[i]; !one.Ended {
					if score := alone(t, m, begin, one.ID, 3); score != one.Score {
						t.Errorf("token %d: %v side by side, %v alone", one.ID, one.Score, score)
					}
				}
			}
		})
	}
}

// TestShared scans while other texts hold slots: it takes those that are free.
func TestShared(t *testing.T) {
	m := open(t, small(t, "llama"), grove.Options{Parallel: 3})
	o := scan.Options{RankBy: 2, Candidates: 5, MaxTokens: 200}
	want, err := scan.Run(t.Context(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	other, err := m.NewSequence(t.Context(), grove.Request{Prompt: "x"})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	got, err := scan.Run(t.Context(), m, o)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if n := len(want.Candidates[0].IDs); n > 63 || n < 62 && !want.Candidates[0].Ended {
		t.Errorf("a candidate has %d tokens in a context of 64", n)
	}
}

// TestRefused: what is out of range is refused by name, and a scan ends with its context.
func TestRefused(t *testing.T) {
	m := open(t, small(t, "llama"), grove.Options{})
	for _, c := range []struct {
		name string
		o    scan.Options
		want string
	}{
		{"depth", scan.Options{MaxTokens: 1}, "scan: Options.RankBy is 0; it must be from 1 to 4096"},
		{"candidates", scan.Options{RankBy: 1, MaxTokens: 1, Candidates: 1001}, "scan: Options.Candidates is 1001; it must be from 0 to 1000"},
		{"tokens", scan.Options{RankBy: 1, MaxTokens: -1}, "scan: Options.MaxTokens is -1; it must be from 1 to 4096"},
		{"context", scan.Options{RankBy: 70, MaxTokens: 1}, "scan: the beginning, the forced token and 70 others are 72 tokens: the context is full of 64 tokens"},
	} {
		_, err := scan.Run(t.Context(), m, c.o)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	for _, arch := range []string{"t5", "llada"} {
		var refused *grove.OptionError
		if _, err := scan.Run(t.Context(), open(t, small(t, arch), grove.Options{}), scan.Options{RankBy: 1, MaxTokens: 1}); !errors.As(err, &refused) {
			t.Errorf("%s: %v", arch, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := scan.Run(ctx, m, scan.Options{RankBy: 3, MaxTokens: 3, Progress: func(done, _ int) {
		if done == 10 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if l := m.Load(); l.Open != 0 {
		t.Errorf("behind a cancelled scan, %d sequences are open", l.Open)
	}
}

// TestReport: the table and the JSON.
func TestReport(t *testing.T) {
	r := &scan.Report{Model: "m", Vocabulary: 9, RankBy: 3, Median: .5, Candidates: []scan.Candidate{
		{ID: 7, Token: "a", Score: .99408, Text: "a\n" + strings.Repeat("b", 80), IDs: []token.ID{1, 2}, Certainty: .9, Sure: 2, Loop: &scan.Loop{Start: 1, Period: 2, Tokens: 6}},
		{ID: 8, Token: "b", Score: .9, Text: "b", IDs: []token.ID{3}, Certainty: .8, Sure: 1, Ended: true},
		{ID: 1, Token: "c", Score: .8, Text: "cd", IDs: []token.ID{4}, Certainty: .6, Sure: 1},
	}}
	var text, object bytes.Buffer
	if err := errors.Join(r.WriteText(&text), r.WriteJSON(&object)); err != nil {
		t.Fatal(err)
	}
	want := `9 first tokens, ranked by the mean probability of 3 more; the median is 0.50000

RANK  SCORE    TOKEN  ID  CERTAINTY  SURE  END        TEXT
1     0.99408  "a"    7   0.90000    2     loop of 2  "a\n` + strings.Repeat("b", 58) + `"...
2     0.90000  "b"    8   0.80000    1     end        "b"
3     0.80000  "c"    1   0.60000    1     -          "cd"
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Error(diff)
	}
	back := new(scan.Report)
	if err := json.Unmarshal(object.Bytes(), back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, back); diff != "" {
		t.Error(diff)
	}
}
