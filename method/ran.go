package method

import "grove/internal/forest"

// Ran counts the passes of rows that a drafter has run, so that their time on other models can be predicted.
type Ran struct {
	Passes int
	Rows   int     // of all passes
	Share  float64 // of the target's layers that a pass runs, summed over the passes
	Layers float64 // of the target, in whose time a module's pass runs, summed over the passes
}

// Counter is a drafter that counts its passes.
type Counter interface {
	Drafter
	Ran() Ran
}

// Since returns what was run after earlier.
func (r Ran) Since(earlier Ran) Ran { return r.add(earlier, -1) }

// Add returns the sum.
func (r Ran) Add(o Ran) Ran { return r.add(o, 1) }

func (r Ran) add(o Ran, times float64) Ran {
	return Ran{r.Passes + int(times)*o.Passes, r.Rows + int(times)*o.Rows, r.Share + times*o.Share, r.Layers + times*o.Layers}
}

// Pass counts a pass of rows of a model: of the target itself where layerCost is 0, and else of a module, of which a layer takes as long as
// layerCost layers of the target. A part of a layer counts by its weights.
func (r *Ran) Pass(rows []Row, model Size, layerCost float64) {
	var attention, feed forest.Layers
	for i := range rows {
		to := rows[i].To
		if to == 0 {
			to = model.Layers
		}
		run := forest.LayerRange(rows[i].From, to).Minus(rows[i].Skip)
		attention, feed = attention.Union(run.Minus(rows[i].SkipAttention)), feed.Union(run.Minus(rows[i].SkipFeedForward))
	}
	r.Passes++
	r.Rows += len(rows)
	n := float64(feed.Len()) + model.AttentionShare*float64(attention.Len()-feed.Len())
	if layerCost == 0 {
		r.Share += n / float64(max(1, model.Layers))
	} else {
		r.Layers += n * layerCost
	}
}
