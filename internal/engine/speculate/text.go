package speculate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"grove/internal/compute"
	"grove/internal/engine/plan"
	"grove/internal/forest"
	"grove/internal/kv"
	"grove/internal/text/token"
	"grove/internal/verify"
	"grove/method"
)

// Text holds the drafters, the tree of the round, and the figures of one text. It is for one goroutine.
type Text struct {
	Wants    method.Wants // of all drafters together
	Watched  bool         // a drafter wants something
	Rule     verify.Rule
	Acceptor verify.Acceptor
	Tree     *method.Tree
	Plan     plan.Planner
	Stats    plan.Stats
	History  method.History

	// By place in the tree: the node of a draft that runs, and the number of its row; [forest.Trunk] and 0: it does not run.
	Nodes   []forest.Node
	Rows    []int32
	Outcome verify.Outcome

	set      *Methods
	texts    *LearnedTexts // the texts of one salt, which it learns with
	drafters []method.Drafter
	counters []method.Counter // those of them that run rows
	turns    []plan.Backoff
	credits  []plan.Credit
	quick    []int32            // drafters that run no rows and take part, the quickest first
	out      []bool             // by drafter: it takes no part in the text
	spent    []float64          // by drafter: seconds of a round that is timed
	wants    []float64          // by drafter: seconds of what it wants of a row
	layers   []forest.Layers    // by drafter: those behind which it wants the stream
	picked   []method.RowResult // the rows of an update, with the layers that one drafter wants
	streams  [][]float32        // of picked
	gave     []int              // by drafter: tokens of the round
	rounds   int                // that were drafted
	rates    *method.Rates

	model  method.Size
	drafts int         // of a round that run
	needs  MemoryBytes // of its rounds, at most

	begun  bool
	told   int                // tokens of the text that drafters know
	before token.ID           // the token before that of the round's first row
	kept   []method.RowResult // of the last round, or of a prompt, for the drafters
	store  compute.OutputArena
	extra  []method.ExtraResult // of the last round's extra rows, for the drafters that added them
	extras compute.OutputArena
	probs  []float32
}

// Methods returns the methods that draft.
func (x *Text) Methods() *Methods { return x.set }

// Restart makes the drafters begin anew with the text as it is.
func (x *Text) Restart() { x.begun = false }

// SetRule sets the rule that the drafts are verified by.
func (x *Text) SetRule(r verify.Rule) {
	x.Rule, x.Acceptor = r, r.New()
}

// Close closes the drafters, and hands over what the text has learned.
func (x *Text) Close() (err error) {
	for _, d := range x.drafters {
		if c, ok := d.(method.Closer); ok {
			err = errors.Join(err, c.Close())
		}
	}
	for _, i := range x.quick {
		x.credits[i].End(x.Plan.Throughput.Rate())
	}
	x.texts.End(x.rates, x.turns, x.credits, x.Stats.Rounds > 0)
	return err
}

// Tell gives the drafters what is new: the text's tokens, and what the last round's rows gave.
func (x *Text) Tell(text []token.ID, prompt int) error {
	if !x.begun {
		x.History.Begin(text[:prompt], prompt)
		for i := range x.drafters {
			if err := x.begin(i); err != nil {
				return err
			}
		}
		x.begun, x.told = true, prompt
	}
	x.History.Extend(text)
	if x.told < len(text) || len(x.kept) > 0 {
		run := method.Update{IDs: text[x.told:], Before: x.before, Rows: x.kept}
		for i := range x.drafters {
			x.commit(i, run)
		}
	}
	x.told, x.kept, x.extra = len(text), x.kept[:0], x.extra[:0]
	x.shrink()
	return nil
}

// begin lets a drafter read the text.
func (x *Text) begin(i int) error {
	if x.out[i] {
		return nil
	}
	start := time.Now()
	if err := x.drafters[i].Begin(&x.History); err != nil {
		return x.fault(i, err)
	}
	x.credits[i].Read(time.Since(start).Seconds())
	return nil
}

