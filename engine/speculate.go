package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"grove/compute"
	"grove/engine/plan"
	"grove/forest"
	"grove/method"
	"grove/text/token"
	"grove/verify"
)

// maxGuesses bounds the guesses of a round, of which the planner runs the best.
const maxGuesses = 128

// Drafting is a set of methods opened for an engine, with what they have learned. It is safe for concurrent
// use.
type Drafting struct {
	infos   []method.Info
	methods []method.Method
	rule    verify.Rule
	eager   bool
	path    string // of the file that keeps what was learned; "": there is no place for it

	mu     sync.Mutex
	rates  *method.Rates
	turns  []plan.Turn // of methods that take time
	taught bool        // since it was saved
}

// OpenDrafting opens methods for sequences of the engine, with what env offers besides it. Where the cost of
// steps is not known it is measured, roughly and in a few tenths of a second, and kept for later; steps correct it.
func (e *Engine) OpenDrafting(ctx context.Context, infos []method.Info, env method.Env) (*Drafting, error) {
	if err := e.ensureCost(ctx); err != nil {
		return nil, err
	}
	d := &Drafting{infos: infos, rule: verify.Match, rates: method.NewRates(len(infos)), turns: make([]plan.Turn, len(infos))}
	d.path, _ = e.LearnedPath() // without a cache directory nothing is kept
	env.Vocabulary = e.vocab
	for _, i := range infos {
		if i.Rule != method.Match && len(infos) > 1 {
			return nil, fmt.Errorf("engine: method %s judges its guesses by a rule of its own: it cannot work beside others", i.Name)
		}
		if i.Rule != method.Match {
			rule, err := verify.Find(string(i.Rule))
			if err != nil {
				return nil, fmt.Errorf("engine: method %s: %w", i.Name, err)
			}
			if rule.Needs.Samples {
				return nil, fmt.Errorf("engine: method %s: rule %s needs drafts that are drawn with replacement; a tree does not count equal draws", i.Name, rule.Name)
			}
			d.rule = rule
		}
		m, err := i.Open(env)
		if errors.Is(err, method.ErrNeeds) {
			return nil, fmt.Errorf("engine: method %s needs %s: %w", i.Name, i.Needs, err)
		}
		if err != nil {
			return nil, fmt.Errorf("engine: method %s: %w", i.Name, err)
		}
		d.methods = append(d.methods, m)
	}
	return d, nil
}

// Eager makes sequences run every guess, whether it pays or not: what a proof of a method wants. It is called before
// the first sequence drafts.
func (d *Drafting) Eager() { d.eager = true }

// Names returns the methods' names.
func (d *Drafting) Names() []string {
	names := make([]string, len(d.infos))
	for i := range d.infos {
		names[i] = d.infos[i].Name
	}
	return names
}

// SpecStats is what drafting did for a sequence.
type SpecStats struct {
	Rounds   int                // steps that drew tokens
	Tokens   int                // drawn by these
	Drafted  int                // guesses that were run
	Accepted int                // of these, right
	Drafting time.Duration      // making guesses
	Stepping time.Duration      // of the rounds, drafting aside
	Run, Hit [plan.MaxDraft]int // by rank of score in its round: guesses that were run, and those that were right
}

// Since returns what drafting did after the sequence's earlier figures were taken.
func (s SpecStats) Since(earlier SpecStats) SpecStats {
	s.Rounds -= earlier.Rounds
	s.Tokens -= earlier.Tokens
	s.Drafted -= earlier.Drafted
	s.Accepted -= earlier.Accepted
	s.Drafting -= earlier.Drafting
	s.Stepping -= earlier.Stepping
	for i := range s.Run {
		s.Run[i] -= earlier.Run[i]
		s.Hit[i] -= earlier.Hit[i]
	}
	return s
}

// Add adds the figures of another sequence.
func (s *SpecStats) Add(o SpecStats) {
	s.Rounds += o.Rounds
	s.Tokens += o.Tokens
	s.Drafted += o.Drafted
	s.Accepted += o.Accepted
	s.Drafting += o.Drafting
	s.Stepping += o.Stepping
	for i := range o.Run {
		s.Run[i] += o.Run[i]
		s.Hit[i] += o.Hit[i]
	}
}

// speculation is a sequence's part in drafting.
type speculation struct {
	all      *Drafting
	drafters []method.Drafter
	watchers []method.Watcher
	turns    []plan.Turn
	top      int // logits of a row that watchers want
	tree     *method.Tree
	rates    *method.Rates
	plan     plan.Planner
	begun    bool
	fresh    []token.ID // tokens of the text that drafters have not been told
	prompt   int        // how many of the first of these no draw gave; 0: all

	rank     []int32 // of chosen guesses by score, by place in the tree; -1: not run
	nodes    []forest.Node
	outcomes []method.Outcome
	stats    SpecStats

	acceptor verify.Acceptor
	view     view
	outcome  verify.Outcome
}

