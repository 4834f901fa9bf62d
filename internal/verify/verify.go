// Package verify holds acceptance rules: each decides which drafts become text, and which token follows them.
//
// A [Rule] is a value: its name, its grade, what drafts must bring for it, and the function that decides. It reads a
// round through a [View] and answers with an [Outcome]. [Rules] lists them; README.md has the contract of an acceptor, and
// docs/adding/rule.md adds one.
package verify

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	opts "grove/internal/options"
	"grove/internal/sample"
	"grove/internal/text/token"
)

// Root is the end of the text, as a node of the draft tree.
const Root = -1

// Grade says how an answer compares with the answer of plain decoding.
type Grade string

// The grades.
const (
	Exact            Grade = "exact"             // the same tokens and log-probabilities for a seed
	SameDistribution Grade = "same-distribution" // the same text at temperature 0, the same distribution above it
	Lossy            Grade = "lossy"             // another text
)

// grades are the grades, the strictest first.
var grades = []Grade{Exact, SameDistribution, Lossy}

// Distribution is a probability distribution over some tokens; all other tokens have probability 0.
type Distribution struct {
	IDs []token.ID
	P   []float32 // above zero; they sum to 1
}

// Of returns the probability of a token.
func (d Distribution) Of(id token.ID) float64 {
	if i := slices.Index(d.IDs, id); i >= 0 {
		return float64(d.P[i])
	}
	return 0
}

// Purpose tells apart the random numbers of one index.
type Purpose = sample.Purpose

// The purposes of random numbers of rules. The test of draw k behind a node has the purpose PurposeTest + NodePurposes*k. Drafters
// have the even purposes.
const (
	PurposeTest  Purpose = 1 // the test of a draft
	PurposeNext  Purpose = 3 // the token that follows the accepted drafts, as [View.Pick] draws it
	NodePurposes Purpose = 4 // the stride from one draw, or one node, to the next
)

// View is a round as a rule sees it: the drafts, the rows that were run, and random numbers. Nodes are places in the
// draft tree; [Root] is the end of the text. A draft that was not run, because the step had no space for its row, can be
// part of the tree: where a rule accepts it, the round ends with it. So the distribution of the text does not depend on
// the choice of the drafts to run. A view may leave out the last draws behind a node, and what is behind them, where that
// does not depend on their tokens.
type View interface {
	// Children appends the drafts behind a node that was run to dst, in the order in which they were drafted.
	Children(dst []int, node int) []int
	// Token returns the token of a draft.
	Token(node int) token.ID
	// Ran reports whether a draft was run, so that Draw, Probs and Children may be asked of it.
	Ran(node int) bool
	// Samples tells which of the draws behind its parent a draft stands for: bit k for the k-th; 0: it was not drawn.
	Samples(node int) uint64
	// DraftDistribution returns the distribution from which the children of a node were drawn; empty: they are not draws.
	DraftDistribution(node int) Distribution

	// Draw returns the token that plain decoding draws behind a node. It is asked at most once a node and round.
	Draw(node int) (token.ID, error)
	// Probs returns the processed distribution behind a node, over the vocabulary. It is valid until the next call of
	// Probs, and the rule may change it. It is asked at most once a node and round.
	Probs(node int) ([]float64, error)
	// Logits returns the logits behind a node that the target's token is drawn from: behind penalties and stages, before
	// temperature and truncation. They are valid until the next call of a function of the view, and not the rule's to change.
	Logits(node int) ([]float32, error)
	// State returns the final state of a draft that was run, where the rule has States; it is not the rule's to change.
	State(node int) []float32
	// Number returns a random number above 0 and below 1. It depends on the seed, the node's index in the text and the
	// use alone.
	Number(node int, use Purpose) float64
	// Pick draws the token behind a node from p, with random numbers that no other function gives. It returns token.None
	// where p has no mass.
	Pick(node int, p []float64) token.ID
}

// Outcome is the decision of a rule over a round: a path of drafts from the root, and the token that follows it.
type Outcome struct {
	Accepted []int    // drafts that were run, each the parent of the next
	Next     token.ID // token.None only beside an error
}

