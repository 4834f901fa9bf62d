package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"grove/internal/compute"
	"grove/internal/engine/plan"
	"grove/internal/engine/speculate"
	"grove/internal/engine/step"
	"grove/internal/fileio"
	"grove/internal/text/token"
	"grove/internal/verify"
	"grove/method"
	"grove/method/vocabulary"
)

// Drafting is a set of methods opened for an engine.
type Drafting = speculate.Methods

// Recorded is an answer on record.
type Recorded = speculate.Recorded

// SpecStats has the counts and times of a sequence's drafting.
type SpecStats = plan.Stats

// LearnedPath names the file in the user's cache directory that keeps what methods have learned of this engine's model:
// by its form and a sample of its weights.
func (e *Engine) LearnedPath() (string, error) {
	return fileio.CachePath("drafting", e.steps.Model.Info().SampleDigest, compute.NumericsVersion)
}

// OpenDrafting opens methods for sequences of the engine, with what env offers besides it. Where the cost of steps is
// not known it is measured, roughly and in a few tenths of a second, and kept for later; steps correct it. Errors: those of
// [drafting.New].
func (e *Engine) OpenDrafting(ctx context.Context, infos []method.Info, env method.Env) (*Drafting, error) {
	if err := e.ensureCost(ctx, false); err != nil {
		return nil, err
	}
	env.Vocabulary = e.vocab
	env.Target = e.Model()
	if err := e.chooseVocab(ctx, &env); err != nil {
		return nil, err
	}
	path, _ := e.LearnedPath() // without a cache directory nothing is kept
	return speculate.New(infos, env, path)
}

// chooseVocab lets methods choose how much of its vocabulary the draft model computes, where that is asked for: by the costs of both
// models, and by what was measured of the pair.
func (e *Engine) chooseVocab(ctx context.Context, env *method.Env) error {
	draft, ok := env.Draft.(grown)
	if !ok || env.DraftVocab != method.AutoVocab {
		return nil
	}
	if err := draft.e.ensureCost(ctx, true); err != nil {
		return err
	}
	target, cost := e.Cost(), draft.e.Cost()
	if target == nil || cost == nil {
		return nil // steps of one of them fail
	}
	known := vocabulary.Measured{Acceptance: vocabulary.Usual}
	if path, err := e.vocabularyPath(draft.e); err == nil {
		known = vocabulary.Load(path, vocabulary.Groups(draft.e.vocab))
	}
	env.VocabChoice = &method.VocabChoice{Groups: plan.NewHead(known.Acceptance, target, e.steps.Experts, cost).Groups, Counts: known.Counts}
	return nil
}

// vocabularyPath names the file of what was measured of the engine with a draft model.
func (e *Engine) vocabularyPath(draft *Engine) (string, error) {
	target, err := e.CostPath()
	if err != nil {
		return "", err
	}
	of, err := draft.CostPath()
	if err != nil {
		return "", err
	}
	return vocabulary.Path(target, of)
}

// Replay follows an answer on record as if the model had given it; see [drafting.Methods.Replay].
func (e *Engine) Replay(ctx context.Context, d *Drafting, c *Cost, r Recorded) (st SpecStats, plain time.Duration, err error) {
	return d.Replay(ctx, c, e.steps.Experts, e.vocab, r)
}

// SetDrafting makes the sequence draft by d from now on. It is called behind SetTerms and before the first Next. prediction is what the
// user expects of the answer, if anything.
func (s *Sequence) SetDrafting(d *Drafting, prediction []token.ID) error {
	if s.answer.Places.On() {
		return fmt.Errorf("engine: %w in a text that is drafted: its drafts are verified by all layers", ErrPlaces)
	}
	if s.e.Cost() == nil {
		return nil // steps of this model fail
	}
	if !s.e.beginDrafting() {
		return nil // as many texts draft as may
	}
	sp, err := d.Open(&s.grow, s.trunk.Terms.LearnsWith(), s.trunk.Terms.Private, s.e.vocab, s.e.steps.Experts)
	if err == nil {
		if err = sp.Fit(s.e.limits, s.e.Model().Size(), s.answer.Sampling); err != nil {
			err = errors.Join(err, sp.Close())
		}
	}
	if err != nil {
		s.e.texts.Add(-1)
		return err
	}
	sp.History.Prediction = prediction
	sp.History.Noise = method.Noise{Sampling: s.answer.Sampling, SampleIndex: s.answer.SampleIndex}
	if s.chain.Constrained() {
		sp.Tree.Legal = &s.round
	}
	s.drafts = sp
	return nil
}

// SetRemote makes the sequence take drafts that are made elsewhere, where it drafts by the method far; nil: there are none. It is called before
// the first Next.
func (s *Sequence) SetRemote(r method.Remote) {
	if s.drafts != nil {
		s.drafts.History.Remote = r
	}
}

