package benchmarks

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"grove"
	"grove/bench"
)

// choice compares automatic mode with the best of the methods that were measured beside it, in one category.
type choice struct {
	Category string
	Auto     float64 // speed-up over plain decoding
	Best     string  // method; [grove.MethodOff]: plain decoding is faster than all
	SpeedUp  float64 // of the best
}

// share is the speed of automatic mode over that of the best method.
func (c choice) share() float64 { return c.Auto / c.SpeedUp }

// choices compares automatic mode with each method by itself; none where figures lack one of them. Lists of methods and methods that are
// not exact take no part.
func choices(figures []bench.MethodFigures) (all []choice) {
	for _, auto := range figures {
		if auto.Method != grove.MethodAuto || auto.Category == bench.Overall {
			continue
		}
		c, others := choice{auto.Category, auto.SpeedUp, grove.MethodOff, 1}, 0
		for _, f := range figures {
			if f.Category != c.Category || f.Method == grove.MethodAuto || strings.Contains(f.Method, ",") || grove.MethodGrade(f.Method) != grove.Exact {
				continue
			}
			if others++; f.SpeedUp > c.SpeedUp {
				c.Best, c.SpeedUp = f.Method, f.SpeedUp
			}
		}
		if others > 0 {
			all = append(all, c)
		}
	}
	return all
}

// writeChoices writes the two figures that automatic mode is held to, each with the category where it is the least.
func writeChoices(w io.Writer, all []choice) error {
	if len(all) == 0 {
		return nil
	}
	slowest, missed := all[0], all[0]
	for _, c := range all {
		if cmp.Less(c.Auto, slowest.Auto) {
			slowest = c
		}
		if cmp.Less(c.share(), missed.share()) {
			missed = c
		}
	}
	_, err := fmt.Fprintf(w, "auto over plain decoding, at least: %.3f (%s)\nauto over the best method alone, at least: %.3f (%s: %s has %.2f)\n",
		slowest.Auto, slowest.Category, missed.share(), missed.Category, missed.Best, missed.SpeedUp)
	return err
}