// commit tells a drafter what was committed.
func (x *Text) commit(i int, run method.Update) {
	if x.out[i] {
		return
	}
	run.Rows, run.Extra = x.pick(run.Rows, x.layers[i]), x.extraOf(i)
	if !x.timed() {
		x.drafters[i].Committed(run)
		return
	}
	start := time.Now()
	x.drafters[i].Committed(run)
	x.spent[i] = time.Since(start).Seconds()
}

// pick returns rows with the streams behind the layers that a drafter wants, of those that all drafters want.
func (x *Text) pick(rows []method.RowResult, layers forest.Layers) []method.RowResult {
	all := x.Wants.Rows.Hidden.Union(x.Wants.Prompt.Hidden)
	if layers == all || len(rows) == 0 {
		return rows
	}
	x.picked, x.streams = append(x.picked[:0], rows...), slices.Grow(x.streams[:0], len(rows)*layers.Len())
	for i := range x.picked {
		r := &x.picked[i]
		first, at := len(x.streams), 0
		for l := 0; at < len(r.Hidden); l++ {
			if !all.Has(l) {
				continue
			}
			if layers.Has(l) {
				x.streams = append(x.streams, r.Hidden[at])
			}
			at++
		}
		r.Hidden = x.streams[first:len(x.streams):len(x.streams)]
	}
	return x.picked
}

func (x *Text) fault(drafter int, err error) error {
	return fmt.Errorf("engine: method %s: %w", x.set.Infos[drafter].Name, err)
}

// forcedClass is the class of forced drafts; their source is behind those of the drafters.
const forcedClass = 0

// Draft fills the tree with what may follow, room tokens at most, and lets the planner choose. forced is what must follow.
func (x *Text) Draft(ctx context.Context, room int, forced []token.ID) error {
	x.Plan.Spent = 0
	x.Tree.Floor, x.Tree.Throughput = x.Plan.Least(), x.Plan.Throughput.Rate()
	if x.Tree.Steps = nil; x.Plan.Eager {
		x.Tree.Throughput = 0 // time is worth nothing
	} else if x.Plan.Layers > 0 {
		x.Tree.Steps = &x.Plan
	}
	x.Tree.Reset(min(room, wider*x.drafts), x.rates)
	x.Tree.SetDrafter(len(x.drafters))
	for i, at := 0, method.Root; i < len(forced); i++ {
		if at = x.Tree.Add(at, forced[i], forcedClass, 1); at == method.Root {
			break
		}
	}
	if err := x.askQuick(ctx); err != nil {
		return err
	}
	gain := x.Plan.Choose(x.Tree)
	for i := range x.drafters {
		if !x.set.Infos[i].RunsRows || !x.Plan.Eager && !x.turns[i].Due(gain) {
			continue
		}
		start, throughput := time.Now(), x.Plan.Throughput.Rate()
		if err := x.ask(ctx, i); err != nil {
			return err
		}
		seconds, before := time.Since(start).Seconds(), gain
		x.Plan.Spent += seconds
		gain = x.Plan.Choose(x.Tree)
		x.turns[i].Observe(gain - before - throughput*seconds)
	}
	return nil
}

// timedRounds is how often the drafters' calls are timed: reading the clock takes time too.
const timedRounds = 8

// timed reports whether the calls of the round are timed.
func (x *Text) timed() bool { return x.rounds%timedRounds == 1 }

// askQuick asks the drafters that run no rows, the quickest first, where they pay.
func (x *Text) askQuick(ctx context.Context) error {
	throughput, timed := x.Plan.Throughput.Rate(), x.timed()
	for _, i := range x.quick {
		c, asked := &x.credits[i], true
		if asked = c.Due(throughput) || x.Plan.Eager; asked {
			var start time.Time
			if timed {
				start = time.Now()
			}
			if err := x.ask(ctx, int(i)); err != nil {
				return err
			}
			if timed {
				took := time.Since(start).Seconds()
				c.ObserveTime(x.spent[i]+took+x.Plan.ExtraSeconds(x.added(int(i))), timedRounds)
			}
		} else if timed {
			c.Read(x.spent[i] * timedRounds)
		}
	}
	if timed {
		slices.SortStableFunc(x.quick, func(a, b int32) int { return cmp.Compare(x.credits[a].Seconds(), x.credits[b].Seconds()) })
	}
	x.rounds++
	return nil
}

