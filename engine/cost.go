package engine

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Cost is the seconds of a step on this machine, T(rows, depth, rows with logits, experts touched), as
// measured by [Engine.Tune] and corrected by steps that are run. The zero value knows nothing.
//
//	T = layers(rows) + depth * perToken(rows) + head(logits) + expert * experts touched
//
// with each function linear between the sizes that were measured and beyond them. It is not safe for
// concurrent use.
type Cost struct {
	Rows   []int     `json:"rows"`   // sizes measured, ascending
	Layers []float64 `json:"layers"` // seconds of all layers, experts aside, by size
	Depth  Curve     `json:"depth"`  // seconds a token of depth, by rows
	Head   Curve     `json:"head"`   // seconds of the head, by rows with logits
	Expert float64   `json:"expert"` // seconds for each expert that a layer's rows touch

	Correction []float64 `json:"correction"` // by size: real seconds over predicted ones, averaged
}

// Curve is a function that is linear between measured points and beyond them.
type Curve struct {
	X []int     `json:"x"`
	Y []float64 `json:"y"`
}

// At returns the value at x, never below zero.
func (c Curve) At(x int) float64 {
	switch len(c.X) {
	case 0:
		return 0
	case 1:
		return c.Y[0]
	}
	i := min(max(1, segment(c.X, x)), len(c.X)-1)
	slope := (c.Y[i] - c.Y[i-1]) / float64(c.X[i]-c.X[i-1])
	return max(0, c.Y[i-1]+slope*float64(x-c.X[i-1]))
}

// segment returns the first place in xs whose value is not below x.
func segment(xs []int, x int) int {
	i, _ := slices.BinarySearch(xs, x)
	return i
}

// Shape is what the seconds of a step depend on.
type Shape struct {
	Rows, Depth, Logits, Experts int
}

// add adds rows of one sequence to a step's; [Shape.mean] then makes its depth that of the mean row.
func (s *Shape) add(rows, depth int) {
	s.Rows += rows
	s.Depth += rows * depth
}

func (s *Shape) mean() {
	if s.Rows > 0 {
		s.Depth /= s.Rows
	}
}

// Seconds predicts the time of a step.
func (c *Cost) Seconds(s Shape) float64 {
	t := c.measured(s)
	if len(c.Correction) > 0 {
		t *= c.Correction[c.bucket(s.Rows)]
	}
	return t
}

func (c *Cost) measured(s Shape) float64 {
	return Curve{c.Rows, c.Layers}.At(s.Rows) + float64(s.Depth)*c.Depth.At(s.Rows) +
		c.Head.At(s.Logits) + c.Expert*float64(s.Experts)
}

func (c *Cost) bucket(rows int) int { return min(segment(c.Rows, rows), len(c.Rows)-1) }

// correctionRate is the weight of one step in the running average: some thirty steps replace the past.
const correctionRate = 1.0 / 32

// Observe corrects the prediction by the time that a step took. Steps that were far off, because the
// machine did something else, count as twice or half the prediction.
func (c *Cost) Observe(s Shape, seconds float64) {
	predicted := c.measured(s)
	if len(c.Rows) == 0 || predicted <= 0 || s.Rows > c.Rows[len(c.Rows)-1] {
		return
	}
	ratio := min(2, max(0.5, seconds/predicted))
	at := &c.Correction[c.bucket(s.Rows)]
	*at += correctionRate * (ratio - *at)
}

// Sizes that Tune measures, and how long it may take.
var (
	tuneRows   = []int{1, 2, 4, 8, 16, 32}
	tuneLogits = []int{1, 4, 16}
)

const (
	tuneDepth   = 1024
	tuneBudget  = 1500 * time.Millisecond
	roughBudget = 150 * time.Millisecond
	probeTarget = 40 * time.Millisecond // of the largest size
)

// Tune measures the cost of steps, in less than three seconds for any model: it runs a window of layers,
// the next one each time, and scales to all. The engine then corrects its own copy by every step it
// runs.
func (e *Engine) Tune(ctx context.Context) (*Cost, error) {
	c, err := e.tune(ctx, tuneBudget)
	if err != nil {
		return nil, fmt.Errorf("engine: tuning: %w", err)
	}
	return c, nil
}

// Cost returns what is known of the cost of steps as it stands, nil where nothing is. The caller owns it.
func (e *Engine) Cost() *Cost {
	e.costs.Lock()
	defer e.costs.Unlock()
	if e.costs.cost == nil {
		return nil
	}
	c := *e.costs.cost
	c.Correction = slices.Clone(c.Correction)
	return &c
}

func (e *Engine) setCost(c *Cost) {
	e.costs.Lock()
	defer e.costs.Unlock()
	e.costs.cost = c
}

// ensureCost measures roughly where nothing is known. A model that fails here fails again where it is used, with a
// better reason; until then there is nothing to draft by.
func (e *Engine) ensureCost(ctx context.Context) error {
	if e.Cost() != nil {
		return nil
	}
	if _, err := e.tune(ctx, roughBudget); err != nil {
		return ctx.Err()
	}
	_, _ = e.SaveCost() // where it cannot be kept, the next engine measures again
	return nil
}

