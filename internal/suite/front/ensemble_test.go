package front_test

import (
	"context"
	"strings"
	"testing"

	"grove"
	"grove/internal/gopher"
	"grove/search/bytewise"
)

// otherGolden is a small model of another vocabulary than goldenModel's.
const otherGolden = "../../../internal/suite/modeltest/testdata/qwen2.gguf"

// meanOf is the mean of what several models expect behind a text, each by a view of its own.
type meanOf struct {
	views   []*grove.ByteView
	weights []float64
}

// Next returns the mean.
func (m meanOf) Next(ctx context.Context) (mean bytewise.Distribution, err error) {
	for i, v := range m.views {
		law, err := v.Next(ctx)
		if err != nil {
			return mean, err
		}
		for s, p := range law.P {
			mean.P[s] += m.weights[i] * p
		}
	}
	return mean, nil
}

// writes expects each byte of a text to be the likeliest of the mean behind those before it, and moves the views behind it.
func (m meanOf) writes(t *testing.T, text string) {
	t.Helper()
	for i := range len(text) {
		law, err := m.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		best := 0
		for s := range law.P {
			if law.P[s] > law.P[best] {
				best = s
			}
		}
		if best != int(text[i]) {
			t.Fatalf("byte %d of %q; likeliest 0x%02X %v against %v", i, text, best, law.P[best], law.P[text[i]])
		}
		for _, v := range m.views {
			if err := v.Push(text[i]); err != nil {
				t.Fatal(i, err)
			}
		}
	}
}

// TestEnsemble draws from a model and a guide: first bytes come as often as the mean of what both expect alone says, and greedy answers are the likeliest bytes of the
// mean, one after the other.
func TestEnsemble(t *testing.T) {
	meanBehind := func(prompt string, of ...string) (*grove.Model, meanOf) {
		mean := meanOf{weights: []float64{.8, .2}}
		for _, name := range of {
			v, done := viewBehind(t, open(t, name, grove.Options{Forget: true}), grove.Request{Prompt: prompt})
			t.Cleanup(done)
			mean.views = append(mean.views, v)
		}
		return open(t, of[0], grove.Options{Guides: of[1:], Forget: true}), mean
	}
	r := grove.Request{Prompt: "package main\n\nfunc f() error {\n\treturn er", Search: "ensemble,weight=0.8", MaxTokens: 1, Sampling: grove.Sampling{Temperature: 1}}
	m, mean := meanBehind(r.Prompt, goldenModel, otherGolden) // their vocabularies are small: to draw with large ones takes twenty times as long
	expect(t, m, r, mean)
	m, mean = meanBehind(r.Prompt, gopher.NanoName, "gopher-draft")
	if long {
		expect(t, m, r, mean)
	}
	r.Sampling, r.MaxTokens = grove.Sampling{}, 12
	answer, stats := generate(t, m, r)
	text := answer.text()
	if stats.Figures["bytes"] < float64(len(text)) || stats.Figures["steps_a_byte"] <= 0 || stats.Figures["rows_a_byte"] < stats.Figures["steps_a_byte"] || len(text) == 0 {
		t.Errorf("%d bytes with the figures %v", len(text), stats.Figures)
	}
	mean.writes(t, text)
}

// TestEnsembleOfWords draws with a guide of another vocabulary: each token has the log-probability that the model gives to it alone, and the guide changes the answer.
func TestEnsembleOfWords(t *testing.T) {
	m := open(t, gopher.NanoName, grove.Options{Guides: []string{goldenModel}, Forget: true})
	if i := m.Info(); len(i.Guides) != 1 || !strings.Contains(i.Guides[0], "another vocabulary") {
		t.Fatalf("the guides are %q", i.Guides)
	}
	answers := map[string]bool{}
	for _, weight := range []string{"1", "0.3"} {
		r := grove.Request{Prompt: "package main\n\nfunc ma", Search: "ensemble,beam=5,weight=" + weight, MaxTokens: 8}
		answer, stats := generate(t, m, r)
		compareAlone(t, m, r, answer, stats.Attempts)
		if again, _ := generate(t, m, r); again.text() != answer.text() || answer.text() == "" {
			t.Errorf("weight %s: %q, and then %q", weight, answer.text(), again.text())
		}
		answers[answer.text()] = true
	}
	if len(answers) != 2 {
		t.Errorf("the guide changes nothing: %v", answers)
	}
}

