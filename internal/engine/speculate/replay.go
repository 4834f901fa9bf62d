package speculate

import (
	"context"
	"fmt"
	"time"

	"grove/internal/engine/plan"
	"grove/internal/forest"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/internal/verify"
	"grove/method"
)

// Recorded is an answer on record, with its prompt and what its user expected of it, if anything.
type Recorded struct{ Prompt, Output, Prediction []token.ID }

// Replay follows an answer on record as if the model had given it, drafting as a sequence would, and returns what
// drafting did: Stepping is the time that the steps would have taken by the cost c, and plain the time of plain
// decoding. Only methods that draft from the text alone can be replayed: others need the model.
func (d *Methods) Replay(ctx context.Context, c *plan.Cost, experts plan.Mixture, vocabulary int, r Recorded) (st plan.Stats, plain time.Duration, err error) {
	for _, i := range d.Infos {
		if !i.Replays {
			return st, 0, fmt.Errorf("engine: method %s drafts from %s and cannot be replayed without the model", i.Name, i.Kind)
		}
	}
	x, err := d.Open(nil, "", false, vocabulary, experts)
	if err != nil {
		return st, 0, err
	}
	defer x.Close()
	if err := x.Fit(MemoryLimits{Drafts: plan.MaxDraft}, method.Size{Vocabulary: vocabulary}, sample.Params{}); err != nil {
		return st, 0, err
	}
	x.History.Prediction = r.Prediction
	text := append(append([]token.ID{}, r.Prompt...), r.Output...)
	for at := len(r.Prompt); at < len(text); {
		start := time.Now()
		if err := x.Tell(text[:at], len(r.Prompt)); err != nil {
			return st, 0, err
		}
		x.Plan.Begin(c, at)
		if err := x.Draft(ctx, len(text)-at-1, nil); err != nil {
			return st, 0, err
		}
		drafting := time.Since(start)
		n, err := x.verify(text[at:])
		if err != nil {
			return st, 0, err
		}
		step := seconds(x.Plan.StepSeconds(len(x.Plan.Chosen()) + 1))
		for i := range n {
			plain += seconds(c.Seconds(plan.StepSize{Rows: 1, Depth: at + i, Logits: 1}))
		}
		x.Account(n, drafting, step)
		at += n
	}
	return x.Stats, plain, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// verify verifies the round's drafts against what follows on record, and returns how many tokens the round gives.
func (x *Text) verify(next []token.ID) (n int, err error) {
	for i := range x.Tree.Nodes() {
		x.Nodes[i], x.Rows[i] = forest.Trunk, 0
	}
	for i, c := range x.Plan.Chosen() {
		x.Nodes[c], x.Rows[c] = forest.Node(i+1), int32(i+1)
	}
	x.Outcome.Accepted = x.Outcome.Accepted[:0]
	r := &record{x: x, next: next}
	if err := x.Acceptor.Accept(r, &x.Outcome); err != nil {
		return 0, err
	}
	at := method.Root
	for i, node := range x.Outcome.Accepted {
		x.Tree.Learn(at, next[i])
		at = node
	}
	if n = len(x.Outcome.Accepted); n < len(next) {
		x.Tree.Learn(at, next[n])
		n++
	}
	return n, nil
}

// record is a round of an answer on record as a rule sees it: what plain decoding draws is what the record has.
type record struct {
	verify.View // what rules of methods that replay do not ask
	x           *Text
	next        []token.ID
}

// Children implements [verify.View].
func (r *record) Children(dst []int, node int) []int { return r.x.Tree.Children(dst, node) }

// Ran implements [verify.View].
func (r *record) Ran(node int) bool { return r.x.Rows[node] > 0 }

// Token implements [verify.View].
func (r *record) Token(node int) token.ID { return r.x.Tree.Nodes()[node].ID }

// Draw implements [verify.View]. Behind the end of the record nothing is drawn that is a draft.
func (r *record) Draw(node int) (token.ID, error) {
	if depth := r.x.Tree.DepthOf(node); depth < len(r.next) {
		return r.next[depth], nil
	}
	return token.None, nil
}

var _ verify.View = (*record)(nil)
