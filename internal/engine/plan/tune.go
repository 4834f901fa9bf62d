package plan

import (
	"slices"
	"time"
)

// Probe describes a step that is run for its time alone.
type Probe struct {
	Rows   int // of one path
	Depth  int // tokens of the trunk that it hangs from
	Logits int // how many of the last rows want logits
	First  int // first layer to run
	Layers int // how many layers to run; 0: the output head alone
	Tokens int // of the vocabulary that the head computes, spread evenly over it; 0: all
}

// Sizes that Tune measures, and how long it may take.
var (
	tuneRows   = []int{1, 2, 4, 8, 16, 32}
	tuneLogits = []int{1, 4, 16}
)

const (
	tuneDepth   = 1024
	probeTarget = 40 * time.Millisecond // of the largest size
	tuneHalves  = 6                     // the head is measured for the whole vocabulary, a half, a quarter and so on
)

// Sizes are the sizes of a model and its engine that Tune measures up to.
type Sizes struct {
	Layers  int
	Tokens  int     // of the vocabulary
	Rows    int     // of a step, at most
	Context int     // tokens of a sequence
	Expert  float64 // reading one expert of one layer, as a share of a step of one row; 0: there are none
}

// The times that Tune may take: for a step whose cost is to be known well, and roughly.
const (
	TuneBudget  = 1500 * time.Millisecond
	RoughBudget = 150 * time.Millisecond
)

// Tune measures the cost of steps in about a budget's time: it runs a window of layers, the next one each time, and
// scales to all. run runs a step for its time, and returns how many experts it touched.
func Tune(z Sizes, budget time.Duration, run func(Probe) (seconds float64, touched int, err error)) (*Cost, error) {
	t := tuner{run: run, all: z.Layers, window: 1}
	one := t.measure(0, []*point{t.layers(1, 0)})[0]
	t.window = max(1, min(t.all, int(probeTarget.Seconds()*float64(t.all)/(one*8))))
	c := &Cost{Expert: one * z.Expert}
	for _, rows := range tuneRows {
		if rows <= z.Rows {
			c.Rows, c.Correction = append(c.Rows, rows), append(c.Correction, 1)
		}
	}
	depth := min(tuneDepth, z.Context-c.Rows[len(c.Rows)-1])
	for halves := tuneHalves; halves >= 0; halves-- {
		if n := z.Tokens >> halves; n > 0 {
			c.Part.X = append(c.Part.X, n)
		}
	}
	t.fill(c, depth, z.Rows, budget)
	if t.err != nil {
		return nil, t.err
	}
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
	heads := len(points)
	for _, tokens := range c.Part.X {
		points = append(points, &point{next: func() Probe { return Probe{Rows: 1, Logits: 1, Tokens: tokens} }, scale: 1})
	}
	seconds := t.measure(budget, points)
	for i, p := range points {
		seconds[i] = max(0, seconds[i]-c.Expert*float64(p.touched))
	}
	seconds, c.Part.Y = seconds[:heads], seconds[heads:]
	rise(c.Part.Y)
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
	run    func(Probe) (seconds float64, touched int, err error)
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
			t.once(p, turn > 0)
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

// once runs a point once, and counts it unless it only warms up.
func (t *tuner) once(p *point, counts bool) {
	if t.err != nil {
		return
	}
	probe := p.next()
	seconds, touched, err := t.run(probe)
	if err != nil {
		t.err = err
		return
	}
	if probe.Layers > 0 {
		p.touched = touched * t.all / probe.Layers
	}
	if counts {
		p.seconds = append(p.seconds, seconds)
	}
}
