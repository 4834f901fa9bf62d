// Package searchtest has models that are tables, for the tests of searches: what a program does with them can be worked out by hand.
package searchtest

import (
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"

	"grove/internal/engine"
	"grove/internal/model"
	"grove/internal/par"
	"grove/internal/sample"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
	"grove/search"
)

// A Toy is a model whose probabilities are a table. Its first tokens are Words; the others are never drawn. The empty word ends an answer.
type Toy struct {
	Engine *engine.Engine
	Model  model.Model
	Pool   *par.Pool
	Words  []string
	// Next returns the probabilities of the words behind a beginning of an answer; nil: they are the model's own, of all its tokens.
	Next func(answer string) []float64
}

// Prompt is the prompt of a model's problems.
var Prompt = []token.ID{3, 1, 2}

// New returns a model for so many sequences at a time.
func New(tb testing.TB, slots int, words []string, next func(answer string) []float64) *Toy {
	tb.Helper()
	t := Of(tb, slots, modeltest.Spec{Context: 300})
	t.Words, t.Next = words, next
	return t
}

// Of returns a model of a kind with its own probabilities, for so many sequences at a time. Its words are the numbers of its tokens.
func Of(tb testing.TB, slots int, spec modeltest.Spec) *Toy {
	tb.Helper()
	t := &Toy{Pool: par.New(1)}
	tb.Cleanup(t.Pool.Close)
	var err error
	if t.Model, err = model.Open(spec.File(tb), t.Pool, model.Options{}); err != nil {
		tb.Fatal(err)
	}
	if t.Engine, err = engine.New(t.Model, t.Pool, engine.Config{Seqs: slots}); err != nil {
		tb.Fatal(err)
	}
	for id := range t.Model.Info().Vocabulary {
		t.Words = append(t.Words, strconv.Itoa(id)+" ")
	}
	return t
}

// Text returns the text of words.
func (t *Toy) Text(ids []token.ID) string {
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(t.Words[id])
	}
	return b.String()
}

// Answer returns how a sequence draws from the table.
func (t *Toy) Answer(temperature float32, p search.Problem) engine.Answer {
	a := engine.Answer{
		Sampling: sample.Params{Temperature: temperature, Seed: p.Seed}, SampleIndex: p.Index, PostSampling: temperature > 0,
	}
	if t.Next != nil {
		a.Stages = []sample.Stage{&table{toy: t, states: []string{""}, known: map[string]sample.StageState{}}}
	}
	return a
}

// Guide makes the model a guide of a problem, all of whose guides draw from its table.
func (t *Toy) Guide(temperature float32, p search.Problem) search.Problem {
	p.Guides = append(p.Guides, search.Guide{Name: "toy", Engine: t.Engine, Same: true})
	p.Answer = func() engine.Answer { return t.Answer(temperature, p) }
	return p
}

// Problem completes a problem of the model: it has a sequence behind a prompt, whose log-probabilities are those of the table. The
// function closes that, and finds what the search has left open.
func (t *Toy) Problem(tb testing.TB, temperature float32, p search.Problem) (full *search.Problem, done func()) {
	tb.Helper()
	a := t.Answer(temperature, p)
	p.Combiner, p.Prompt = &search.Combiner{}, Prompt
	a.Stages = append(a.Stages, p.Combiner.Stage())
	s, err := t.Engine.NewSequence(a)
	if err == nil {
		err = s.Append(tb.Context(), p.Prompt)
	}
	if err != nil {
		tb.Fatal(err)
	}
	p.First, p.Text, p.Greedy = s, t.Text, temperature == 0
	p.Piece = func(dst []byte, id token.ID, _ bool) ([]byte, error) { return append(dst, t.Words[id]...), nil }
	p.Slots, _ = t.Engine.Slots()
	p.Layers = t.Engine.Model().Size().Layers
	p.Ends = func(id token.ID) bool { return t.Words[id] == "" }
	p.Ender = func() func(engine.SampledToken) bool {
		return func(d engine.SampledToken) bool { return p.Ends(d.ID) }
	}
	return &p, func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
		if l := t.Engine.Load(); l.Open != 0 || l.Admitted != 0 || l.Pages.Used != 0 {
			tb.Errorf("behind the search there are %+v", l)
		}
	}
}

// Run opens a program and lets it search.
func (t *Toy) Run(tb testing.TB, program string, temperature float32, p search.Problem) (*search.Result, error) {
	tb.Helper()
	opened, err := search.Open(program)
	if err != nil {
		tb.Fatal(err)
	}
	full, done := t.Problem(tb, temperature, p)
	defer done()
	if err := opened.Check(full); err != nil {
		return nil, err
	}
	return opened.Run(tb.Context(), full)
}

// table is the stage that puts the table in place of the model's logits. It serves all forks of a sequence.
type table struct {
	toy    *Toy
	mu     sync.Mutex
	states []string // the answers behind which they stand
	known  map[string]sample.StageState
}

// Start implements [sample.Stage].
func (t *table) Start([]token.ID) sample.StageState { return 0 }

// Next implements [sample.Stage].
func (t *table) Next(s sample.StageState, id token.ID) sample.StageState {
	t.mu.Lock()
	defer t.mu.Unlock()
	answer := t.states[s] + t.toy.Words[id]
	if n, ok := t.known[answer]; ok {
		return n
	}
	n := sample.StageState(len(t.states))
	t.states, t.known[answer] = append(t.states, answer), n
	return n
}

// Apply implements [sample.Stage].
func (t *table) Apply(s sample.StageState, logits []float32) {
	t.mu.Lock()
	answer := t.states[s]
	t.mu.Unlock()
	p := t.toy.Next(answer)
	for id := range logits {
		if logits[id] = float32(math.Inf(-1)); id < len(p) && p[id] > 0 {
			logits[id] = float32(math.Log(p[id]))
		}
	}
}