// Speculate makes the sequence draft by d from now on. It is called before the first Next. prediction is what the
// user expects of the answer, if anything.
func (s *Sequence) Speculate(d *Drafting, prediction []token.ID) error {
	if s.e.Cost() == nil {
		return nil // steps of this model fail
	}
	sp, err := d.speculation(s.e)
	if err != nil {
		return err
	}
	sp.fresh = append(sp.fresh, s.text...)
	sp.view.s = s
	s.spec, s.prediction = sp, prediction
	return nil
}

// speculation opens the methods' drafters for a text of the engine's model.
func (d *Drafting) speculation(e *Engine) (*speculation, error) {
	sp := &speculation{all: d, tree: method.NewTree(maxGuesses, e.vocab), rates: method.NewRates(len(d.methods)), acceptor: d.rule.New()}
	sp.rank, sp.nodes = make([]int32, maxGuesses), make([]forest.Node, maxGuesses)
	for _, m := range d.methods {
		drafter, err := m.NewDrafter()
		if err != nil {
			return nil, errors.Join(err, sp.close())
		}
		sp.drafters = append(sp.drafters, drafter)
		if w, ok := drafter.(method.Watcher); ok {
			sp.watchers = append(sp.watchers, w)
			sp.top = max(sp.top, w.Top())
		}
	}
	d.mu.Lock()
	sp.rates.Carry(d.rates)
	sp.turns = slices.Clone(d.turns)
	d.mu.Unlock()
	for i := range sp.turns {
		sp.turns[i].Begin()
	}
	sp.plan.Eager = d.eager
	sp.plan.Experts = e.moe
	return sp, nil
}

// Drafts reports whether the sequence drafts.
func (s *Sequence) Drafts() bool { return s.spec != nil }

// Typical makes the sequence accept guesses that are likely enough, which is lossy above temperature 0.
func (s *Sequence) Typical() {
	if s.spec != nil {
		s.spec.acceptor = verify.Typical.New()
	}
}

// SpecStats returns what drafting did so far; all zero without it.
func (s *Sequence) SpecStats() SpecStats {
	if s.spec == nil {
		return SpecStats{}
	}
	return s.spec.stats
}

func (sp *speculation) close() (err error) {
	for _, d := range sp.drafters {
		if c, ok := d.(method.Closer); ok {
			err = errors.Join(err, c.Close())
		}
	}
	sp.all.mu.Lock()
	sp.all.rates.Merge(sp.rates)
	if sp.stats.Rounds > 0 {
		sp.all.taught, sp.all.turns = true, sp.turns
	}
	sp.all.mu.Unlock()
	return err
}

// tell gives the drafters the tokens that are new to them; t is the text, where it begins.
func (sp *speculation) tell(t method.Text) error {
	drawn := sp.fresh
	if !sp.begun {
		t.Prompt, drawn = sp.fresh, nil
		if sp.prompt > 0 {
			t.Prompt, drawn = sp.fresh[:sp.prompt], sp.fresh[sp.prompt:]
		}
	}
	for i, d := range sp.drafters {
		if !sp.begun {
			if err := d.Begin(t); err != nil {
				return sp.fault(i, err)
			}
		}
		if len(drawn) > 0 {
			d.Extend(drawn)
		}
	}
	sp.begun, sp.fresh = true, sp.fresh[:0]
	return nil
}

// drew notes a token that was drawn without a round, the first one of an answer among them.
func (sp *speculation) drew(id token.ID) {
	if !sp.begun && sp.prompt == 0 {
		sp.prompt = len(sp.fresh)
	}
	sp.fresh = append(sp.fresh, id)
}

func (sp *speculation) fault(drafter int, err error) error {
	return fmt.Errorf("engine: method %s: %w", sp.all.infos[drafter].Name, err)
}