// reset empties an outcome and keeps its storage.
func (o *Outcome) reset() { o.Accepted, o.Next = o.Accepted[:0], token.None }

// finish draws the token behind a node from what a rule left of the distribution there.
func (o *Outcome) finish(v View, node int, p []float64) error {
	if o.Next = v.Pick(node, p); o.Next == token.None {
		return errNoMass
	}
	return nil
}

// step accepts a draft. It reports whether the rule goes on behind it: a draft that was not run ends the round.
func (o *Outcome) step(v View, child int) bool {
	if !v.Ran(child) {
		o.Next = v.Token(child)
		return false
	}
	o.Accepted = append(o.Accepted, child)
	return true
}

// conclude accepts a path of drafts, and draws the token behind it from p, unless the row there has a fault.
func (o *Outcome) conclude(v View, path []int, p []float64, fault error) error {
	node := Root
	for _, node = range path {
		if !o.step(v, node) {
			return nil
		}
	}
	if fault != nil {
		return fault
	}
	return o.finish(v, node, p)
}

var errNoMass = errors.New("verify: no token has a probability above 0; the model gives no distribution here")

// Properties describes the drafts of a round: a rule needs some of them, and a method provides some.
type Properties struct {
	Distributions   bool // the distributions from which drafts were drawn, one draw after the other
	WithReplacement bool // draws with replacement, equal ones counted by [View.Samples]; otherwise, of more than one, they are without
	Chain           bool // one draft behind a node at most
}

// Rule is an acceptance rule.
type Rule struct {
	Name  string // as a user writes it
	Paper string // where it comes from, and the year
	Grade Grade  // of the text that it gives, where drafts bring what it needs
	Needs Properties

	// States says that the rule asks for [View.State], so that rows give their final states.
	States bool

	// New returns an acceptor for one text at a time.
	New func() Acceptor
	// WithOptions returns what makes acceptors with options as a user writes them, name=value with commas between; nil: the rule has
	// none.
	WithOptions func(options string) (func() Acceptor, error)
	Options     string // with their values where none are given
}

// Acceptor applies a rule. It keeps scratch space only, and is for one goroutine. After the first rounds of a size no
// call allocates.
type Acceptor interface {
	// Accept decides over a round: it is a pure function of the view. On an error, out holds the drafts that were
	// accepted before it.
	Accept(v View, out *Outcome) error
}

// rules are all rules: each file of a rule adds its own when the package is initialised.
var rules []Rule

// register adds a rule to the list, and returns it. It panics on a name that is taken.
func register(r Rule) Rule {
	if slices.ContainsFunc(rules, func(other Rule) bool { return other.Name == r.Name }) {
		panic("verify: rule " + r.Name + " is registered twice")
	}
	rules = append(rules, r)
	return r
}

// Rules returns all rules: exact ones, those of the same distribution, lossy ones, and by name in each grade.
func Rules() []Rule {
	return slices.SortedFunc(slices.Values(rules), func(a, b Rule) int {
		return cmp.Or(cmp.Compare(slices.Index(grades, a.Grade), slices.Index(grades, b.Grade)), cmp.Compare(a.Name, b.Name))
	})
}

// Find returns the rule of a name, with the options behind it where there are some, such as threshold:beta=5,tau=3. Errors: a
// name that is not known, with those that are; options that the rule does not take.
func Find(name string) (Rule, error) {
	var names []string
	bare, options, set := strings.Cut(name, ":")
	for _, r := range Rules() {
		if r.Name != bare {
			names = append(names, r.Name)
			continue
		}
		if !set {
			return r, nil
		}
		if r.WithOptions == nil {
			return Rule{}, fmt.Errorf("verify: rule %s takes no options; %q are given", bare, options)
		}
		var err error
		r.New, err = r.WithOptions(options)
		return r, err
	}
	return Rule{}, fmt.Errorf("verify: rule %q is not known; use one of: %s%s", name, strings.Join(names, ", "), opts.NearHint(bare, names))
}
