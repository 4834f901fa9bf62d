package layers

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"grove/internal/forest"
)

// Places says how many layers a token runs by its place behind the prompt (SkipDecode: Autoregressive Skip Decoding with Batching and Caching for
// Efficient LLM Inference, Del Corro et al., 2023): From at the first place, To at the last of Over places and behind them, in between on a
// straight line. It runs the first First layers and the last of the model. So it runs no layer that a token before it did not run. The zero value is all
// layers. Grade: lossy.
type Places struct {
	From  int // 0: all layers
	To    int // 0: From
	First int
	Over  int

	// Period, above 0, is of another way (LoRA-Drop, 2026), without the fields before: of so many places the first runs all layers, and the others run those that cannot be substituted.
	Period int
}

const (
	usualFirst = 1
	usualOver  = 256
	mostOver   = 1 << 20
	mostPeriod = 1 << 10
)

// ParsePlaces reads options as a user writes them: to=N,from=N,first=N,over=N, each at most once and to always, or period=N. "": the zero value.
func ParsePlaces(s string) (p Places, err error) {
	if s == "" {
		return p, nil
	}
	if period, ok := strings.CutPrefix(s, "period="); ok {
		if p.Period, err = strconv.Atoi(period); err != nil || p.Period < 1 || p.Period > mostPeriod {
			return Places{}, fmt.Errorf("skipped layers: period=%q; it must be 1 to %d places, and stands alone", period, mostPeriod)
		}
		return p, nil
	}
	p = Places{First: usualFirst, Over: usualOver}
	fields := map[string]*int{"to": &p.To, "from": &p.From, "first": &p.First, "over": &p.Over}
	for _, one := range strings.Split(s, ",") {
		name, value, _ := strings.Cut(one, "=")
		n, err := strconv.Atoi(value)
		field := fields[name]
		if err != nil || field == nil || n < 0 || n == 0 && name != "first" || n > mostOver {
			return Places{}, fmt.Errorf("skipped layers: option %q is not known; use to=N, from=N, first=N and over=N, each at most once, with commas between, or period=N alone", one)
		}
		*field = n
		delete(fields, name)
	}
	if p.To == 0 {
		return Places{}, errors.New("skipped layers: to=N is missing, the layers that a token runs at last")
	}
	return p, nil
}

// On reports whether the places are not the zero value.
func (p Places) On() bool { return p != Places{} }

// Fits returns the places with all numbers, for a model of so many layers, or an error that names the one that the model cannot have.
func (p Places) Fits(layers int) (Places, error) {
	if p.Period != 0 {
		if p.Period < 1 || p.Period > mostPeriod || p != (Places{Period: p.Period}) {
			return p, fmt.Errorf("skipped layers: period=%d; it must be 1 to %d places, and stands alone", p.Period, mostPeriod)
		}
		return p, nil
	}
	if p.From == 0 {
		p.From = layers
	}
	if p.To == 0 {
		p.To = p.From
	}
	switch {
	case p.From < 1 || p.From > layers:
		return p, fmt.Errorf("skipped layers: from=%d: the model has %d layers; it must be 1 to %d", p.From, layers, layers)
	case p.To < 1 || p.To > p.From:
		return p, fmt.Errorf("skipped layers: to=%d: it must be 1 to %d, the layers at the first place", p.To, p.From)
	case p.First < 0 || p.First > p.To:
		return p, fmt.Errorf("skipped layers: first=%d: it must be 0 to %d, the layers at the last place", p.First, p.To)
	case p.Over < 1 || p.Over > mostOver:
		return p, fmt.Errorf("skipped layers: over=%d: it must be 1 to %d places", p.Over, mostOver)
	}
	return p, nil
}

// Substitutes reports whether a token at a place substitutes layers, from 0 on; of a period alone.
func (p Places) Substitutes(place int) bool { return p.Period > 1 && place%p.Period != 0 }

// Count returns how many layers a token at a place runs, from 0 on. p is one that [Places.Fits] returned.
func (p Places) Count(place int) int {
	last := p.Over - 1
	if place >= last {
		return p.To
	}
	return p.From - (2*(p.From-p.To)*place+last)/(2*last)
}

// Skip returns the layers that a token at a place of a model of so many layers does not run. Those of a place are among those of the next one.
func (p Places) Skip(layers, place int) forest.Layers {
	return forest.LayerRange(p.First, p.First+layers-p.Count(place))
}
