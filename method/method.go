// Package method is what drafting methods share: the interface that each implements, the tree of
// guesses that they fill, and the registry that lists them. A method is one package below this one.
package method

import (
	"context"
	"encoding"
	"fmt"
	"sort"
	"strings"

	"grove/compute"
	"grove/sample"
	"grove/text/token"
	"grove/verify"
)

// Grade says how an answer compares with the answer of plain decoding.
type Grade = verify.Grade

// The grades.
const (
	Exact            = verify.Exact
	SameDistribution = verify.SameDistribution
	Lossy            = verify.Lossy
)

// Kind says what a method drafts from, and so what drafting takes.
type Kind string

// The kinds.
const (
	KindText   Kind = "text"   // what the text holds: microseconds
	KindLogits Kind = "logits" // what the model said before: microseconds
	KindModel  Kind = "model"  // passes of a model: it is asked where that pays
)

// Rule says how the guesses of a method become text.
type Rule string

// The rules of package verify.
const (
	Match  Rule = ""       // by draws from the target: exact, for all guesses
	Block  Rule = "block"  // chains drawn from a law: same-distribution
	Reject Rule = "reject" // trees drawn from laws without replacement: same-distribution
)

// NodeUses is the stride between the random numbers of one node of a tree and the next; a drafter's own have
// the remainder 2.
const NodeUses = verify.NodeUses

// Info describes a method.
type Info struct {
	Name  string
	Paper string // the method's name in the literature, and the year
	Kind  Kind   // what it drafts from
	Grade Grade
	Rule  Rule
	Needs string // what a user must give; "": nothing
	Auto  bool   // automatic mode uses it where its needs are met

	// Open prepares the method for an engine. It returns an error where a need is not met.
	Open func(Env) (Method, error)
}

// Env is what an engine offers a method.
type Env struct {
	Vocabulary int
	Draft      Runner    // a second model; nil: none was given
	Words      *VocabMap // relates its tokens to the target's; nil: they are the same
	DraftVocab int       // tokens that the head of the draft model computes, the most frequent ones; 0: all
}

// Method is a method opened for one engine. It is safe for concurrent use; what its drafters learn across
// texts is kept here, within a bound.
type Method interface {
	// NewDrafter returns a drafter for one text at a time.
	NewDrafter() (Drafter, error)
}

// Saver is a method of which what was learned across texts can be kept: MarshalBinary returns it, [MaxSaved] bytes at
// most, and UnmarshalBinary takes it over when the method is opened again. What makes no sense is an error,
// and changes nothing.
type Saver interface {
	Method
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// MaxSaved bounds the bytes that a method keeps between runs.
const MaxSaved = 1 << 20

// Text describes a text that begins.
type Text struct {
	Prompt      []token.ID
	Prediction  []token.ID    // what the user expects of the answer; nil: nothing
	Sampler     *sample.Chain // how tokens are drawn, for drafters that share the noise of the draw
	SampleIndex int           // the number of the answer in its request
}

// Drafter guesses what follows a text. It is for one goroutine. After the first texts of a size, no
// call allocates. Slices are read during the call and not kept.
type Drafter interface {
	// Begin starts a text, whatever was before.
	Begin(t Text) error
	// Extend tells that tokens were added to the text.
	Extend(ids []token.ID)
	// Draft adds guesses to the tree, whose root is the end of the text; it may add none. An error ends
	// the generation: it is for a draft model that fails.
	Draft(ctx context.Context, t *Tree) error
}

// Watcher is a drafter that learns from what the model says behind every row that it runs, rejected ones
// included.
type Watcher interface {
	Drafter
	// Top returns how many of a row's largest logits Watch needs.
	Top() int
	// Watch tells what the rows of a step gave. Parents come before children; the rows of the path that was
	// accepted are marked.
	Watch(rows []Outcome)
}

// Outcome is what one row of a step gave.
type Outcome struct {
	ID       token.ID // the row's token
	Parent   int32    // its parent among the rows; -1: the end of the text before the step
	Accepted bool
	Top      []compute.TopEntry // the largest logits behind the row, falling
}

// Closer is a drafter that holds something, such as a sequence of a draft model.
type Closer interface{ Close() error }

var registry = map[string]Info{}

// Register adds a method. It panics on a name that is taken.
func Register(i Info) {
	if _, taken := registry[i.Name]; taken {
		panic("method: " + i.Name + " is registered twice")
	}
	registry[i.Name] = i
}

// All returns the registered methods, sorted by kind and name.
func All() []Info {
	all := make([]Info, 0, len(registry))
	for _, i := range registry {
		all = append(all, i)
	}
	sort.Slice(all, func(a, b int) bool {
		if all[a].Kind != all[b].Kind {
			return all[a].Kind > all[b].Kind
		}
		return all[a].Name < all[b].Name
	})
	return all
}

// Find returns a method by its name, or an error that lists the names there are.
func Find(name string) (Info, error) {
	if i, ok := registry[name]; ok {
		return i, nil
	}
	names := make([]string, 0, len(registry))
	for n := range registry {
		names = append(names, n)
	}
	sort.Strings(names)
	return Info{}, fmt.Errorf("method: %q is not known; auto, off and these are: %s", name, strings.Join(names, ", "))
}
