// dola.go is decoding by contrasting layers (DoLa: Decoding by Contrasting Layers Improves Factuality in Large Language Models, 2023): a token is drawn by how much likelier the whole model holds it
// than its first layers do. Of some numbers of layers it contrasts, at each token, with the one whose distribution differs most from the model's. It is lossy.

package programs

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"grove/internal/options"
	"grove/internal/stat"
	"grove/search"
)

func init() {
	search.Register(search.Info{Name: "dola", Paper: "Decoding by Contrasting Layers, 2023", Options: "layers=low,alpha=0.1", Open: openDola})
}

type dola struct {
	part  string  // low or high; "": exits
	exits []int   // numbers of first layers
	alpha float64 // a token is plausible where it is so likely, as a share of the likeliest
}

// mostExits bounds the rows of a step.
const mostExits = 32

// openDola reads the options.
func openDola(o *options.Options) search.Program {
	d := dola{alpha: o.Float("alpha", .1, 0, 1)}
	if d.part = o.Text("layers", "low"); d.part == "low" || d.part == "high" {
		return d
	}
	for part := range strings.SplitSeq(d.part, "+") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 0 || len(d.exits) == mostExits {
			o.Fail("layers is %.40q; it must be low, high, or up to %d numbers of first layers such as 2+4+6", d.part, mostExits)
			break
		}
		d.exits = append(d.exits, n)
	}
	d.part = ""
	return d
}

// Samples implements [search.Program].
func (dola) Samples() int { return 1 }

// Check implements [search.Program].
func (d dola) Check(p *search.Problem) error {
	if most := append([]int{0}, d.exits...); slices.Max(most) > p.Layers {
		return fmt.Errorf("search: dola: layers has %d; it must be up to %d, the layers of the model", slices.Max(most), p.Layers)
	}
	return nil
}

// of returns the numbers of first layers of a model with so many: every second one from 2 on below the half, or from the half on. A model with more than 40 layers has the first
// or the last 20 of them.
func (d dola) of(layers int) []int {
	if d.part == "" {
		return d.exits
	}
	const many, some = 40, 20
	from, to := 2, layers/2
	if layers > many {
		to = some
	}
	if d.part == "high" {
		from, to = layers/2, layers
		if layers > many {
			from = layers - some
		}
	}
	var all []int
	for l := from; l < to; l += 2 {
		all = append(all, l)
	}
	if len(all) == 0 {
		all = []int{layers / 2}
	}
	return all
}

// Run implements [search.Program].
func (d dola) Run(ctx context.Context, p *search.Problem) (*search.Result, error) {
	b, err := search.Fork(ctx, p, 0, 1)
	if err != nil {
		return nil, err
	}
	r := &dolaRun{dola: d, b: b, figures: map[string]float64{"contrasted_tokens": 0, "other_tokens": 0}}
	r.exits = d.of(p.Layers)
	r.early = make([][]float32, len(r.exits))
	return b.First(r.figures, func() error { return r.advance(ctx) })
}

// A dolaRun is a search on its way.
type dolaRun struct {
	dola
	b       *search.Samples
	early   [][]float32 // the logits of the exits
	row     []float32   // that a token is drawn from
	figures map[string]float64
}

// advance gives the answer a token.
func (r *dolaRun) advance(ctx context.Context) error {
	s := r.b.All[0].Seq
	err := s.Exits(ctx, r.exits, func(logits [][]float32) {
		for i := range r.early {
			r.early[i] = append(r.early[i][:0], logits[i]...)
		}
	})
	if err != nil {
		return err
	}
	last, err := s.Logits(ctx)
	if err != nil {
		return err
	}
	r.row = append(r.row[:0], last...)
	processed, err := s.Processed(ctx)
	if err != nil {
		return err
	}
	if at, differs := farthest(last, r.early); differs {
		dolaContrast(r.row, r.early[at], processed, r.alpha)
		r.figures["contrasted_tokens"]++
		r.figures[fmt.Sprintf("layers_%d", r.exits[at])]++
	}
	likeliest := largest(processed)
	if err := r.b.DrawFrom(ctx, 0, r.row); err != nil {
		return err
	}
	if drawn := r.b.All[0].Drawn; len(drawn) > 0 && int(drawn[len(drawn)-1].ID) != likeliest {
		r.figures["other_tokens"]++
	}
	return nil
}

// largest returns the first of the largest values.
func largest(row []float32) (best int) {
	for i, v := range row {
		if v > row[best] {
			best = i
		}
	}
	return best
}

// farthest returns the first of the rows of logits whose distribution has the largest divergence from that of last, and false where all are that of last.
func farthest(last []float32, rows [][]float32) (best int, differs bool) {
	most, p := 0.0, stat.Softmax(last)
	for i, row := range rows {
		if d := dolaDivergence(p, stat.Softmax(row)); d > most {
			best, most = i, d
		}
	}
	return best, most > 0
}

// dolaDivergence returns that of Jensen and Shannon, in nats: from 0, of equal distributions, to ln 2.
func dolaDivergence(p, q []float64) (sum float64) {
	for i := range p {
		m := (p[i] + q[i]) / 2
		if p[i] > 0 {
			sum += p[i] * math.Log(p[i]/m)
		}
		if q[i] > 0 {
			sum += q[i] * math.Log(q[i]/m)
		}
	}
	return sum / 2
}

// dolaContrast makes the model's logits the logarithms of the ratios of its probabilities to those of early logits, of the tokens that are plausible by the processed logits: so
// likely, as a share of the likeliest. Others get minus infinity. The likeliest is plausible.
func dolaContrast(logits, early, processed []float32, alpha float64) {
	own, other := stat.LogSumExp(logits), stat.LogSumExp(early)
	least := float64(processed[largest(processed)]) + math.Log(alpha)
	for i, l := range logits {
		logits[i] = float32((float64(l) - own) - (float64(early[i]) - other))
		if p := float64(processed[i]); p < least || math.IsInf(p, -1) {
			logits[i] = float32(math.Inf(-1))
		}
	}
}
