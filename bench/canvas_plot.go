package bench

import (
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
)

// The plot's size and margins, in pixels.
const (
	plotWidth, plotHeight                    = 860, 520
	plotLeft, plotRight, plotTop, plotBottom = 70, 170, 40, 60
	plotTicks                                = 5
	plotInnerWidth, plotInnerHeight          = plotWidth - plotLeft - plotRight, plotHeight - plotTop - plotBottom
)

// colours tell caches apart.
var colours = []string{"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#17becf"}

// axis maps values to pixels.
type axis struct{ low, high, from, to float64 }

// newAxis returns an axis of some values with room at both ends.
func newAxis(values []float64, from, to float64) axis {
	low, high := slices.Min(values), slices.Max(values)
	room := max((high-low)*0.06, math.Abs(high)*0.01, 1e-6)
	return axis{low - room, high + room, from, to}
}

func (a axis) at(v float64) float64 { return a.from + (v-a.low)/(a.high-a.low)*(a.to-a.from) }

// tick returns the i-th of the values that are written beside the axis.
func (a axis) tick(i int) float64 { return a.low + (a.high-a.low)*float64(i)/(plotTicks-1) }

// WritePlot writes an SVG image of quality against passes: a point for each policy with a cache. Quality is what the judge says of code, and of lists the share that is right.
func (r *CanvasReport) WritePlot(w io.Writer) error {
	var xs, ys []float64
	var points []CanvasFigures
	for _, f := range r.Figures {
		if f.Refused == "" {
			points, xs, ys = append(points, f), append(xs, f.Passes), append(ys, r.quality(f))
		}
	}
	if len(points) == 0 {
		return fmt.Errorf("bench: there is nothing to plot")
	}
	x, y := newAxis(xs, plotLeft, plotLeft+plotInnerWidth), newAxis(ys, plotTop+plotInnerHeight, plotTop)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n"+`<rect width="100%%" height="100%%" fill="white"/>`+"\n", plotWidth, plotHeight)
	write := func(px, py float64, anchor, text string) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", px, py, anchor, html.EscapeString(text))
	}
	write(plotLeft, 24, "start", r.Model+": "+r.qualityName()+" against passes per token")
	fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="black"/>`+"\n", plotLeft, plotTop, plotInnerWidth, plotInnerHeight)
	for i := range plotTicks {
		write(x.at(x.tick(i)), plotTop+plotInnerHeight+18, "middle", fmt.Sprintf("%.2f", x.tick(i)))
		write(plotLeft-6, y.at(y.tick(i))+4, "end", fmt.Sprintf("%.2f", y.tick(i)))
	}
	write(plotLeft+plotInnerWidth/2, plotHeight-16, "middle", "passes per token")
	r.writePoints(&b, points, x, y)
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// writePoints writes the points, with the policies beside them, and the colours of the caches.
func (r *CanvasReport) writePoints(b *strings.Builder, points []CanvasFigures, x, y axis) {
	var caches []string
	for _, f := range points {
		at := slices.Index(caches, f.Cache)
		if at < 0 {
			at, caches = len(caches), append(caches, f.Cache)
			fmt.Fprintf(b, `<text x="%d" y="%d" fill="%s">● %s</text>`+"\n", plotWidth-plotRight+12, plotTop+14+18*at, colours[at%len(colours)], html.EscapeString(f.Cache))
		}
		px, py, colour := x.at(f.Passes), y.at(r.quality(f)), colours[at%len(colours)]
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="4" fill="%s"/><text x="%.1f" y="%.1f" font-size="10" fill="%s">%s</text>`+"\n", px, py, colour, px+6, py-4, colour, html.EscapeString(f.Policy))
	}
}

// quality is what the plot shows of figures.
func (r *CanvasReport) quality(f CanvasFigures) float64 {
	if r.Lists {
		return f.Right
	}
	return f.Loss
}

func (r *CanvasReport) qualityName() string {
	if r.Lists {
		return "share of right lists"
	}
	return "nats per token by " + r.Judge + " (less is better)"
}
