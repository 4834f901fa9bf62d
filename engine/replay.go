package engine

import (
	"context"
	"fmt"
	"time"

	"grove/engine/plan"
	"grove/forest"
	"grove/method"
	"grove/sample"
	"grove/text/token"
)

// Replay follows an answer on record as if the model had given it, drafting as a sequence would, and returns what
// drafting did: Stepping is the time that the steps would have taken by the cost c, and plain the time of plain
// decoding. Only drafters of the kind text can be replayed: others need the model.
func (e *Engine) Replay(ctx context.Context, d *Drafting, c *Cost, prompt, output, prediction []token.ID) (st SpecStats, plain time.Duration, err error) {
	for _, i := range d.infos {
		if i.Kind != method.KindText {
			return st, 0, fmt.Errorf("engine: method %s drafts from %s and cannot be replayed without the model", i.Name, i.Kind)
		}
	}
	sp, err := d.speculation(e)
	if err != nil {
		return st, 0, err
	}
	defer sp.close()
	sampler, err := sample.NewChain(sample.Settings{}, e.vocab)
	if err != nil {
		return st, 0, err
	}
	sp.fresh = append(sp.fresh, prompt...)
	for at := 0; at < len(output); {
		start, depth := time.Now(), len(prompt)+at
		if err := sp.tell(method.Text{Prediction: prediction, Sampler: sampler}); err != nil {
			return st, 0, err
		}
		sp.plan.Begin(c, depth)
		chosen, err := sp.draft(ctx, len(output)-at-1)
		if err != nil {
			return st, 0, err
		}
		drafting := time.Since(start)
		n := sp.follow(chosen, output[at:])
		step := seconds(sp.plan.StepSeconds(len(chosen) + 1))
		for i := range n {
			plain += seconds(c.Seconds(plan.StepSize{Rows: 1, Depth: depth + i, Logits: 1}))
		}
		sp.account(chosen, n, drafting, step)
		sp.fresh = append(sp.fresh, output[at:at+n]...)
		at += n
	}
	return sp.stats, plain, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// follow is walk for tokens that are known; it returns how many of them the round gives.
func (sp *speculation) follow(chosen []int32, next []token.ID) (n int) {
	nodes := sp.tree.Nodes()
	for i := range nodes {
		sp.nodes[i] = forest.Trunk
	}
	sp.outcomes = append(sp.outcomes[:0], method.Outcome{Accepted: true})
	for _, c := range chosen {
		sp.nodes[c] = forest.Node(len(sp.outcomes)) // its row
		sp.outcomes = append(sp.outcomes, method.Outcome{ID: nodes[c].ID})
	}
	for at := method.Root; n < len(next); {
		sp.tree.Learn(at, next[n])
		child, ok := sp.tree.Child(at, next[n])
		n++
		if !ok || sp.nodes[child] == forest.Trunk {
			return n
		}
		at = child
		sp.outcomes[sp.nodes[child]].Accepted = true
	}
	return n
}
