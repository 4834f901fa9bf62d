// Package draft drafts by a second, smaller model: it grows a tree behind the text level by level, as far as the
// guesses are likely enough to pay (speculative decoding, Leviathan et al. 2023; trees by path probability, OPT-Tree,
// Wang et al. 2024; stopping by expected worth, SpecDec++, Huang et al. 2024).
//
// Where tokens are drawn at random, it shares the noise of the target's draw: its guesses are the tokens that would
// be drawn from its own logits (Gumbel coupling, Daliri et al. 2024), and verification stays exact.
package draft

import (
	"context"
	"errors"
	"slices"
	"time"

	"grove/compute"
	"grove/forest"
	"grove/method"
	"grove/sample"
	"grove/text/token"
)

// drafter guesses the tokens that are likeliest to be drawn.
type drafter struct {
	shape      shape
	runner     method.Runner
	branch     method.Branch
	words      *method.VocabMap
	vocabulary int   // tokens that are guessed
	trim       *trim // nil: all of the draft model's vocabulary
	trimmer    method.Trimmer
	kept       []int32 // groups of the vocabulary that the text is drafted from
	sampler    *sample.Chain

	length int        // of the text
	text   []token.ID // in tokens of the draft model
	known  int        // tokens of the text that the branch's trunk holds
	live   []node     // rows that hang from it, parents first
	rows   []method.BranchRow
	next   []leaf // guesses that are not expanded
	level  []leaf // those that a pass expands
	guess  [maxRanks]sample.Candidate
	pass   float64   // seconds of a pass that expands, averaged
	dense  []float32 // the logits of a row by the target's tokens, where these are others
}

// node is a live row of the draft model.
type node struct {
	id     token.ID
	parent int // in live; none
	handle forest.Node
}

// leaf is a guess that the draft model has not read.
type leaf struct {
	guess  int // its place in the tree of guesses
	parent int // the live row that gave it; none
}

const none = -1

// Begin implements [method.Drafter].
func (d *drafter) Begin(t method.Text) (err error) {
	d.text, d.length = d.words.Append(d.text[:0], t.Prompt, true), len(t.Prompt)
	d.known, d.live = 0, d.live[:0]
	d.seen(d.text, true)
	if d.sampler, err = sample.NewChain(sample.Settings{Params: t.Sampler.Params(), SampleIndex: t.SampleIndex}, d.vocabulary); err != nil {
		return err
	}
	return d.branch.Truncate(0)
}

// Extend implements [method.Drafter].
func (d *drafter) Extend(ids []token.ID) {
	n := len(d.text)
	d.text, d.length = d.words.Append(d.text, ids, false), d.length+len(ids)
	d.seen(d.text[n:], false)
}

// seen tells of tokens of the text: they are among those that are drafted.
func (d *drafter) seen(ids []token.ID, begins bool) {
	if d.trim == nil {
		return
	}
	if begins {
		d.kept = d.trim.pick(d.kept[:0])
	}
	d.kept = d.trim.learn(d.kept, ids)
	d.trimmer.Trim(d.kept)
}

// Close implements [method.Closer].
func (d *drafter) Close() error { return d.branch.Close() }