// TestEnsembleOfOne: a model whose guide is itself draws as its own bytes do, a stop string and the bound of tokens end the answer, and a beam that keeps everything
// draws by all sequences of tokens.
func TestEnsembleOfOne(t *testing.T) {
	m := open(t, gopher.NanoName, grove.Options{Guides: []string{gopher.NanoName}, Forget: true})
	r := grove.Request{Prompt: "package main\n\nfunc f() error {\n\treturn er", MaxTokens: 1, Sampling: grove.Sampling{Temperature: 1}}
	drawn := []*grove.Model{open(t, goldenModel, grove.Options{Guides: []string{goldenModel}, Forget: true})}
	if long {
		drawn = append(drawn, m)
	}
	for _, m := range drawn {
		v, done := viewBehind(t, m, grove.Request{Prompt: r.Prompt})
		defer done()
		for _, r.Search = range []string{"ensemble", "bytebeam,k=64,threshold=0"} { // behind no byte all ways to write the text are one
			expect(t, m, r, v)
		}
	}
	r.Sampling = grove.Sampling{}
	for _, search := range []string{"ensemble", "bytebeam"} {
		r.Search, r.MaxTokens, r.Stop = search, 40, nil
		long, stats := generate(t, m, r)
		if n := len(long.Tokens); n > 40 || n < 3 || stats.Grade != grove.Lossy {
			t.Fatalf("%s: %d tokens, grade %s", search, n, stats.Grade)
		}
		stop := long.text()[2:4]
		r.Stop = []string{stop}
		short, stats := generate(t, m, r)
		if want, _, _ := strings.Cut(long.text(), stop); short.text() != want || stats.StopText != stop {
			t.Errorf("%s: %q before %q is %q, stopped by %q", search, long.text(), stop, short.text(), stats.StopText)
		}
	}
}

// TestEnsembleRefused names what a search by bytes cannot do.
func TestEnsembleRefused(t *testing.T) {
	m := open(t, gopher.NanoName, grove.Options{Forget: true})
	guided := open(t, gopher.NanoName, grove.Options{Guides: []string{goldenModel}, Forget: true})
	for _, tt := range []struct {
		m      *grove.Model
		search string
		r      grove.Request
		want   string
	}{
		{m, "ensemble", grove.Request{}, "it needs a guide"},
		{m, "ensemble,weight=2", grove.Request{}, "weight"},
		{m, "bytebeam,k=0", grove.Request{}, "k is"},
		{guided, "ensemble", grove.Request{Method: "sam"}, "leave the method to auto or off"},
		{guided, "contrast", grove.Request{}, "or the search ensemble, which goes by bytes"},
		{m, "bytebeam", grove.Request{Constraint: &grove.Constraint{Check: func([]byte) bool { return true }, Ends: func([]byte) bool { return false }, Weights: true}}, "weighs tokens"},
	} {
		tt.r.Prompt, tt.r.Search, tt.r.Sampling.Temperature = "a", tt.search, 1
		if _, err := tt.m.Generate(t.Context(), tt.r); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v; want %q", tt.search, err, tt.want)
		}
	}
}

// TestEnsembleOfWordsMean draws greedily with a guide of another vocabulary: every byte is the likeliest of the mean of what both models expect alone.
func TestEnsembleOfWordsMean(t *testing.T) {
	m := open(t, gopher.NanoName, grove.Options{Guides: []string{goldenModel}, Forget: true})
	mean := meanOf{weights: []float64{.3, .7}}
	r := grove.Request{Prompt: "package main\n\nfunc ma", Search: "ensemble,weight=0.3", MaxTokens: 6}
	for _, of := range []string{gopher.NanoName, goldenModel} {
		v, done := viewBehind(t, open(t, of, grove.Options{Forget: true}), grove.Request{Prompt: r.Prompt})
		defer done()
		mean.views = append(mean.views, v)
	}
	answer, _ := generate(t, m, r)
	text := answer.text()
	if text == "" {
		t.Fatal("the answer is empty")
	}
	mean.writes(t, text)
}
