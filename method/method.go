// Package method defines what drafting methods share: the interface that each implements, the tree of drafts that they fill, the
// history of the text that they draft for, and the registry that lists them. A method is one package below this one.
package method

import (
	"cmp"
	"context"
	"encoding"
	"fmt"
	"maps"
	"slices"
	"strings"

	"grove/internal/compute"
	"grove/internal/forest"
	opts "grove/internal/options"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/internal/verify"
	"grove/method/datastore"
)

// Grade says what a method leaves of plain decoding's answer; see [verify.Grade].
type Grade = verify.Grade

// The grades.
const (
	Exact            = verify.Exact
	SameDistribution = verify.SameDistribution
	Lossy            = verify.Lossy
)

// Kind is the source of a method's drafts. It is for people who choose a method: nothing in the engine depends on it.
type Kind string

// The kinds, each a folder of packages.
const (
	KindText   Kind = "text"   // what the text holds
	KindLogits Kind = "logits" // what the model said in earlier steps
	KindModel  Kind = "model"  // a second model
	KindSelf   Kind = "self"   // the model's own layers
	KindHeads  Kind = "heads"  // trained heads and modules that read the model's states
)

// NodePurposes is the stride between the random numbers of one node of a tree and the next; see [verify.NodePurposes]. A drafter's
// own numbers have the remainder [PurposeDraft].
const (
	NodePurposes = verify.NodePurposes
	PurposeDraft = 2
)

// Info describes a method.
type Info struct {
	Name     string
	Paper    string // the method's name in the literature, and the year
	Kind     Kind
	Grade    Grade
	Rule     verify.Rule       // how its drafts become text; the zero value: [verify.Match]
	Provides verify.Properties // what its drafts bring for rules
	Needs    string            // what a user must give; "": nothing
	Auto     bool              // automatic mode uses it where its needs are met
	NotAuto  string            // why automatic mode does not use it, of an exact method

	// RunsRows says that drafting runs rows of a model and takes noticeable time: the planner asks where that pays.
	RunsRows bool
	// Lasting says that what is learned of its drafts is true of other runs, too, so that it is kept between them.
	Lasting bool
	// Replays says that it drafts from the text alone, so that answers on record can be replayed without the model.
	Replays bool

	// CheckNeeds returns an error that wraps [ErrNeeds] where what Env offers does not meet the method's needs; nil: it
	// has none.
	CheckNeeds func(Env) error
	// Open prepares the method for an engine. Its needs are met.
	Open func(Env) (Method, error)

	// WithOption returns Open for an option as a user writes it, name=value without a comma, and the option in the one spelling that stands for
	// all of the same value. A method has few values: the engine keeps what each has learned. nil: it has no option.
	WithOption func(option string) (open func(Env) (Method, error), spelling string, err error)
	Options    string // with its value where none is given
}

// ErrNeeds reports a method that cannot be opened without what it needs.
var ErrNeeds = fmt.Errorf("none is given")

// ErrOnRecord reports a method that runs rows of the target, where there is none.
var ErrOnRecord = fmt.Errorf("%w: the answer is on record", ErrNeeds)

// Env holds the models and the data that a method is opened with.
type Env struct {
	Vocabulary int
	Target     Model            // the model that drafts are verified by; nil: the answer is on record
	Draft      Model            // a second model; nil: none was given
	VocabMap   *VocabMap        // relates its tokens to the target's; nil: they are the same
	Modules    []*Module        // draft modules of the target, at most one of a family
	Middle     Model            // between the two in size, with the target's vocabulary; nil: none was given
	Datastore  *datastore.Store // texts of the target's tokens; nil: none was given
	AcceptHead *AcceptanceHead  // of the draft model; nil: none was given
	DraftVocab int              // tokens that the head of the draft model computes, the most frequent ones; 0: all; [AutoVocab]

	// VocabChoice, where it is not nil, chooses what DraftVocab leaves open.
	VocabChoice *VocabChoice
}

// AutoVocab is the number of tokens that stands for as many as give the most tokens a second.
const AutoVocab = -1

// VocabChoice chooses how much of its vocabulary the head of a draft model computes, in groups of [compute.SubsetGroup] tokens. It is
// safe for concurrent use.
type VocabChoice struct {
	// Groups returns a number of groups, the most frequent ones: coverage[i] is the share of texts that the first i+1 make up.
	Groups func(coverage []float64) int
	// Counts is how often the tokens of each group were in texts; nil: nothing is known. It is not changed.
	Counts []uint32
}

// Method is a method opened for texts of an engine that have one salt. It is safe for concurrent use; what its drafters
// learn across texts is kept here and nowhere else, within a bound.
type Method interface {
	// NewDrafter returns a drafter for one text at a time. own is the text's own trunk in the target, on which the drafter
	// may grow rows while it drafts; it is nil where the answer is on record.
	NewDrafter(own Trunk) (Drafter, error)
}

// Drafter drafts what follows a text. It is for one goroutine at a time. After the first texts of a size, no call
// allocates. Slices are read during the call and not kept.
type Drafter interface {
	// Begin starts a text, whatever was before. The history is the drafter's to read until the next Begin.
	Begin(h *History) error
	// Committed tells what was added to the text since the last call, and what the last round's rows gave.
	Committed(r Update)
	// Draft adds drafts to the tree, whose root is the end of the text; it may add none. An error ends the generation.
	Draft(ctx context.Context, t *Tree) error
}

