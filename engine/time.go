package engine

import (
	"context"
	"time"

	"grove/forest"
	"grove/text/token"
)

// Probe runs steps of one kind, times over, and returns the seconds of each, and how many experts the last
// one touched in all layers together. The keys that rows see are numbers of no meaning. The slice is the
// caller's.
func (e *Engine) Probe(ctx context.Context, p Probe, times int) (seconds []float64, touched int, err error) {
	if err := e.Generates(); err != nil {
		return nil, 0, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	seq := e.cache.NewSeq("probe")
	defer e.cache.CloseSeq(seq)
	if err := e.cache.Pad(seq, p.Depth); err != nil {
		return nil, 0, err
	}
	all := e.cache.Forest.Layers()
	skip := forest.LayerRange(0, all).Minus(forest.LayerRange(p.First, p.First+p.Layers))
	seconds = make([]float64, 0, times)
	for range times {
		parent := forest.Trunk
		for i := range p.Rows {
			node, err := e.exec.Step.Add(forest.Row{
				Seq: seq, Parent: parent, ID: token.ID(i * 7919 % e.vocab), Skip: skip,
				Want: forest.Want{Logits: i >= p.Rows-p.Logits},
			})
			if err != nil {
				e.exec.Step.Abort()
				return nil, 0, err
			}
			parent = node
		}
		start := time.Now()
		if err := e.pass(ctx); err != nil {
			return nil, 0, err
		}
		seconds = append(seconds, time.Since(start).Seconds())
		e.exec.Step.Abort() // the rows are not wanted any longer
	}
	return seconds, e.exec.Touched(), nil
}