func (e *Engine) tune(ctx context.Context, budget time.Duration) (*Cost, error) {
	t := tuner{e: e, ctx: ctx, all: e.cache.Forest.Layers(), window: 1}
	most := min(e.Context(), e.exec.Step.Max())
	one := t.measure(0, []*point{t.layers(1, 0)})[0]
	t.window = max(1, min(t.all, int(probeTarget.Seconds()*float64(t.all)/(one*8))))
	c := &Cost{Expert: t.expertSeconds(one)}
	for _, rows := range tuneRows {
		if rows <= most {
			c.Rows, c.Correction = append(c.Rows, rows), append(c.Correction, 1)
		}
	}
	depth := min(tuneDepth, e.Context()-c.Rows[len(c.Rows)-1])
	t.fill(c, depth, most, budget)
	if t.err != nil {
		return nil, t.err
	}
	own := *c // steps correct the engine's, not the caller's
	own.Correction = slices.Clone(c.Correction)
	e.setCost(&own)
	return c, nil
}

// fill measures all points in turns, so that a machine that changes its speed changes all of them.
func (t *tuner) fill(c *Cost, depth, most int, budget time.Duration) {
	var points []*point
	for _, rows := range c.Rows {
		points = append(points, t.layers(rows, 0))
	}
	flat := points
	for _, rows := range []int{1, 8} {
		if i := slices.Index(c.Rows, rows); i >= 0 && depth > 0 {
			c.Depth.X = append(c.Depth.X, rows)
			points = append(points, t.layers(rows, depth))
		}
	}
	for _, rows := range tuneLogits {
		if rows <= most {
			c.Head.X = append(c.Head.X, rows)
			points = append(points, &point{next: func() Probe { return Probe{Rows: rows, Logits: rows} }, scale: 1})
		}
	}
	seconds := t.measure(budget, points)
	for i, p := range points {
		seconds[i] = max(0, seconds[i]-c.Expert*float64(p.touched))
	}
	c.Layers = seconds[:len(flat):len(flat)]
	deep, head := seconds[len(flat):len(flat)+len(c.Depth.X)], seconds[len(flat)+len(c.Depth.X):]
	rise(c.Layers)
	rise(head)
	for i, rows := range c.Depth.X {
		c.Depth.Y = append(c.Depth.Y, max(0, deep[i]-c.Layers[slices.Index(c.Rows, rows)])/float64(depth))
	}
	c.Head.Y = head
}

// rise lowers what exceeds a later value: more rows take no less time, and what else the machine does only adds.
func rise(seconds []float64) {
	for i := len(seconds) - 2; i >= 0; i-- {
		seconds[i] = min(seconds[i], seconds[i+1])
	}
}

// tuner measures points; it keeps the first error.
type tuner struct {
	e      *Engine
	ctx    context.Context
	all    int // layers of the model
	window int // layers of a probe
	first  int // of the next probe: windows rotate, so that weights come from memory
	err    error
}

// point is one size of a step.
type point struct {
	next    func() Probe
	scale   float64 // seconds of a step over those of a probe
	seconds []float64
	touched int // experts that all layers would touch
}

// layers is the point of all layers for a number of rows at a depth.
func (t *tuner) layers(rows, depth int) *point {
	return &point{scale: float64(t.all) / float64(t.window), next: func() Probe {
		if t.first+t.window > t.all {
			t.first = 0
		}
		p := Probe{Rows: rows, Depth: depth, First: t.first, Layers: t.window}
		t.first += t.window
		return p
	}}
}

// Each point is measured at least leastTurns and at most mostTurns times.
const leastTurns, mostTurns = 3, 31

// measure returns the seconds of points: a low quantile of as many turns as fit the time, so that what else the
// machine does counts little, after one turn that warms up.
func (t *tuner) measure(budget time.Duration, points []*point) []float64 {
	start := time.Now()
	for turn := range mostTurns {
		if turn >= leastTurns && time.Since(start) > budget {
			break
		}
		for _, p := range points {
			t.run(p, turn > 0)
		}
	}
	seconds := make([]float64, len(points))
	for i, p := range points {
		slices.Sort(p.seconds)
		seconds[i] = 1e-9
		if len(p.seconds) > 0 {
			seconds[i] = max(1e-9, p.seconds[len(p.seconds)/4]*p.scale)
		}
	}
	return seconds
}

// run runs a point once, and counts it unless it only warms up.
func (t *tuner) run(p *point, counts bool) {
	if t.err != nil {
		return
	}
	probe := p.next()
	seconds, touched, err := t.e.Probe(t.ctx, probe, 1)
	if err != nil {
		t.err = err
		return
	}
	if probe.Layers > 0 {
		p.touched = touched * t.all / probe.Layers
	}
	if counts {
		p.seconds = append(p.seconds, seconds...)
	}
}

// expertSeconds is the time to read one expert of one layer, at the rate of a step of one row, which is
// the rate of memory.
func (t *tuner) expertSeconds(one float64) float64 {
	info := t.e.model.Info()
	read := info.Bytes - info.TableBytes - info.ExpertBytes*(info.Experts-info.Used)*t.all
	return one * float64(info.ExpertBytes) / float64(max(1, read))
}
