// specdec.go drafts a chain by a second model, for as long as a head expects it to be accepted (SpecDec++, Huang et al. 2024).
//
// The head reads the draft model's final state behind a draft: so it says how likely the draft before the last one is to be accepted,
// and the last one is not judged when it decides whether there is another.

package models

import (
	"fmt"

	"grove/method"
	"grove/method/grow"
)

// The number of drafts of a chain.
const (
	fewest      = 2
	specdecMost = 20
)

// specdecOptions are what a user may choose. Each of the 201 values has its own texts to learn of.
var specdecOptions = []method.Option{{Name: "h", Is: "X, the probability of a rejection above which a chain ends", Usual: 70, Least: -100, Most: 100, Hundredths: true}}

func init() {
	method.Register(method.Info{
		Name: "draft-specdec", Paper: "SpecDec++: a chain whose length a head decides, 2024", Kind: method.KindModel, Grade: method.Exact,
		NotAuto: "it was not measured beside draft",
		Needs:   "a draft model with the same vocabulary and an acceptance head for it", RunsRows: true,
		CheckNeeds: specdecMeets,
	}.Takes(specdecOptions, func(e method.Env, n []int) (method.Method, error) {
		return &specdec{float64(n[0]) / 100, e, grow.NewTrim(e)}, nil
	}))
}

// specdecMeets returns an error where there is no draft model, or no head.
func specdecMeets(e method.Env) error {
	if e.Draft != nil && e.AcceptHead == nil {
		return fmt.Errorf("%w: the acceptance head is missing", method.ErrNeeds)
	}
	return grow.MeetsDraft(e, true)
}

// specdec is a draft model with its head.
type specdec struct {
	h    float64
	env  method.Env
	trim *grow.Trim // nil: the whole vocabulary is drafted from
}

// NewDrafter implements [method.Method].
func (m *specdec) NewDrafter(method.Trunk) (method.Drafter, error) {
	reader := m.env.AcceptHead.Reader()
	shape := grow.Shape{Ranks: []int{1}, Beam: 1, Depth: specdecMost, State: true, Stop: func() grow.Stop { return &rule{h: m.h, accepted: reader.Accepted} }}
	return grow.NewDrafter(shape, grow.NewBranch(m.env, m.trim), m.env), nil
}

// rule ends a chain where a rejection among its drafts is likelier than h.
type rule struct {
	h        float64
	accepted func(state []float32) float32 // how likely the draft is that the state has read
	all      float64                       // how likely all drafts but the last are
}

// Begin implements [grow.Stop].
func (r *rule) Begin() {}

// Ends implements [grow.Stop].
func (r *rule) Ends(d grow.ChainDraft) bool {
	if d.Depth == 1 {
		r.all = 1 // the state is that of the text
	} else {
		r.all *= float64(r.accepted(d.State))
	}
	return d.Depth >= specdecMost || d.Depth >= fewest && 1-r.all > r.h
}

// Followed implements [grow.Stop].
func (r *rule) Followed(int, int, int) {}