// beginDrafting counts a text that drafts, and reports false where as many do as may.
func (e *Engine) beginDrafting() bool {
	if n := e.texts.Add(1); e.limits.Bytes > 0 && int(n) > e.limits.Texts {
		e.texts.Add(-1)
		return false
	}
	return true
}

// Drafts reports whether the sequence drafts.
func (s *Sequence) Drafts() bool { return s.drafts != nil }

// SetRule makes the sequence verify drafts by another rule than the methods' own, which the zero rule keeps. It returns an
// error where the drafts do not bring what the rule needs. A sequence that does not draft has no use for a rule.
func (s *Sequence) SetRule(r verify.Rule) error {
	if s.drafts == nil || r.New == nil {
		return nil
	}
	if err := s.drafts.Methods().CheckRule(r); err != nil {
		return err
	}
	s.drafts.SetRule(r)
	return nil
}

// SpecStats returns what drafting did so far; all zero without it.
func (s *Sequence) SpecStats() SpecStats {
	if s.drafts == nil {
		return SpecStats{}
	}
	return s.drafts.Stats
}

// draft draws at least one token: it lets the last token of the text run, and the drafts behind it that pay, in
// one step, and lets the rule say which of them become text.
func (s *Sequence) draft(ctx context.Context) error {
	sp, e := s.drafts, s.e
	start := time.Now()
	s.round.disown()
	if err := sp.Tell(s.seen()); err != nil {
		return err
	}
	e.steps.Costs.With(func(c *plan.Cost) { sp.Plan.Begin(c, len(s.text)) })
	s.round.start()
	s.trunk.Caller().Busy.Store(true)
	err := sp.Draft(ctx, e.Context()-1-len(s.text), s.round.forced())
	s.trunk.Caller().Busy.Store(false)
	if err != nil {
		return errors.Join(err, s.grow.Drop())
	}
	drafted := time.Now()
	wait := sp.WorkAhead(ctx)
	s.round.prepare()
	err = s.do(ctx, &s.round)
	wait()
	s.chain.Wait()
	if err != nil {
		return err
	}
	sp.Account(len(s.round.drawn), drafted.Sub(start), time.Since(drafted))
	return nil
}

// keepPrompt keeps what the rows of a prompt from a place on gave, where a drafter wants it.
func (s *Sequence) keepPrompt(st *step.Step, at, rows int) {
	sp := s.drafts
	if !sp.Wants.OfPrompt() {
		return
	}
	from := max(0, s.wantsFrom()-at)
	sp.Expect(len(s.text) - at - from)
	for i := from; i < rows; i++ {
		sp.Keep(st.Result(i), method.RowResult{
			ID: st.Placed(i).ID, At: s.place(at + i), Parent: int32(len(sp.Kept())) - 1, Node: method.Root, Accepted: true,
		})
	}
}

// wantsFrom returns the place of the first token of the text whose row gives what drafters want of a prompt.
func (s *Sequence) wantsFrom() int {
	if n := s.drafts.Wants.Last; n > 0 {
		return max(0, len(s.text)-n)
	}
	return 0
}

// place returns the place of a token of the text for drafters, which see a source before it.
func (s *Sequence) place(at int) int32 {
	if src := s.trunk.Source; src != nil {
		at += len(src.IDs)
	}
	return int32(at)
}

// keepRound keeps what the rows of a round gave, and the processed distributions behind them, where a drafter wants it.
func (s *Sequence) keepRound(st *step.Step) {
	sp := s.drafts
	if !sp.Watched {
		return
	}
	nodes := sp.Tree.Nodes()
	before := token.None
	if n := len(s.text); n > 1 {
		before = s.text[n-2]
	}
	sp.Clear(before)
	last := len(s.text) - 1
	root := method.RowResult{ID: s.text[last], At: s.place(last), Parent: -1, Node: method.Root, Accepted: true}
	s.keepRow(st, 0, method.Root, root)
	for _, c := range sp.Plan.Chosen() {
		if sp.Rows[c] == 0 {
			continue
		}
		r := method.RowResult{ID: nodes[c].ID, At: s.place(last + int(nodes[c].Depth)), Node: c}
		if p := nodes[c].Parent; p != method.Root {
			r.Parent = sp.Rows[p]
		}
		s.keepRow(st, int(sp.Rows[c]), int(c), r)
	}
	for _, node := range sp.Outcome.Accepted {
		sp.Kept()[sp.Rows[node]].Accepted = true
	}
}

func (s *Sequence) keepRow(st *step.Step, row, node int, r method.RowResult) {
	kept := s.drafts.Keep(st.Result(row), r)
	if !s.drafts.Wants.Probs {
		return
	}
	if p, err := s.round.Probs(node); err == nil { // a row behind a rejected draft may have none
		s.drafts.KeepProbs(kept, p)
	}
}