// judge tells the drafters that run no rows what they gave: the accepted drafts that each of them made before the others.
func (x *Text) judge() {
	clear(x.gave)
	for _, node := range x.Outcome.Accepted {
		x.gave[x.Tree.Drafter(node)]++
	}
	rows := float64(1 + len(x.Plan.Chosen()))
	for _, i := range x.quick {
		x.credits[i].Observe(x.gave[i])
		x.credits[i].Read(rows * x.wants[i])
	}
}

// ask lets a drafter add to the tree. Where it runs out of room or pages, what it has drafted stands.
func (x *Text) ask(ctx context.Context, i int) error {
	x.Tree.SetDrafter(i)
	err := x.drafters[i].Draft(ctx, x.Tree)
	if err == nil || errors.Is(err, method.ErrPreempted) || errors.Is(err, forest.ErrScratch) || errors.Is(err, kv.ErrFull) {
		return nil
	}
	return x.fault(i, err)
}

// Account adds a round that gave so many tokens to the figures.
func (x *Text) Account(tokens int, drafting, stepping time.Duration) {
	x.Plan.Throughput.Add(tokens, (drafting + stepping).Seconds())
	x.judge()
	x.Stats.Ran = method.Ran{}
	for _, c := range x.counters {
		x.Stats.Ran = x.Stats.Ran.Add(c.Ran())
	}
	x.Stats.Count(&x.Plan, tokens, x.Outcome.Accepted, func(place int32) bool { return x.Rows[place] > 0 }, drafting, stepping)
}

// WorkAhead lets the drafters that can work while the step runs, and returns a function that waits for them.
func (x *Text) WorkAhead(ctx context.Context) (wait func()) {
	return method.WorkAhead(ctx, x.drafters, x.set.Infos)
}

// Clear drops what was kept and no drafter was told of; before is the token before that of the next round's first row.
func (x *Text) Clear(before token.ID) { x.kept, x.before = x.kept[:0], before }

// Expect makes room for what so many rows of a prompt give, before the first of them is kept: room that grows would be twice as much.
func (x *Text) Expect(rows int) {
	if len(x.kept) > 0 {
		return
	}
	floats, tops, hidden := kept1(x.Wants.Prompt, false, x.model)
	x.store.Reset()
	x.store.Reserve(rows*floats, rows*tops, rows*hidden)
	x.kept = slices.Grow(x.kept, rows)
}

// shrink gives the room of a prompt's rows back, where it is more than that of a round's. Nothing is kept.
func (x *Text) shrink() {
	if x.Watched && cap(x.kept) > 1+x.drafts {
		x.store, x.kept = compute.OutputArena{}, nil
		x.reserve()
	}
}

// Disown makes the rows of the last round but the text's last token's and the first accepted ones, so many altogether, ones that were not accepted.
func (x *Text) Disown(but int) {
	for i, node := range x.Outcome.Accepted {
		if row := int(x.Rows[node]); i+1 >= but && row < len(x.kept) {
			x.kept[row].Accepted = false
		}
	}
}

// Keep copies what a row gave, for the drafters. The result is the caller's to fill until the next call.
func (x *Text) Keep(result *compute.Result, r method.RowResult) *method.RowResult {
	if len(x.kept) == 0 {
		x.store.Reset()
	}
	own := *result
	if !x.Wants.Rows.Logits && !x.Wants.Prompt.Logits {
		own.Logits = nil // the rule's
	}
	if !x.Wants.Rows.State && !x.Wants.Prompt.State {
		own.State = nil // the rule's
	}
	r.Result = x.store.Keep(&own)
	x.kept = append(x.kept, r)
	return &x.kept[len(x.kept)-1]
}

// KeepProbs copies the processed distribution behind a row that was kept.
func (x *Text) KeepProbs(r *method.RowResult, p []float64) {
	x.probs = x.probs[:0]
	for _, v := range p {
		x.probs = append(x.probs, float32(v))
	}
	r.Probs = x.store.Copy(x.probs)
}

// Kept returns the rows that were kept and that no drafter has been told of.
func (x *Text) Kept() []method.RowResult { return x.kept }
