package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"grove/compute"
	"grove/engine/learned"
	"grove/engine/plan"
	"grove/forest"
	"grove/kv"
	"grove/method"
	"grove/text/token"
	"grove/verify"
)

// drafts is a sequence's part in drafting: its drafters, the tree of the round, and the figures.
type drafts struct {
	all      *Drafting
	texts    *learned.Texts // those that it learns with
	drafters []method.Drafter
	turns    []plan.Turn
	wants    method.Wants
	watched  bool // a drafter wants something
	rule     verify.Rule
	acceptor verify.Acceptor
	tree     *method.Tree
	rates    *method.Rates
	plan     plan.Planner
	stats    SpecStats

	history method.History
	begun   bool
	told    int                // tokens of the text that drafters know
	before  token.ID           // the token before that of the round's first row
	kept    []method.RowResult // of the last round, or of a prompt, for the drafters
	store   compute.Kept
	probs   []float32

	nodes   []forest.Node // by place in the tree; Trunk: not run
	rows    []int32       // the numbers of their rows
	outcome verify.Outcome
}

// Speculate makes the sequence draft by d from now on. It is called behind Schedule and before the first Next. prediction is what the
// user expects of the answer, if anything.
func (s *Sequence) Speculate(d *Drafting, prediction []token.ID) error {
	if s.e.Cost() == nil {
		return nil // steps of this model fail
	}
	sp, err := d.open(s.e, own{s}, s.terms)
	if err != nil {
		return err
	}
	sp.history.Prediction = prediction
	sp.history.Noise = method.Noise{Sampling: s.answer.Sampling, SampleIndex: s.answer.SampleIndex}
	if s.chain.Constrained() {
		sp.tree.Legal = &s.round
	}
	s.drafts = sp
	return nil
}

// Drafts reports whether the sequence drafts.
func (s *Sequence) Drafts() bool { return s.drafts != nil }

// Accept makes the sequence verify drafts by another rule than the methods' own, which the zero rule keeps. It returns an
// error where the drafts do not bring what the rule needs. A sequence that does not draft has no use for a rule.
func (s *Sequence) Accept(r verify.Rule) error {
	if s.drafts == nil || r.New == nil {
		return nil
	}
	if err := s.drafts.all.CheckRule(r); err != nil {
		return err
	}
	s.drafts.follow(r)
	return nil
}

// follow sets the rule that the drafts are verified by.
func (sp *drafts) follow(r verify.Rule) {
	sp.rule, sp.acceptor = r, r.New()
}

// SpecStats returns what drafting did so far; all zero without it.
func (s *Sequence) SpecStats() SpecStats {
	if s.drafts == nil {
		return SpecStats{}
	}
	return s.drafts.stats
}

func (sp *drafts) close() (err error) {
	for _, d := range sp.drafters {
		if c, ok := d.(method.Closer); ok {
			err = errors.Join(err, c.Close())
		}
	}
	sp.texts.End(sp.rates, sp.turns, sp.stats.Rounds > 0)
	return err
}

// tell gives the drafters what is new: the text's tokens, and what the last round's rows gave.
func (sp *drafts) tell(text []token.ID, prompt int) error {
	if !sp.begun {
		sp.history.Begin(text[:prompt], prompt)
		for i, d := range sp.drafters {
			if err := d.Begin(&sp.history); err != nil {
				return sp.fault(i, err)
			}
		}
		sp.begun, sp.told = true, prompt
	}
	sp.history.Extend(text)
	if sp.told < len(text) || len(sp.kept) > 0 {
		run := method.Run{IDs: text[sp.told:], Before: sp.before, Rows: sp.kept}
		for _, d := range sp.drafters {
			d.Committed(run)
		}
	}
	sp.told, sp.kept = len(text), sp.kept[:0]
	return nil
}

func (sp *drafts) fault(drafter int, err error) error {
	return fmt.Errorf("engine: method %s: %w", sp.all.infos[drafter].Name, err)
}

// forcedClass is the class of forced drafts; their source is behind those of the drafters.
const forcedClass = 0

// draft fills the tree with what may follow, room tokens at most, and lets the planner choose. forced is what must follow.
func (sp *drafts) draft(ctx context.Context, room int, forced []token.ID) error {
	sp.tree.Floor, sp.tree.Throughput = sp.plan.Least(), sp.plan.Throughput.Rate()
	if sp.plan.Eager {
		sp.tree.Throughput = 0 // time is worth nothing
	}
	sp.tree.Reset(min(room, maxDrafts), sp.rates)
	sp.tree.Turn(len(sp.drafters))
	for i, at := 0, method.Root; i < len(forced); i++ {
		if at = sp.tree.Add(at, forced[i], forcedClass, 1); at == method.Root {
			break
		}
	}
	for i := range sp.drafters {
		if !sp.all.infos[i].Passes {
			if err := sp.ask(ctx, i); err != nil {
				return err
			}
		}
	}
	gain := sp.plan.Choose(sp.tree)
	for i := range sp.drafters {
		if !sp.all.infos[i].Passes || !sp.plan.Eager && !sp.turns[i].Due(gain) {
			continue
		}
		start, throughput := time.Now(), sp.plan.Throughput.Rate()
		if err := sp.ask(ctx, i); err != nil {
			return err
		}
		seconds, before := time.Since(start).Seconds(), gain
		gain = sp.plan.Choose(sp.tree)
		sp.turns[i].Judge(gain - before - throughput*seconds)
	}
	return nil
}