// draft fills the tree with what may follow, room tokens at most, and returns the guesses to run.
func (sp *speculation) draft(ctx context.Context, room int) ([]int32, error) {
	sp.tree.Floor, sp.tree.Throughput = sp.plan.Least(), sp.plan.Throughput.Rate()
	if sp.plan.Eager {
		sp.tree.Throughput = 0 // time is worth nothing
	}
	sp.tree.Reset(min(room, maxGuesses), sp.rates)
	for i := range sp.drafters {
		if sp.all.infos[i].Kind != method.KindModel {
			if err := sp.ask(ctx, i); err != nil {
				return nil, err
			}
		}
	}
	chosen, gain := sp.plan.Choose(sp.tree)
	for i := range sp.drafters {
		if sp.all.infos[i].Kind != method.KindModel || !sp.plan.Eager && !sp.turns[i].Due(gain) {
			continue
		}
		start, pace := time.Now(), sp.plan.Throughput.Rate()
		if err := sp.ask(ctx, i); err != nil {
			return nil, err
		}
		seconds, before := time.Since(start).Seconds(), gain
		chosen, gain = sp.plan.Choose(sp.tree)
		sp.turns[i].Judge(gain - before - pace*seconds)
	}
	return chosen, nil
}

// ask lets a drafter add to the tree.
func (sp *speculation) ask(ctx context.Context, i int) error {
	sp.tree.Turn(i)
	if err := sp.drafters[i].Draft(ctx, sp.tree); err != nil {
		return sp.fault(i, err)
	}
	return nil
}

// draw draws at least one token: it lets the last token of the text run, and the guesses behind it that pay, in
// one step, draws from the model behind each row that the text reaches, and walks to the guess that was drawn.
// The tokens are those of plain decoding: the draw behind a row depends on the row's logits and index alone (N5).
func (s *Sequence) draw(ctx context.Context) error {
	sp, e := s.spec, s.e
	start := time.Now()
	s.settle()
	if err := sp.tell(method.Text{Prediction: s.prediction, Sampler: s.chain, SampleIndex: s.answer.SampleIndex}); err != nil {
		return err
	}
	e.costs.Lock()
	sp.plan.Begin(e.costs.cost, len(s.text))
	e.costs.Unlock()
	var err error
	if s.chosen, err = sp.draft(ctx, e.Context()-1-len(s.text)); err != nil {
		return err
	}
	drafted := time.Now()
	if err := s.compute(ctx, true); err != nil {
		return err
	}
	sp.account(s.chosen, len(s.queue), drafted.Sub(start), time.Since(drafted))
	return nil
}

// placeRound adds the rows of a round to the step. Guesses for which there is no room are left out.
func (s *Sequence) placeRound() error {
	e, sp := s.e, s.spec
	want := forest.Want{Logits: true, Top: sp.top}
	root, err := e.exec.Step.Add(forest.Row{Seq: s.seq, Parent: forest.Trunk, ID: s.text[len(s.text)-1], Want: want})
	if err != nil {
		return err
	}
	s.root = root
	guesses := sp.tree.Nodes()
	for i := range guesses {
		sp.nodes[i] = forest.Trunk
	}
	for _, c := range s.chosen {
		parent := root
		if p := guesses[c].Parent; p != method.Root {
			parent = sp.nodes[p]
		}
		if parent == forest.Trunk {
			continue // its parent was left out
		}
		node, err := e.exec.Step.Add(forest.Row{Seq: s.seq, Parent: parent, ID: guesses[c].ID, Want: want})
		if err == nil {
			sp.nodes[c] = node
		}
	}
	return nil
}

// watch shows a round's rows, which begin at first in the step, to the drafters that learn from them.
func (sp *speculation) watch(x *compute.Exec, first int) {
	if len(sp.watchers) == 0 {
		return
	}
	for i := range sp.outcomes {
		sp.outcomes[i].Top = x.Result(first + i).Top
	}
	for _, w := range sp.watchers {
		w.Watch(sp.outcomes)
	}
}

// account keeps the figures of a round.
func (sp *speculation) account(chosen []int32, tokens int, drafting, stepping time.Duration) {
	st := &sp.stats
	st.Rounds++
	st.Tokens += tokens
	st.Drafted += len(sp.outcomes) - 1
	st.Accepted += tokens - 1
	st.Drafting += drafting
	st.Stepping += stepping
	sp.plan.Throughput.Add(tokens, (drafting + stepping).Seconds())
	if len(chosen) == 0 {
		return
	}
	for i := range sp.rank {
		sp.rank[i] = -1
	}
	for rank, place := range sp.plan.Order()[:len(chosen)] {
		sp.rank[place] = int32(rank)
		st.Run[rank]++
	}
	at := method.Root
	for _, o := range sp.outcomes[1:] {
		if !o.Accepted {
			continue
		}
		child, ok := sp.tree.Child(at, o.ID)
		if !ok {
			break
		}
		if r := sp.rank[child]; r >= 0 {
			st.Hit[r]++
		}
		at = child
	}
}
