// Package speculate lets methods draft for the texts of an engine: it asks them for trees, chooses what runs, and keeps what they
// learn and what became of their drafts. It runs no rows.
package speculate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"grove/internal/compute"
	"grove/internal/engine/plan"
	"grove/internal/forest"
	"grove/internal/verify"
	"grove/method"
)

// maxDrafts bounds the drafts of a round, of which the planner runs the best.
const maxDrafts = 128

// Methods is a set of methods opened for an engine, with what they have learned. It is safe for concurrent
// use.
type Methods struct {
	*LearnedStore
	Infos []method.Info // read only
	rule  verify.Rule
	eager bool

	mu    sync.Mutex
	wants []float64 // by drafter: seconds of what it wants of a row, 0 where it was not measured
}

// New opens methods for the texts of one model, with what env offers. path names the file that keeps what they learn; "": none.
// Errors: methods with different rules; a rule whose needs the methods' drafts do not bring; [method.ErrNeeds].
func New(infos []method.Info, env method.Env, path string) (*Methods, error) {
	err := method.Check(infos, env)
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	d := &Methods{rule: verify.Match, Infos: slices.Clone(infos)}
	for _, i := range infos {
		if i.Rule.New != nil {
			d.rule = i.Rule
		}
	}
	if d.LearnedStore, err = NewLearned(d.Infos, env, path); err != nil {
		return nil, err
	}
	return d, d.CheckRule(d.rule)
}

// CheckRule returns an error where a rule needs what the drafts of the methods do not bring.
func (d *Methods) CheckRule(r verify.Rule) error {
	for _, i := range d.Infos {
		for _, n := range []struct {
			what          string
			needs, brings bool
		}{
			{"the distributions that drafts were drawn from", r.Needs.Distributions, i.Provides.Distributions},
			{"the draws that drafts stand for", r.Needs.WithReplacement, i.Provides.WithReplacement},
			{"draws without replacement", r.Needs.Distributions && !r.Needs.WithReplacement, !i.Provides.WithReplacement || i.Provides.Chain},
			{"drafts in a chain", r.Needs.Chain, i.Provides.Chain},
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
func (d *Methods) Eager() { d.eager = true }

// name returns the names of the methods.
func (d *Methods) name() string {
	var names []string
	for _, i := range d.Infos {
		names = append(names, i.Name)
	}
	return strings.Join(names, ",")
}

// Open opens the methods' drafters for a text of a salt, whose own trunk is given; nil: the answer is on record. The text drafts once
// [Text.Fit] has made room for its rounds.
func (d *Methods) Open(own method.Trunk, salt string, private bool, vocabulary int, experts plan.Mixture) (*Text, error) {
	texts, err := d.Of(salt, private)
	if err != nil {
		return nil, err
	}
	x := &Text{set: d, texts: texts, rates: method.NewRates(len(d.Infos) + 1)}
	x.SetRule(d.rule)
	n := len(d.Infos)
	x.out, x.spent, x.wants, x.gave, x.layers = make([]bool, n), make([]float64, n), make([]float64, n), make([]int, n+1), make([]forest.Layers, n)
	x.turns, x.credits = texts.Begin(x.rates)
	for i, m := range texts.Methods {
		drafter, err := m.NewDrafter(own)
		if err != nil {
			return nil, errors.Join(err, x.Close())
		}
		x.drafters = append(x.drafters, drafter)
		if c, ok := drafter.(method.Counter); ok {
			x.counters = append(x.counters, c)
		}
		x.turns[i].Begin()
		if !d.Infos[i].RunsRows {
			if x.out[i] = !x.credits[i].Begin() && !d.eager; x.out[i] {
				continue
			}
			x.quick = append(x.quick, int32(i))
		}
		if w, ok := drafter.(method.Wanter); ok {
			x.layers[i] = w.Wants().Rows.Hidden.Union(w.Wants().Prompt.Hidden)
			x.Wants = unite(x.Wants, w.Wants())
			x.Watched = true
			x.wants[i] = d.wantSeconds(i, w.Wants().Rows, vocabulary)
		}
	}
	x.Plan.Eager = d.eager
	x.Plan.Experts = experts
	return x, nil
}

// wantSeconds returns the seconds of what a drafter wants of a row. It is measured once.
func (d *Methods) wantSeconds(i int, want forest.Want, vocabulary int) float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.wants == nil {
		d.wants = make([]float64, len(d.Infos))
	}
	if d.wants[i] == 0 {
		d.wants[i] = compute.WantSeconds(want, vocabulary)
	}
	return d.wants[i]
}

// unite returns what two drafters want.
func unite(a, b method.Wants) method.Wants {
	both := func(a, b forest.Want) forest.Want {
		return forest.Want{
			Logits: a.Logits || b.Logits, Top: max(a.Top, b.Top), State: a.State || b.State, Hidden: a.Hidden.Union(b.Hidden), Embedding: a.Embedding || b.Embedding,
		}
	}
	w := method.Wants{Rows: both(a.Rows, b.Rows), Prompt: both(a.Prompt, b.Prompt), Probs: a.Probs || b.Probs, Last: max(a.Last, b.Last)}
	if a.Last == 0 && a.OfPrompt() || b.Last == 0 && b.OfPrompt() {
		w.Last = 0
	}
	if w.Rows.Hidden.Len() > 0 && w.Prompt.Hidden.Len() > 0 { // one set, so that the streams of any row are those of the same layers
		w.Rows.Hidden = w.Rows.Hidden.Union(w.Prompt.Hidden)
		w.Prompt.Hidden = w.Rows.Hidden
	}
	return w
}