// ask lets a drafter add to the tree. Where it runs out of room or pages, what it has drafted stands.
func (sp *drafts) ask(ctx context.Context, i int) error {
	sp.tree.Turn(i)
	err := sp.drafters[i].Draft(ctx, sp.tree)
	if err == nil || errors.Is(err, method.ErrLost) || errors.Is(err, forest.ErrScratch) || errors.Is(err, kv.ErrFull) {
		return nil
	}
	return sp.fault(i, err)
}

// draft draws at least one token: it lets the last token of the text run, and the drafts behind it that pay, in
// one step, and lets the rule say which of them become text.
func (s *Sequence) draft(ctx context.Context) error {
	sp, e := s.drafts, s.e
	start := time.Now()
	if err := sp.tell(s.text, s.prompt); err != nil {
		return err
	}
	e.costs.With(func(c *plan.Cost) { sp.plan.Begin(c, len(s.text)) })
	s.round.start()
	s.caller.Busy.Store(true)
	err := sp.draft(ctx, e.Context()-1-len(s.text), s.round.forced())
	s.caller.Busy.Store(false)
	if err != nil {
		return errors.Join(err, own{s}.Drop())
	}
	drafted := time.Now()
	wait := method.WorkAhead(ctx, sp.drafters, sp.all.infos)
	s.round.prepare()
	err = s.do(ctx, &s.round)
	wait()
	s.chain.Wait()
	if err != nil {
		return err
	}
	sp.account(len(s.round.drawn), drafted.Sub(start), time.Since(drafted))
	return nil
}

// account keeps the figures of a round that gave so many tokens.
func (sp *drafts) account(tokens int, drafting, stepping time.Duration) {
	sp.plan.Throughput.Add(tokens, (drafting + stepping).Seconds())
	sp.stats.Count(&sp.plan, tokens, sp.outcome.Accepted, func(place int32) bool { return sp.rows[place] > 0 }, drafting, stepping)
}

// keep copies what the current trunk's row of a number gave.
func (sp *drafts) keep(st *step, row int, r method.RowResult) *method.RowResult {
	if len(sp.kept) == 0 {
		sp.store.Reset()
	}
	own := *st.result(row)
	if !sp.wants.Rows.Logits && !sp.wants.Prompt.Logits {
		own.Logits = nil // the rule's
	}
	r.Result = sp.store.Keep(&own)
	sp.kept = append(sp.kept, r)
	return &sp.kept[len(sp.kept)-1]
}

// keepPrompt keeps what the rows of a prompt gave, where a drafter wants it.
func (sp *drafts) keepPrompt(st *step, rows int) {
	w := sp.wants.Prompt
	if w.Top == 0 && !w.State && !w.Logits && w.Hidden.Len() == 0 {
		return
	}
	for i := range rows {
		sp.keep(st, i, method.RowResult{ID: st.placed(i).ID, Parent: int32(len(sp.kept)) - 1, Node: method.Root, Accepted: true})
	}
}

// keepRound keeps what the rows of a round gave, and the processed distributions behind them, where a drafter wants it.
func (s *Sequence) keepRound(st *step) {
	sp := s.drafts
	if !sp.watched {
		return
	}
	nodes := sp.tree.Nodes()
	sp.kept = sp.kept[:0]
	sp.before = token.None
	if n := len(s.text); n > 1 {
		sp.before = s.text[n-2]
	}
	root := method.RowResult{ID: s.text[len(s.text)-1], Parent: -1, Node: method.Root, Accepted: true}
	s.keepRow(st, 0, method.Root, root)
	for _, c := range sp.plan.Chosen() {
		if sp.rows[c] == 0 {
			continue
		}
		r := method.RowResult{ID: nodes[c].ID, Node: c}
		if p := nodes[c].Parent; p != method.Root {
			r.Parent = sp.rows[p]
		}
		s.keepRow(st, int(sp.rows[c]), int(c), r)
	}
	for _, node := range sp.outcome.Accepted {
		sp.kept[sp.rows[node]].Accepted = true
	}
}

func (s *Sequence) keepRow(st *step, row, node int, r method.RowResult) {
	kept := s.drafts.keep(st, row, r)
	if !s.drafts.wants.Probs {
		return
	}
	if p, err := s.round.Probs(node); err == nil { // a row behind a rejected draft may have none
		s.drafts.probs = s.drafts.probs[:0]
		for _, v := range p {
			s.drafts.probs = append(s.drafts.probs, float32(v))
		}
		kept.Probs = s.drafts.store.Copy(s.drafts.probs)
	}
}
