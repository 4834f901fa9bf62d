package engine

import (
	"context"
	"errors"
	"fmt"

	"grove/compute"
	"grove/engine/learned"
	"grove/engine/plan"
	"grove/forest"
	"grove/internal/cachefile"
	"grove/method"
	"grove/verify"
)

// maxDrafts bounds the drafts of a round, of which the planner runs the best.
const maxDrafts = 128

// Drafting is a set of methods opened for an engine, with what they have learned. It is safe for concurrent
// use.
type Drafting struct {
	*learned.Store
	infos []method.Info
	rule  verify.Rule
	eager bool
}

// LearnedPath names the file in the user's cache directory that keeps what methods have learned of this engine's model:
// by its form and a sample of its weights.
func (e *Engine) LearnedPath() (string, error) {
	return cachefile.Path("drafting", e.model.Info().Sample, compute.NumericsVersion)
}

// OpenDrafting opens methods for sequences of the engine, with what env offers besides it. Where the cost of steps is
// not known it is measured, roughly and in a few tenths of a second, and kept for later; steps correct it. Errors:
// methods with different rules; a rule whose needs the methods' drafts do not bring; [method.ErrNeeds].
func (e *Engine) OpenDrafting(ctx context.Context, infos []method.Info, env method.Env) (*Drafting, error) {
	if err := e.ensureCost(ctx); err != nil {
		return nil, err
	}
	d := &Drafting{rule: verify.Match}
	env.Vocabulary = e.vocab
	env.Target = e.Model()
	for _, i := range infos {
		if i.Rule.New == nil {
			i.Rule = verify.Match
		}
		if i.Rule.Name != verify.Match.Name && len(infos) > 1 {
			return nil, fmt.Errorf("engine: method %s verifies its drafts by the rule %s: it cannot work beside methods with other rules", i.Name, i.Rule.Name)
		}
		d.rule = i.Rule
		if i.Meets != nil {
			if err := i.Meets(env); err != nil {
				return nil, fmt.Errorf("engine: method %s needs %s: %w", i.Name, i.Needs, err)
			}
		}
		d.infos = append(d.infos, i)
	}
	path, _ := e.LearnedPath() // without a cache directory nothing is kept
	var err error
	if d.Store, err = learned.New(d.infos, env, path); err != nil {
		return nil, err
	}
	return d, d.CheckRule(d.rule)
}

// CheckRule returns an error where a rule needs what the drafts of the methods do not bring.
func (d *Drafting) CheckRule(r verify.Rule) error {
	for _, i := range d.infos {
		for _, n := range []struct {
			what          string
			needs, brings bool
		}{
			{"the distributions that drafts were drawn from", r.Needs.Distributions, i.Brings.Distributions},
			{"the draws that drafts stand for", r.Needs.Samples, i.Brings.Samples},
			{"drafts in a chain", r.Needs.Chain, i.Brings.Chain},
		} {
			if n.needs && !n.brings {
				return fmt.Errorf("engine: rule %s needs %s; method %s does not bring them", r.Name, n.what, i.Name)
			}
		}
	}
	return nil
}

// Eager makes sequences run every draft, whether it pays or not: what a proof of a method needs. It is called before
// the first sequence drafts.
func (d *Drafting) Eager() { d.eager = true }

// open opens the methods' drafters for a text of the given terms, whose own trunk is given; nil: the answer is on record.
func (d *Drafting) open(e *Engine, own method.Trunk, t Terms) (*drafts, error) {
	texts, err := d.Of(t.Salt, t.Private)
	if err != nil {
		return nil, err
	}
	sp := &drafts{all: d, texts: texts, tree: method.NewTree(maxDrafts, e.vocab), rates: method.NewRates(len(d.infos) + 1)}
	sp.follow(d.rule)
	sp.nodes, sp.rows = make([]forest.Node, maxDrafts), make([]int32, maxDrafts)
	for _, m := range texts.Methods {
		drafter, err := m.NewDrafter(own)
		if err != nil {
			return nil, errors.Join(err, sp.close())
		}
		sp.drafters = append(sp.drafters, drafter)
		if w, ok := drafter.(method.Wanter); ok {
			sp.wants = unite(sp.wants, w.Wants())
			sp.watched = true
		}
	}
	sp.turns = texts.Begin(sp.rates)
	for i := range sp.turns {
		sp.turns[i].Begin()
	}
	sp.plan.Eager = d.eager
	sp.plan.Experts = e.moe
	return sp, nil
}

// unite returns what two drafters want.
func unite(a, b method.Wants) method.Wants {
	both := func(a, b forest.Want) forest.Want {
		return forest.Want{
			Logits: a.Logits || b.Logits, Top: max(a.Top, b.Top), State: a.State || b.State, Hidden: a.Hidden.Union(b.Hidden),
		}
	}
	return method.Wants{Rows: both(a.Rows, b.Rows), Prompt: both(a.Prompt, b.Prompt), Probs: a.Probs || b.Probs}
}

// SpecStats is what drafting did for a sequence.
type SpecStats = plan.Stats
