package diffuse

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"grove/internal/forest"
	"grove/internal/options"
	"grove/internal/text/token"
)

// View is the sight that a policy has of a pass over a block.
type View struct {
	First, End int // places of the block in the canvas
	Pass       int // of the block, from 0
	Passes     int // that the block is to take, for policies that count them
	Mask       token.ID
	Canvas     []Place
	Masked     []int                   // places of the block that are masks and run, rising
	Proposals  []Proposal              // by place: of masks, and of the block's other places where the policy revises them
	Branches   int                     // of the canvas that a pass has room for
	Number     func(place int) float64 // a random number above 0 and below 1 of this pass
}

// Decision is the choice of a policy.
type Decision struct {
	Fix  []int   // masks, or tokens that are replaced, which become what is proposed
	Mask []int   // tokens that become masks again
	Try  []Trial // of a place that is fixed by none of these: the next pass tries them, and one of them is fixed
}

// Policy chooses the places that a pass fixes. It has the state of one canvas, and is for one goroutine.
type Policy interface {
	// Begin begins a block.
	Begin(v *View)
	// Choose adds places to a decision that is empty.
	Choose(d *Decision, v *View)
	// Revises reports whether places that are tokens may be masks or other tokens later, so that their proposals are wanted and nothing is final before its block is.
	Revises() bool
}

// Conditioner is a policy that lets the row of a mask read what an earlier pass gave in its place.
type Conditioner interface {
	Policy
	// Gave tells, before [Policy.Choose], what a pass gave for a place of the canvas that is a mask. The logits are not kept.
	Gave(place int, logits []float32)
	// Prior returns what the row of a mask reads beside it; nil: nothing.
	Prior(place int) *forest.Prior
}

// Info describes a policy.
type Info struct {
	Name    string                          `json:"name"`
	Paper   string                          `json:"paper"`
	Options string                          `json:"options"` // name=default, with commas between
	Open    func(o *options.Options) Policy `json:"-"`
}

// stateless is what policies without a state have in common: they begin nothing and revise nothing.
type stateless struct{}

// Begin implements [Policy].
func (stateless) Begin(*View) {}

// Revises implements [Policy].
func (stateless) Revises() bool { return false }

// chooser is a policy without a state.
type chooser struct {
	stateless
	choose func(d *Decision, v *View)
}

// Choose implements [Policy].
func (c chooser) Choose(d *Decision, v *View) { c.choose(d, v) }

var policies []Info

// Register adds a policy. It is called while packages are initialised.
func Register(i Info) { policies = append(policies, i) }

// Policies returns the policies, sorted by name.
func Policies() []Info {
	return slices.SortedFunc(slices.Values(policies), func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
}

// Usual is the policy where none is named.
const Usual = "threshold"

// OpenPolicy makes the policy that a text names: a name and options, as in "threshold:p=0.9", with commas between them; "" is [Usual].
func OpenPolicy(text string) (Policy, error) {
	name, text, _ := strings.Cut(text, ":")
	if name == "" {
		name = Usual
	}
	var names []string
	for _, i := range Policies() {
		names = append(names, i.Name)
		if i.Name != name {
			continue
		}
		o := options.Parse(text, ",")
		p := i.Open(o)
		if err := o.Err(); err != nil {
			return nil, fmt.Errorf("diffuse: policy %s: %w; its options are: %s", name, err, cmp.Or(i.Options, "none"))
		}
		return p, nil
	}
	return nil, fmt.Errorf("diffuse: policy %.40q is not known; these are: %s%s", name, strings.Join(names, ", "), options.NearHint(name, names))
}

// fits returns an error where a policy does not go with a cache, and gives the filter to the policy that goes by it.
func (s *Settings) fits(p Policy, c cache) error {
	_, counts := p.(*static)
	_, groups := c.(*recap)
	_, explores := p.(explorer)
	l, learns := p.(*learned)
	switch {
	case groups && !counts:
		return s.fault("cache", "the cache %s groups the passes of the policy static; choose this, or another cache", s.Cache)
	case (learns || p.Revises()) && c.reach() == runsSome:
		return s.fault("cache", "policy %s reads all places of a block, which the cache %s does not run; choose none, prefix, dual or vicinity", s.Policy, s.Cache)
	case explores:
		return s.explorable(c)
	case learns:
		return l.take(s)
	}
	return nil
}

// best returns the n masks of the highest scores, of equal ones the first.
func best(v *View, n int, score func(at int) float64) []int {
	ranked := slices.Clone(v.Masked)
	rank(ranked, score)
	return ranked[:min(max(n, 0), len(ranked))]
}

// rank sorts places by falling scores; equal ones stay in order.
func rank(places []int, score func(at int) float64) {
	slices.SortStableFunc(places, func(a, b int) int {
		switch x, y := score(a), score(b); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
}

// places adds the places of the block that are masks, or those that are tokens, to a list.
func (v *View) places(to []int, masks bool) []int {
	for at := v.First; at < v.End; at++ {
		if (v.Canvas[at].ID == v.Mask) == masks {
			to = append(to, at)
		}
	}
	return to
}

// confidence is the score of most policies.
func (v *View) confidence(at int) float64 { return v.Proposals[at].P }

// counts returns how many of n masks a pass of a schedule fixes: as many in each, the first ones one more where they do not divide.
func counts(n, pass, passes int) int {
	if pass >= passes {
		return n
	}
	k := n / passes
	if pass < n%passes {
		k++
	}
	return k
}

// fixAll adds the masks that pass a test, and the one of the highest score where none does.
func fixAll(d *Decision, v *View, score func(at int) float64, passes func(at int) bool) {
	for _, at := range v.Masked {
		if passes(at) {
			d.Fix = append(d.Fix, at)
		}
	}
	if len(d.Fix) == 0 {
		d.Fix = append(d.Fix, best(v, 1, score)...)
	}
}
