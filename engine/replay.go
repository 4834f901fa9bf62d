package engine

import (
	"context"
	"fmt"
	"time"

	"grove/engine/plan"
	"grove/forest"
	"grove/method"
	"grove/text/token"
	"grove/verify"
)

// Replay follows an answer on record as if the model had given it, drafting as a sequence would, and returns what
// drafting did: Stepping is the time that the steps would have taken by the cost c, and plain the time of plain
// decoding. Only methods that draft from the text alone can be replayed: others need the model.
func (e *Engine) Replay(ctx context.Context, d *Drafting, c *Cost, prompt, output, prediction []token.ID) (st SpecStats, plain time.Duration, err error) {
	for _, i := range d.infos {
		if !i.Replays {
			return st, 0, fmt.Errorf("engine: method %s drafts from %s and cannot be replayed without the model", i.Name, i.Kind)
		}
	}
	sp, err := d.open(e, nil, Terms{})
	if err != nil {
		return st, 0, err
	}
	defer sp.close()
	sp.history.Prediction = prediction
	text := append(append([]token.ID{}, prompt...), output...)
	for at := len(prompt); at < len(text); {
		start := time.Now()
		if err := sp.tell(text[:at], len(prompt)); err != nil {
			return st, 0, err
		}
		sp.plan.Begin(c, at)
		if err := sp.draft(ctx, len(text)-at-1, nil); err != nil {
			return st, 0, err
		}
		drafting := time.Since(start)
		n, err := sp.verify(text[at:])
		if err != nil {
			return st, 0, err
		}
		step := seconds(sp.plan.StepSeconds(len(sp.plan.Chosen()) + 1))
		for i := range n {
			plain += seconds(c.Seconds(plan.StepSize{Rows: 1, Depth: at + i, Logits: 1}))
		}
		sp.account(n, drafting, step)
		at += n
	}
	return sp.stats, plain, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// verify verifies the round's drafts against what follows on record, and returns how many tokens the round gives.
func (sp *drafts) verify(next []token.ID) (n int, err error) {
	for i := range sp.tree.Nodes() {
		sp.nodes[i], sp.rows[i] = forest.Trunk, 0
	}
	for i, c := range sp.plan.Chosen() {
		sp.nodes[c], sp.rows[c] = forest.Node(i+1), int32(i+1)
	}
	sp.outcome.Accepted = sp.outcome.Accepted[:0]
	r := &record{sp: sp, next: next}
	if err := sp.acceptor.Accept(r, &sp.outcome); err != nil {
		return 0, err
	}
	at := method.Root
	for i, node := range sp.outcome.Accepted {
		sp.tree.Learn(at, next[i])
		at = node
	}
	if n = len(sp.outcome.Accepted); n < len(next) {
		sp.tree.Learn(at, next[n])
		n++
	}
	return n, nil
}

// record is a round of an answer on record as a rule sees it: what plain decoding draws is what the record has.
type record struct {
	round
	sp   *drafts
	next []token.ID
}

// Children implements [verify.View].
func (r *record) Children(dst []int, node int) []int { return r.sp.tree.Children(dst, node) }

// Ran implements [verify.View].
func (r *record) Ran(node int) bool { return r.sp.rows[node] > 0 }

// Token implements [verify.View].
func (r *record) Token(node int) token.ID { return r.sp.tree.Nodes()[node].ID }

// Draw implements [verify.View]. Behind the end of the record nothing is drawn that is a draft.
func (r *record) Draw(node int) (token.ID, error) {
	depth := 0
	if node != method.Root {
		depth = int(r.sp.tree.Nodes()[node].Depth)
	}
	if depth >= len(r.next) {
		return token.None, nil
	}
	return r.next[depth], nil
}

var _ verify.View = (*record)(nil)