// Update lists the tokens that were added to a text, and the outputs of rows.
type Update struct {
	IDs    []token.ID  // added to the text
	Before token.ID    // the token before that of the first row; [token.None]: there is none
	Rows   []RowResult // of the rows that the last round ran, or the prompt's where [Wants.Prompt] asks for them; parents come before children

	// Extra has what the last round's extra rows of the drafter gave that followed its last accepted draft, in order; see [Tree.AddExtra].
	Extra []ExtraResult
}

// RowResult has the outputs of one row of a round, as far as [Wants] asks for them. Slices are valid during
// [Drafter.Committed].
type RowResult struct {
	ID       token.ID // the row's token
	At       int32    // its place in the text; of a row that was accepted the text has the token there
	Parent   int32    // its parent among the rows; -1: the end of the text before the step
	Node     int32    // its place in the tree; [Root]: the text's last token, or a row of a prompt
	Accepted bool
	compute.Result
	Probs []float32 // the processed distribution behind the row; nil: it has none
}

// Wants lists the outputs that a drafter reads of rows that run without it.
type Wants struct {
	Rows   forest.Want // of each row of a round
	Probs  bool        // the processed distribution behind each row of a round
	Prompt forest.Want // of each row of a prompt that is computed; rows that the cache has give nothing
	Last   int         // tokens at a prompt's end whose rows give it; 0: all
}

// OfPrompt reports whether something of a prompt's rows is wanted.
func (w *Wants) OfPrompt() bool {
	p := &w.Prompt
	return p.Logits || p.Top > 0 || p.State || p.Hidden.Len() > 0
}

// Wanter is a drafter that wants something of rows. It is asked once, when the drafter is opened.
type Wanter interface {
	Drafter
	Wants() Wants
}

// Ahead is a drafter that works while the target's step runs. Work is called on a goroutine of its own when a round's
// step is queued; ctx ends when the step has ended, and the next call of the drafter comes after Work has returned.
// It may not grow rows on the text's own trunk, which the step uses.
type Ahead interface {
	Drafter
	Work(ctx context.Context)
}

// Closer is a drafter that holds something, such as a sequence of a draft model.
type Closer interface{ Close() error }

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

// Noise is the random numbers of a text's draws, for drafters that share them or draw by others of the same seed.
type Noise struct {
	Sampling    sample.Params
	SampleIndex int // the number of the answer in its request
}

// registry has the methods by name, ordered has all by kind and name, and automatic those of ordered that [Auto] stands for: each request asks for them.
var (
	registry           = map[string]Info{}
	ordered, automatic []Info
)

// Register adds a method. It panics on a name that is taken, and on a grade that its rule does not have.
func Register(i Info) {
	if _, taken := registry[i.Name]; taken {
		panic("method: " + i.Name + " is registered twice")
	}
	if i.Rule.New == nil {
		i.Rule = verify.Match
	}
	registry[i.Name] = i
	at, _ := slices.BinarySearchFunc(ordered, i, func(a, b Info) int { return cmp.Or(cmp.Compare(b.Kind, a.Kind), cmp.Compare(a.Name, b.Name)) })
	ordered = slices.Insert(ordered, at, i)
	automatic = slices.DeleteFunc(slices.Clone(ordered), func(i Info) bool { return !i.Auto })
}

// All returns the registered methods, sorted by kind and name.
func All() []Info { return slices.Clone(ordered) }

// Find returns a method by its name, with the option behind it where there is one, such as draft-specdec:h=0.3; its name is then the
// method's with the option. Errors: a name that is not known, with those that are; an option that the method does not take.
func Find(name string) (Info, error) {
	bare, option, set := strings.Cut(name, ":")
	if i, ok := registry[bare]; ok && set {
		return i.with(option)
	} else if ok {
		return i, nil
	}
	if why, ok := unbuilt[bare]; ok {
		return Info{}, fmt.Errorf("method: %s is not built: %s", bare, why)
	}
	names := slices.Sorted(maps.Keys(registry))
	return Info{}, fmt.Errorf("method: %q is not known; auto, off and these are: %s%s", name, strings.Join(names, ", "), opts.NearHint(name, append(names, "auto", "off")))
}

// unbuilt says of methods of the literature why grove has none.
var unbuilt = map[string]string{
	"k-forcing":   "its student drafts what one number a place draws by the inverse distribution function, and a draw here has a number for each token; use medusa or hydra",
	"human-prior": "its heads are adapters of recommenders, which draft nothing; use lora adapters for these",
}

// with returns the method with an option.
func (i Info) with(option string) (_ Info, err error) {
	if i.WithOption == nil {
		return Info{}, fmt.Errorf("method: %s takes no option; %q is given", i.Name, option)
	}
	if i.Open, option, err = i.WithOption(option); err != nil {
		return Info{}, fmt.Errorf("method: %s: %w", i.Name, err)
	}
	i.Name += ":" + option
	return i, nil
}
