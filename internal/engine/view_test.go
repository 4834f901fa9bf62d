package engine_test

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/engine"
	"grove/internal/engine/reading"
	"grove/internal/sample"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
	"grove/internal/verify"
	"grove/internal/weights/gguf"
	"grove/method"
)

// looker is a rule that does what Match does, and shows its view to a function first.
func looker(look func(v verify.View, node, depth int, drawn token.ID)) verify.Rule {
	return verify.Rule{Name: "looker", Grade: verify.Exact, New: func() verify.Acceptor { return lookAt(look) }}
}

type lookAt func(v verify.View, node, depth int, drawn token.ID)

func (look lookAt) Accept(v verify.View, out *verify.Outcome) error {
	*out = verify.Outcome{Next: token.None}
	drawn := map[int]token.ID{}
	var visit func(node, depth int) error
	visit = func(node, depth int) error {
		id, err := v.Draw(node)
		if err != nil {
			return err
		}
		drawn[node] = id
		look(v, node, depth, id)
		for _, child := range v.Children(nil, node) {
			if v.Ran(child) {
				if err := visit(child, depth+1); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := visit(verify.Root, 0); err != nil {
		return err
	}
	for node := verify.Root; ; {
		id := drawn[node]
		kids := v.Children(nil, node)
		at := slices.IndexFunc(kids, func(c int) bool { return v.Token(c) == id && v.Ran(c) })
		if at < 0 {
			out.Next = id
			return nil
		}
		node = kids[at]
		out.Accepted = append(out.Accepted, node)
	}
}

// TestRuleSees compares what a rule sees of every node that was run with what plain decoding does there: the probabilities
// are those behind penalties and biases, and every random number is that of the node's own index, use and sample index.
func TestRuleSees(t *testing.T) {
	const n = 60
	b := newBed(t, 1, modeltest.Spec{Context: 300}.File(t))
	prompt := text(20)
	for name, a := range map[string]engine.Answer{
		"greedy": {Penalties: sample.Penalties{
			Presence: 3, Frequency: 1, Window: -1, Repeat: 1.5, RepeatWindow: 16, Bias: []sample.Bias{{ID: 7, Add: 2}},
		}},
		"one token of truncation": {
			Sampling: sample.Params{Temperature: 1, TopK: 1, Seed: 5}, SampleIndex: 3,
			Penalties: sample.Penalties{Presence: 3, Window: -1, MinTokens: 9, Ends: []token.ID{2}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			answer := func(a engine.Answer) (ids []token.ID) {
				s, err := b.engine(t, engine.Config{}).NewSequence(a)
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range draw(t, s, n, prompt) {
					ids = append(ids, c.ID)
				}
				return ids
			}
			want := answer(a)
			bare := a
			bare.Penalties = sample.Penalties{}
			if slices.Equal(answer(bare), want) {
				t.Fatal("the penalties change nothing")
			}
			numbers, err := sample.NewChain(sample.Settings{Params: a.Sampling, SampleIndex: a.SampleIndex}, 48)
			if err != nil {
				t.Fatal(err)
			}
			e := b.engine(t, engine.Config{})
			s, err := e.NewSequence(a)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.SetDrafting(openDrafters(t, e, true, oracles), slices.Concat(prompt, want)); err != nil {
				t.Fatal(err)
			}
			taken, deep := 0, 0
			if err := s.SetRule(looker(func(v verify.View, node, depth int, drawn token.ID) {
				p, err := v.Probs(node)
				if err != nil || p[drawn] != 1 {
					t.Errorf("behind %d tokens and %d drafts: token %d is drawn, and has probability %v: %v", taken, depth, drawn, p[drawn], err)
				}
				index := len(prompt) + taken + depth
				for _, use := range []verify.Purpose{verify.PurposeTest, verify.PurposeTest + 3*verify.NodePurposes} {
					if got, want := v.Number(node, use), numbers.Number(index, use); got != want {
						t.Errorf("behind %d tokens and %d drafts: number %v of use %d, want %v", taken, depth, got, use, want)
					}
				}
				even := slices.Repeat([]float64{1. / 48}, 48)
				if got, want := v.Pick(node, even), numbers.Pick(even, index, verify.PurposeNext); got != want {
					t.Errorf("behind %d tokens and %d drafts: token %d is picked, want %d", taken, depth, got, want)
				}
				deep += min(depth, 1)
			})); err != nil {
				t.Fatal(err)
			}
			var got []token.ID
			if err := s.Append(t.Context(), prompt); err != nil {
				t.Fatal(err)
			}
			for ; taken < n; taken++ {
				c, err := s.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, c.ID)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			if deep < n/3 {
				t.Errorf("the rule saw %d drafts", deep)
			}
		})
	}
}

// TestRuleStates compares the states that a rule sees of drafts with those of the text alone.
func TestRuleStates(t *testing.T) {
	const n = 40
	b := newBed(t, 1, modeltest.Spec{Context: 300}.File(t))
	prompt := text(20)
	var want []token.ID
	for _, c := range draw(t, greedy(t, b.engine(t, engine.Config{})), n, prompt) {
		want = append(want, c.ID)
	}
	var states [][]float32
	if err := b.engine(t, engine.Config{}).States(t.Context(), slices.Concat(prompt, want), reading.Reading{}, func(row []float32) error {
		states = append(states, slices.Clone(row))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	e := b.engine(t, engine.Config{})
	s := greedy(t, e)
	if err := s.SetDrafting(openDrafters(t, e, true, oracles), slices.Concat(prompt, want)); err != nil {
		t.Fatal(err)
	}
	taken, seen := 0, 0
	rule := looker(func(v verify.View, node, depth int, _ token.ID) {
		if depth == 1 && v.Token(node) == want[taken] {
			seen++
			if d := cmp.Diff(states[len(prompt)+taken], v.State(node)); d != "" {
				t.Errorf("behind %d tokens: %s", taken, d)
			}
		}
	})
	rule.States = true
	if err := s.SetRule(rule); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), prompt); err != nil {
		t.Fatal(err)
	}
	for ; taken < n; taken++ {
		if _, err := s.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if seen < 3 {
		t.Errorf("the rule saw %d drafts", seen)
	}
}

// twins returns a model in which tokens 2i and 2i+1 have equal logits everywhere.
func twins(t *testing.T) *gguf.File {
	metadata, tensors := modeltest.Spec{Context: 300}.Parts(t)
	for i, v := range tensors {
		if v.Name != "output.weight" {
			continue
		}
		data := bytes.Clone(v.Data)
		row := len(data) / v.Shape[0]
		for id := 0; id < v.Shape[0]; id += 2 {
			copy(data[(id+1)*row:(id+2)*row], data[id*row:(id+1)*row])
		}
		tensors[i].Data = data
	}
	var file bytes.Buffer
	if err := gguf.Write(&file, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestEqualLogits expects the lowest id where two tokens have the largest logit, whatever was drafted: a
// draft of the other token is as likely and must be rejected.
func TestEqualLogits(t *testing.T) {
	const n = 60
	b := newBed(t, 1, twins(t))
	prompt := text(20)
	plain := draw(t, greedy(t, b.engine(t, engine.Config{})), n, prompt)
	want := slices.Clone(prompt)
	for _, c := range plain {
		if c.ID%2 != 0 {
			t.Fatalf("plain decoding draws %d, not %d", c.ID, c.ID-1)
		}
		want = append(want, c.ID)
	}
	// Behind each token the twin is drafted, alone, before the right token or behind it.
	for mode := range 3 {
		e := b.engine(t, engine.Config{})
		s := greedy(t, e)
		d := each(func() *drafter {
			return &drafter{draft: func(d *drafter, tree *method.Tree) {
				at := method.Root
				for i, id := range d.answer(len(d.h.IDs()))[:min(4, len(d.answer(len(d.h.IDs()))))] {
					ids := [][]token.ID{{id + 1}, {id + 1, id}, {id, id + 1}}[mode]
					parent := at
					for _, draft := range ids {
						if node := tree.Add(parent, draft, i, 0.9); draft == id {
							at = node
						}
					}
					if at == parent {
						return
					}
				}
			}}
		})
		if err := s.SetDrafting(openDrafters(t, e, true, d), want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(plain, draw(t, s, n, prompt)); diff != "" {
			t.Errorf("drafts of kind %d: %s", mode, diff)
		}
		if stats := s.SpecStats(); mode > 0 && stats.Rounds > n/2 {
			t.Errorf("drafts of kind %d: %d rounds", mode, stats.Rounds)
		}
	}
}

func greedy(t *testing.T, e *engine.Engine) *engine.Sequence {
	t.Helper()
	s, err := e.NewSequence(engine.Answer{Sampling: sample.Params{Temperature: 0, Seed: math.MaxUint64}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