// Draft implements [method.Drafter].
func (d *drafter) Draft(ctx context.Context, t *method.Tree) error {
	logits, ok, err := d.begin(ctx)
	if !ok || err != nil {
		return err
	}
	if err := d.add(t, method.Root, none, d.length, logits); err != nil {
		return err
	}
	for pass := 1; d.goesOn(t, pass); pass++ {
		err := d.expand(ctx, t, func(l leaf, row int, logits []float32) error {
			return d.add(t, l.guess, row, d.length+int(t.Nodes()[l.guess].Depth), logits)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// begin brings the branch to the end of the text and returns the logits there; false where the draft model has no
// room for it.
func (d *drafter) begin(ctx context.Context) (logits []float32, ok bool, err error) {
	d.next = d.next[:0]
	if len(d.text) == 0 || len(d.text) > d.runner.Context() {
		return nil, false, nil
	}
	if err := d.keep(); err != nil {
		return nil, false, err
	}
	if d.known == len(d.text) { // nothing was added
		if err := d.rewind(d.known - 1); err != nil {
			return nil, false, err
		}
	}
	logits, err = d.catchUp(ctx)
	return logits, err == nil, err
}

// keep commits the rows of the last round that came true, and drops the others. The text's last token is run
// anew: what was said behind it is forgotten.
func (d *drafter) keep() error {
	last := none
	for i, n := range d.live {
		if d.known < len(d.text)-1 && n.parent == last && n.id == d.text[d.known] {
			last = i
			d.known++
		}
	}
	var err error
	if last != none {
		err = d.branch.Commit(d.live[last].handle)
	}
	d.live = d.live[:0]
	return errors.Join(err, d.branch.Drop())
}

// rewind cuts the branch's trunk, to nothing where the cache does not hold the place any more.
func (d *drafter) rewind(n int) error {
	if d.branch.Truncate(n) == nil {
		d.known = n
		return nil
	}
	d.known = 0
	return d.branch.Truncate(0)
}

// catchUp runs and commits the tokens that the branch does not hold, and returns the logits behind the last.
func (d *drafter) catchUp(ctx context.Context) (logits []float32, err error) {
	for d.known < len(d.text) {
		d.rows = d.rows[:0]
		n := min(len(d.text)-d.known, d.runner.Chunk())
		for i, id := range d.text[d.known : d.known+n] {
			d.rows = append(d.rows, method.BranchRow{ID: id, After: i, Logits: d.known+i == len(d.text)-1})
		}
		nodes, behind, err := d.branch.Run(ctx, d.rows)
		if err != nil {
			return nil, err
		}
		if err := d.branch.Commit(nodes[n-1]); err != nil {
			return nil, err
		}
		logits = behind[n-1]
		d.known += n
	}
	return d.view(logits), nil
}

// view returns the logits behind a row by the tokens that are guessed, until the next call.
func (d *drafter) view(logits []float32) []float32 {
	if d.dense == nil {
		return logits[:d.vocabulary]
	}
	d.words.Spread(d.dense, logits)
	return d.dense
}

// add turns the logits behind a row into guesses behind a node of the tree.
func (d *drafter) add(t *method.Tree, guess, row, index int, logits []float32) error {
	best, err := d.sampler.Candidates(d.guess[:d.shape.guesses(index-d.length)], logits, index)
	if err != nil {
		return err
	}
	for rank, g := range best {
		if logits[g.ID] == compute.Masked {
			continue // the draft model could not read it, or does not say it
		}
		class := min(rank, method.Classes/buckets-1)*buckets + min(int(g.P*buckets), buckets-1)
		at := t.Add(guess, g.ID, class, belief(rank, g.P))
		if at == method.Root {
			continue // a less likely one may be of a class that does better
		}
		d.leave(t, at, row)
	}
	return nil
}

// leave notes a guess as one that may be expanded, unless nothing may stand behind it.
func (d *drafter) leave(t *method.Tree, guess, row int) {
	depth := int(t.Nodes()[guess].Depth)
	if depth < min(deepest, t.Depth()) && len(d.text)+depth <= d.runner.Context() {
		d.next = append(d.next, leaf{guess, row})
	}
}

// belief is how often a guess is right, before anything is known.
func belief(rank int, p float32) float32 {
	if rank == 0 {
		return max(0.3, p)
	}
	return p / 2
}

// goesOn picks the leaves to expand, the likeliest, and reports whether there is to be another pass: the draft model has
// room, and it is worth the time.
func (d *drafter) goesOn(t *method.Tree, pass int) bool {
	room := min(d.shape.beam, d.runner.Chunk(), method.MaxLive-len(d.live))
	if pass >= deepest || room < 1 {
		return false
	}
	slices.SortFunc(d.next, func(a, b leaf) int {
		switch sa, sb := t.Score(a.guess), t.Score(b.guess); {
		case sa > sb:
			return -1
		case sa < sb:
			return 1
		}
		return a.guess - b.guess
	})
	n := min(room, len(d.next))
	d.level, d.next = append(d.level[:0], d.next[:n]...), append(d.next[:0], d.next[n:]...)
	if d.shape.growth == fixed {
		return n > 0 && pass < len(d.shape.ranks)
	}
	return n > 0 && d.pays(t)
}

// pays reports whether expanding the level is worth a pass: what comes of it, at the share of first guesses that are
// right, against what is decoded in the same time.
func (d *drafter) pays(t *method.Tree) bool {
	expected := float32(0)
	for _, l := range d.level {
		expected += t.Score(l.guess) * usual
	}
	return float64(expected) > t.Throughput*d.pass
}

// usual is the share of guesses behind a right one that are right, for the decision to look at them.
const usual = 0.7

// expand runs the level's guesses, in one pass, and calls then with the place in live of each and the logits
// behind it.
func (d *drafter) expand(ctx context.Context, t *method.Tree, then func(l leaf, row int, logits []float32) error) error {
	start := time.Now()
	d.rows = d.rows[:0]
	for _, l := range d.level {
		r := method.BranchRow{ID: d.words.ToDraft(t.Nodes()[l.guess].ID), Logits: true}
		if l.parent != none {
			r.Parent = d.live[l.parent].handle
		}
		d.rows = append(d.rows, r)
	}
	nodes, logits, err := d.branch.Run(ctx, d.rows)
	if err != nil {
		return err
	}
	for i, l := range d.level {
		d.live = append(d.live, node{d.rows[i].ID, l.parent, nodes[i]})
		if err := then(l, len(d.live)-1, d.view(logits[i])); err != nil {
			return err
		}
	}
	d.took(time.Since(start).Seconds())
	return nil
}

// took averages the time of a pass.
func (d *drafter) took(seconds float64) {
	if d.pass == 0 {
		d.pass = seconds
	}
	d.pass += (seconds - d.pass) / 8
}
