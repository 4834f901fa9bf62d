package bench

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"grove"
	"grove/internal/gopher"
	"grove/internal/model/synthetic"
	"grove/internal/stat"
	"grove/internal/weights/gguf"
)

// TestParses cuts an answer at the end of its function.
func TestParses(t *testing.T) {
	const begun = "package x\n\nfunc broken( {\n}\n\nfunc f(a int) int {\n"
	for _, c := range []struct {
		prompt, answer string
		want           bool
	}{
		{begun, "\treturn a\n}\n\nfunc g(", true},
		{begun, "\treturn a\n", false},
		{begun, "\treturn (\n}\n", false},
		{begun, "\tif a > 0 {\n\t\treturn 1\n\t}\n\treturn a\n}", true},
		{"// A comment.\n", "func f() {\n}\n", true},
		{"// A comment.\n", "f() {\n}\n", false},
	} {
		if got := parses(c.prompt, c.answer); got != c.want {
			t.Errorf("%q: %v", c.answer, got)
		}
	}
}

// TestKendall has orders from left to right, from right to left, all at once, and with ties.
func TestKendall(t *testing.T) {
	for _, c := range []struct {
		passes []int
		want   float64
	}{
		{nil, 0}, {[]int{0}, 0}, {[]int{0, 1, 2, 3}, 1}, {[]int{3, 2, 1, 0}, -1}, {[]int{0, 0, 0}, 0}, {[]int{0, 2, 1}, 1. / 3}, {[]int{0, 0, 1}, 2 / math.Sqrt(6)},
	} {
		if got := kendall(c.passes); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v: %v, want %v", c.passes, got, c.want)
		}
	}
}

// TestLists holds each operation to its own examples, and to answers that are wrong.
func TestLists(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, op := range lists {
		for range 50 {
			l := []string{"dave", "alice", "frank", "bob"}
			if got := op.does(l, "heidi", r); !op.right(l, "heidi", got) {
				t.Errorf("%s: the example %v is not right", op.name, got)
			}
			for _, bad := range [][]string{nil, {"dave"}, {"dave", "dave", "frank", "bob"}, {"dave", "heidi", "heidi", "bob"}, {"bob", "frank", "alice", "dave", "judy"}} {
				if op.right(l, "heidi", bad) {
					t.Errorf("%s: %v is right", op.name, bad)
				}
			}
			if op.name != "copy" && op.right(l, "heidi", l) {
				t.Errorf("%s: the list itself is right", op.name)
			}
		}
	}
	a, b := CanvasLists(3, 5), CanvasLists(3, 5)
	if len(a) != 3*len(lists) || !slices.EqualFunc(a, b, func(x, y CanvasTask) bool { return x.Prompt == y.Prompt }) {
		t.Errorf("%d tasks", len(a))
	}
	copyOf := a[0].Prompt
	in := copyOf[strings.LastIndex(copyOf, "in := []string{")+len("in := []string{"):]
	in, _, _ = strings.Cut(in, "}")
	if !a[0].Right(in+"}\nmore") || a[0].Right(in) || a[0].Right("x"+in+"}") {
		t.Errorf("answers to %q", copyOf)
	}
}

