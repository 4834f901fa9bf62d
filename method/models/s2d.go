// s2d.go drafts a chain by a nested draft model, whose first layers draft too (S2D: Sorted Speculative Decoding, 2024).
//
// A draft runs the layers below the first exit, and only where the largest probability there is small those up to the next one. One such
// model serves several targets: each has its own exits and thresholds, which are the method's options. A model that was not trained for
// exits drafts as well by all layers alone, which is the method draft-chain.

package models

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"grove/method"
	"grove/method/grow"
)

// usual is the threshold of every exit, where none is given.
const usual = 0.5

// An exit, and a threshold in hundredths.
var (
	exit      = method.Option{Least: 1, Most: math.MaxInt}
	threshold = method.Option{Least: 0, Most: 100, Hundredths: true}
)

// s2dMost bounds the exits that a user gives.
const s2dMost = 8

func init() {
	method.Register(method.Info{
		Name: "s2d", Paper: "S2D: sorted speculative decoding with a nested draft model, 2024", Kind: method.KindModel, Grade: method.Exact,
		NotAuto: "it drafts well only with a draft model that was trained for early exits",
		Needs:   "a draft model of at least 2 layers with the same vocabulary", RunsRows: true,
		CheckNeeds: s2dMeets, Open: opener(s2dOptions{}), WithOption: set, Options: fmt.Sprintf("exits=L/M+threshold=%v", usual),
	})
}

// s2dMeets returns an error where there is no draft model, or none that has an exit.
func s2dMeets(e method.Env) error {
	if err := grow.MeetsDraft(e, true); err != nil {
		return err
	}
	if e.Draft.Size().Layers < 2 {
		return fmt.Errorf("%w; the draft model has one layer, so no exit", method.ErrNeeds)
	}
	return nil
}

// s2dOptions holds the choices of a user.
type s2dOptions struct {
	exits []int // rising numbers of layers; nil: none are given
	least []int // thresholds in hundredths, one of each exit, or of all; nil: none are given
}

// set reads the options exits and threshold, with a + between them.
func set(option string) (func(method.Env) (method.Method, error), string, error) {
	var o s2dOptions
	for part := range strings.SplitSeq(option, "+") {
		name, value, _ := strings.Cut(part, "=")
		into, one := &o.exits, exit
		if name == "threshold" {
			into, one = &o.least, threshold
		}
		if *into != nil || name != "exits" && name != "threshold" {
			return nil, "", unknown(option)
		}
		for _, number := range strings.Split(value, "/") {
			n, ok := one.Read(number)
			if !ok || len(*into) == s2dMost {
				return nil, "", unknown(option)
			}
			*into = append(*into, n)
		}
	}
	if !o.consistent() {
		return nil, "", unknown(option)
	}
	return opener(o), o.String(), nil
}

func unknown(option string) error {
	return fmt.Errorf("option %q is not known; use exits=L/M, rising numbers of layers from 1, %d at most, and threshold=P/Q, the largest probability below which a draft goes "+
		"on to the next exit, of each exit or of all: from 0 to 1, in hundredths; with a + between the two", option, s2dMost)
}

// consistent reports whether the exits rise and have as many thresholds, or one.
func (o *s2dOptions) consistent() bool {
	for i, e := range o.exits {
		if i > 0 && e <= o.exits[i-1] {
			return false
		}
	}
	return len(o.least) < 2 || len(o.least) == len(o.exits)
}

// String returns the one spelling of the options.
func (o *s2dOptions) String() string {
	var exits, least, all []string
	for _, e := range o.exits {
		exits = append(exits, exit.Text(e))
	}
	for _, l := range o.least {
		least = append(least, threshold.Text(l))
	}
	if exits != nil {
		all = append(all, "exits="+strings.Join(exits, "/"))
	}
	if least != nil {
		if slices.Max(o.least) == slices.Min(o.least) {
			least = least[:1]
		}
		all = append(all, "threshold="+strings.Join(least, "/"))
	}
	return strings.Join(all, "+")
}

// levels returns the levels of a model of so many layers. Without exits they are a quarter and a half of the layers. An exit that no draft
// leaves at is no level, and behind one that every draft leaves at there is none.
func (o *s2dOptions) levels(layers int) (all []grow.Level, err error) {
	exits := o.exits
	if exits == nil {
		for _, e := range []int{layers / 4, layers / 2} {
			if e > 0 {
				exits = append(exits, e)
			}
		}
	}
	if last := slices.Max(exits); last >= layers {
		return nil, fmt.Errorf("s2d: exit %d: the draft model has %d layers; an exit must be 1 to %d", last, layers, layers-1)
	}
	for i, e := range exits {
		hundredths := 100 * usual
		if len(o.least) > 0 {
			hundredths = float64(o.least[min(i, len(o.least)-1)])
		}
		switch hundredths {
		case 0:
			return append(all, grow.Level{Layers: e}), nil
		case 100:
		default:
			all = append(all, grow.Level{Layers: e, Least: float32(hundredths / 100)})
		}
	}
	return append(all, grow.Level{Layers: layers}), nil
}

func opener(o s2dOptions) func(method.Env) (method.Method, error) {
	return func(e method.Env) (method.Method, error) {
		levels, err := o.levels(e.Draft.Size().Layers)
		if err != nil {
			return nil, err
		}
		return &s2d{levels, e, grow.NewTrim(e)}, nil
	}
}

// s2d is a draft model with its levels.
type s2d struct {
	levels []grow.Level
	env    method.Env
	trim   *grow.Trim // nil: the whole vocabulary is drafted from
}

// NewDrafter implements [method.Method].
func (m *s2d) NewDrafter(method.Trunk) (method.Drafter, error) {
	n := grow.NewNested(grow.NewBranch(m.env, m.trim), m.levels)
	return grow.NewNestedDrafter(grow.Shape{Ranks: []int{1}, Beam: 1}, n, m.env), nil
}
