package bench

import (
	"bytes"
	"strings"
	"testing"

	"grove"
	"grove/internal/engine/plan"
	"grove/internal/gopher"
	"grove/internal/text/token"
	"grove/method/vocabulary"
)

var vocabTasks = []Prompt{
	{ID: "1", Prompt: "func (s *Server) Close() error {"}, {ID: "2", Prompt: "func (r *Reader) Read(p []byte) (n int, err error) {"},
	{ID: "3", Prompt: "for i := range list {"}, {ID: "4", Prompt: "if err != nil {\n\treturn "},
}

func vocabModel(t *testing.T, name string) *grove.Model {
	t.Helper()
	m, err := grove.Open(name, grove.Options{Threads: 1, Parallel: 1, Forget: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// costs are a target's, and a draft model's whose head takes two thirds of the time.
func vocabCosts() (target, draft *grove.Cost) {
	return &grove.Cost{Rows: []int{1, 32}, Layers: []float64{10, 13}},
		&grove.Cost{Rows: []int{1}, Layers: []float64{0.2}, Part: plan.Curve{X: []int{64, 4096}, Y: []float64{0.01, 0.4}}}
}

// TestVocab holds the trace to drafting by definition, with several sizes of the head, and the report to its sweep.
func TestVocab(t *testing.T) {
	target, draft := vocabModel(t, gopher.Name), vocabModel(t, gopher.NanoName)
	o := VocabOptions{Tokens: 40, Sizes: []int{100, 1 << 20}}
	o.Target, o.Draft = vocabCosts()
	r, err := Vocab(t.Context(), target, draft, vocabTasks, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Share < 0.98 || r.Texts != 2 || r.Places == 0 || !(r.Alpha > 0 && r.Alpha < 1) {
		t.Errorf("%+v", r)
	}
	tokens, last := 0, VocabFigures{}
	for _, f := range r.Figures {
		if f.Tokens <= tokens || f.Coverage < last.Coverage || f.Seconds < last.Seconds || f.Accepted < 1 || f.Rate <= 0 {
			t.Errorf("%+v", f)
		}
		tokens, last = f.Tokens, f
	}
	if r.Figures[0].Tokens > 112 || last.Tokens != 4096 || last.Coverage < 1-1e-9 || last.Acceptance != r.Alpha || last.Predicted != r.Alpha {
		t.Errorf("figures %+v", r.Figures)
	}
	var text, object bytes.Buffer
	if r.WriteText(&text) != nil || r.WriteJSON(&object) != nil || !strings.Contains(text.String(), "| 112 |") || !strings.Contains(object.String(), `"kappa"`) {
		t.Errorf("%s%s", &text, &object)
	}
}

// TestVocabTrace: at each token and with each size of the head, the trace says whether the likeliest of the tokens that are computed is the
// answer's; and rounds are counted as chains of drafts make them.
func TestVocabTrace(t *testing.T) {
	target, draft := vocabModel(t, gopher.Name), vocabModel(t, gopher.NanoName)
	ids, prompt, err := answered(t.Context(), target, draft, vocabTasks[0], 40)
	if err != nil {
		t.Fatal(err)
	}
	trace := vocabTrace{counts: vocabulary.New(draft.Vocabulary(), nil)}
	for _, id := range ids[prompt-4:] {
		trace.counts.Count(id)
	}
	trace.order()
	if err := trace.add(t.Context(), draft, ids, prompt); err != nil {
		t.Fatal(err)
	}
	var rows [][]float32
	if err := draft.Logits(t.Context(), ids, func(row []float32) error { rows = append(rows, append([]float32(nil), row...)); return nil }); err != nil {
		t.Fatal(err)
	}
	shares := trace.accepted()
	for _, groups := range []int{1, 3, 10, 40, 200, 256} {
		var right []bool
		hits := 0
		for at := prompt; at < len(ids); at++ {
			computed := map[token.ID]bool{}
			for g, rank := range trace.rank {
				computed[token.ID(g)] = rank <= groups
			}
			for _, id := range ids[:at] {
				computed[id/vocabulary.Group] = true
			}
			best := token.None
			for id, l := range rows[at-1] {
				if computed[token.ID(id)/vocabulary.Group] && (best == token.None || l > rows[at-1][best]) {
					best = token.ID(id)
				}
			}
			right = append(right, best == ids[at])
			if best == ids[at] {
				hits++
			}
			if got := trace.texts[0][at-prompt].has(groups); got != right[at-prompt] {
				t.Errorf("%d groups, token %d: drafted %v, want %v", groups, at, got, right[at-prompt])
			}
		}
		if want := float64(hits) / float64(len(ids)-prompt); shares[groups-1] != want {
			t.Errorf("%d groups: %v are drafted, want %v", groups, shares[groups-1], want)
		}
		for _, drafts := range []int{1, 3, 16} {
			rounds := 0
			for left := right; len(left) > 0; rounds++ {
				n := 0
				for n < min(drafts, len(left)-1) && left[n] {
					n++
				}
				left = left[n+1:]
			}
			if got := trace.rounds(groups, drafts); got != rounds {
				t.Errorf("%d groups, %d drafts: %d rounds, want %d", groups, drafts, got, rounds)
			}
		}
	}
}

// TestVocabErrors: too few tasks, a cost without the head's parts, and a draft model with other tokens are named.
func TestVocabErrors(t *testing.T) {
	target := vocabModel(t, gopher.Name)
	o := VocabOptions{Tokens: 4}
	o.Target, o.Draft = vocabCosts()
	for _, c := range []struct {
		want  string
		tasks []Prompt
		draft *grove.Model
		cost  *grove.Cost
	}{
		{"two tasks or more", vocabTasks[:1], target, o.Draft},
		{"what a part of its head costs", vocabTasks, target, o.Target},
		{"task 1: the draft model has other tokens", vocabTasks, vocabModel(t, "../internal/suite/modeltest/testdata/llama-gqa.gguf"), o.Draft},
	} {
		o.Draft = c.cost
		if _, err := Vocab(t.Context(), target, c.draft, c.tasks, o, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