// open opens a random LLaDA with a vocabulary, and gopher-nano, which judges.
func open(t *testing.T) (m, judge *grove.Model) {
	t.Helper()
	metadata, tensors, err := synthetic.Spec{Arch: "llada", Vocabulary: true, Vocab: 300, Context: 512}.Parts()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	for _, file := range []struct {
		to   **grove.Model
		from []byte
	}{{&m, b.Bytes()}, {&judge, gopher.Named("gopher-nano")}} {
		opened, err := grove.OpenBytes(file.from, grove.Options{Parallel: 1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { opened.Close() })
		*file.to = opened
	}
	return m, judge
}

// TestCompare runs policies and caches on tasks of both kinds: counts are those of generations, settings that do not go together are named, and the report is written in all forms.
func TestCompare(t *testing.T) {
	m, judge := open(t)
	tasks := []CanvasTask{{ID: "a", Prompt: "func f() {\n"}, {ID: "b", Prompt: "func g() int {\n"}}
	o := CanvasOptions{Policies: []string{"static", "threshold:p=0", "factor", "rcr"}, Caches: []string{"none", "dual", "window"}, Block: 8, Tokens: 16, Seed: 1}
	r, err := CanvasCompare(t.Context(), m, judge, tasks, o, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Figures) != 12 || r.Figures[0].Policy != "static" || r.Figures[0].Ratio != 1 {
		t.Fatalf("%d figures, first %+v", len(r.Figures), r.Figures[0])
	}
	for _, f := range r.Figures {
		if (f.Refused != "") != (f.Policy == "rcr" && f.Cache == "window") {
			t.Errorf("%s with %s is refused: %s", f.Policy, f.Cache, f.Refused)
		}
		if f.Refused == "" && (f.Tasks != 2 || f.Tokens == 0 || f.Rate <= 0 || f.Loss <= 0 || f.Rows < f.Passes || (f.Bound > 0) != (f.Policy == "factor")) {
			t.Errorf("%+v", f)
		}
	}
	for _, write := range []func(io.Writer) error{r.WriteText, r.WriteJSON, r.WritePlot} {
		var b bytes.Buffer
		if err := write(&b); err != nil || !strings.Contains(b.String(), "threshold:p=0") {
			t.Errorf("error %v: %s", err, b.String())
		}
	}
	two := CanvasLists(1, 1)[:2]
	if kept, err := CanvasFitting(m, append(two, CanvasTask{Prompt: strings.Repeat("x", 500)}), 16); err != nil || len(kept) != 2 {
		t.Errorf("%d tasks fit, error %v", len(kept), err)
	}
	lists, err := CanvasCompare(t.Context(), m, judge, two, CanvasOptions{Policies: []string{"threshold"}, Caches: []string{"none"}, Tokens: 16}, func(int, int) {})
	if err != nil || !lists.Lists || len(lists.Figures) != 2 {
		t.Errorf("error %v, %+v", err, lists)
	}
}

// TestCompareRefused: no tasks, a model of the next token, and one that ends.
func TestCompareRefused(t *testing.T) {
	m, judge := open(t)
	if _, err := CanvasCompare(t.Context(), m, judge, nil, CanvasOptions{}, nil); err == nil {
		t.Error("no tasks: no error")
	}
	o := CanvasOptions{Policies: []string{"static"}, Caches: []string{"none"}, Tokens: 8}
	refused := new(grove.OptionError)
	if _, err := CanvasCompare(t.Context(), judge, judge, []CanvasTask{{ID: "a", Prompt: "x"}}, o, nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), "task a, static with cache none") {
		t.Errorf("a model of the next token: error %v", err)
	}
}

// TestLoss holds the judge's loss to the log-probabilities that it gives the same tokens.
func TestLoss(t *testing.T) {
	_, judge := open(t)
	const prompt, answer = "func f() {\n", "\treturn\n}\n"
	got, err := lossOf(t.Context(), judge, prompt, answer)
	if err != nil {
		t.Fatal(err)
	}
	before, _ := judge.Tokenize(prompt, true, false)
	behind, _ := judge.Tokenize(answer, false, false)
	ids, want, at := slices.Concat(before, behind), 0.0, 0
	if err := judge.Logits(t.Context(), ids, func(row []float32) error {
		if at++; at >= len(before) && at < len(ids) {
			want += stat.LogSumExp(row) - float64(row[ids[at]])
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got.tokens != len(behind) || math.Abs(got.nats-want) > 1e-3 {
		t.Errorf("%+v, want %.4f of %d tokens", got, want, len(behind))
	}
	if empty, err := lossOf(t.Context(), judge, prompt, ""); err != nil || empty.tokens != 0 {
		t.Errorf("no answer: %+v, error %v", empty, err)
	}
	if long, err := lossOf(t.Context(), judge, strings.Repeat("x := 1\n", 2000), strings.Repeat("y := 2\n", 2000)); err != nil || long.tokens == 0 {
		t.Errorf("a long answer: %+v, error %v", long, err)
	}
}

// TestPlot is an image that is well formed whatever the names, also of one point.
func TestPlot(t *testing.T) {
	for _, r := range []CanvasReport{
		{Model: "<&>", Figures: []CanvasFigures{{Policy: `a"<b>`, Cache: "none"}}},
		{Model: "m", Lists: true, Figures: []CanvasFigures{{Policy: "a", Cache: "none", Passes: 1, Right: 1}, {Policy: "b", Cache: "dual", Passes: .5}, {Policy: "c", Refused: "x"}}},
	} {
		var b bytes.Buffer
		if err := r.WritePlot(&b); err != nil {
			t.Fatal(err)
		}
		d := xml.NewDecoder(&b)
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := (&CanvasReport{}).WritePlot(io.Discard); err == nil {
		t.Error("nothing to plot: no error")
	}
}
