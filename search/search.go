// Package search holds the parts that all searches share: several sequences with one beginning, of which one becomes
// the answer. A program is a package below this one; it works with the verbs of [engine.Sequence]: Next, Fork,
// Truncate, SetSampleIndex, CancelSiblings.
package search

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"

	"grove/internal/engine"
	"grove/internal/options"
	"grove/internal/text/token"
	"grove/method/datastore"
	"grove/search/bytewise"
)

// Problem is a prompt to search an answer for.
type Problem struct {
	// First is the sequence behind the prompt. The program draws from it, forks it, and leaves it open.
	First *engine.Sequence
	// Index is the sample index of the answer's first sample; those of the others follow.
	Index int
	// Ender returns a function that is told the tokens of one answer in order and reports whether it ends with a token.
	Ender func() func(engine.SampledToken) bool
	// MaxTokens is how many tokens an answer may have; 0: as many as the context holds.
	MaxTokens int
	// Slots is how many sequences can be computed at a time.
	Slots int
	// Greedy says that every sample is the same.
	Greedy bool
	// Weighed says that a stage weighs the samples; see [sample.Weigher].
	Weighed bool
	// Datastore holds texts of the model's tokens; nil: there are none.
	Datastore *datastore.Store
	// Ends reports whether a token ends an answer, whatever stands before it.
	Ends func(token.ID) bool
	// Text returns the text of an answer's tokens.
	Text func([]token.ID) string
	// Piece appends the text of one token; special shows control tokens, too.
	Piece func(dst []byte, id token.ID, special bool) ([]byte, error)
	// Scorer rates texts; nil: nothing does.
	Scorer *Scorer
	// Seed is that of the request.
	Seed uint64
	// Encode returns the tokens of a text, without those that begin or end one.
	Encode func(text string) ([]token.ID, error)
	// Layers is how many the model has.
	Layers int
	// Watch is told how far the search is; nil: nobody is. It changes nothing.
	Watch *Watch
	// Prompt is the tokens behind which First stands.
	Prompt []token.ID
	// Words returns the vocabulary of First's model as bytes, or an error where it has no such view.
	Words func() (*bytewise.Vocabulary, error)
	// Guides are the models that are open beside First's to steer it.
	Guides []Guide
	// Answer returns how a sequence of a guide draws as the request says: with the request's settings and stages of its own.
	Answer func() engine.Answer
	// Terms are those of the request, for sequences of guides.
	Terms engine.Terms
	// Combiner draws the tokens of First for a program that is [Combining]; nil for others.
	Combiner *Combiner
}

// Rand returns random numbers for what a program draws besides tokens: the same for the same seed and sample index.
func (p *Problem) Rand() *rand.Rand { return rand.New(rand.NewPCG(p.Seed, uint64(p.Index))) }

// Attempt is one answer that a program tried.
type Attempt struct {
	Index  int  `json:"index"`  // its sample index
	Tokens int  `json:"tokens"` // when the search ended
	Ended  bool `json:"ended"`  // by itself, not by its length or by the program
	// Weight is the share of the attempts' probability that the program gives to it; 0 where it weighs none.
	Weight float64 `json:"weight,omitempty"`
	// IDs are its tokens, the one that ends it among them, where the program gives several answers to choose from.
	IDs  []token.ID `json:"ids,omitempty"`
	Text string     `json:"text,omitempty"` // of IDs; programs leave it empty
	// Score is what it was chosen by, where the program rates its attempts; Fault says why one has no score.
	Score float64 `json:"score,omitempty"`
	Fault string  `json:"fault,omitempty"`
	// Answer is what the program took from its text, to compare.
	Answer string `json:"answer,omitempty"`
	// Perplexity is that of the answers of a program that suggests several, from 1, and Logprob is the sum of the logarithms of
	// their tokens' probabilities, by the rows that they share where they do.
	Perplexity float64 `json:"perplexity,omitempty"`
	Logprob    float64 `json:"logprob,omitempty"`
}

// Result is the answer that a program chose, and its attempts.
type Result struct {
	Tokens   []engine.SampledToken
	Index    int // the sample index of the answer
	Attempts []Attempt
	// Figures are counts and measures of the search by their names.
	Figures map[string]float64
}

// Program searches. It is safe for concurrent use.
type Program interface {
	// Samples returns how many sample indices an answer takes.
	Samples() int
	// Check returns an error where the problem cannot be searched; it is called before the first token. First is not set.
	Check(p *Problem) error
	// Run searches. It closes the forks that it makes.
	Run(ctx context.Context, p *Problem) (*Result, error)
}

// Wide is a program that computes more sequences at a time than it takes sample indices.
type Wide interface {
	Program
	// Slots returns how many; with fewer it takes longer.
	Slots() int
}

// Slots returns how many sequences of a model a program computes at a time.
func Slots(p Program) int {
	if w, ok := p.(Wide); ok {
		return w.Slots()
	}
	return p.Samples()
}

// Info describes a program. Every program is lossy: its answer is not that of plain decoding.
type Info struct {
	Name    string
	Paper   string // its name in the literature, and the year
	Options string // what a user may set, as name=default, with commas between
	// Open makes the program with options, which keep the error of one that is out of range.
	Open func(o *options.Options) Program
}

var registry = map[string]Info{}

// Register adds a program. It panics on a name that is taken.
func Register(i Info) {
	if _, taken := registry[i.Name]; taken {
		panic("search: " + i.Name + " is registered twice")
	}
	registry[i.Name] = i
}

// All returns the registered programs, sorted by name.
func All() []Info {
	var all []Info
	for _, i := range registry {
		all = append(all, i)
	}
	sort.Slice(all, func(a, b int) bool { return all[a].Name < all[b].Name })
	return all
}

// Open makes the program that a text names: a name, then options as name=value, all with commas between, such as "ffs,n=4".
func Open(text string) (Program, error) {
	name, rest, _ := strings.Cut(text, ",")
	info, ok := registry[strings.TrimSpace(name)]
	if !ok {
		var names []string
		for _, i := range All() {
			names = append(names, i.Name)
		}
		return nil, fmt.Errorf("search: %q is not known; these are: %s%s", name, strings.Join(names, ", "), options.NearHint(name, names))
	}
	o := options.Parse(rest, ",")
	p := info.Open(o)
	if err := o.Err(); err != nil {
		return nil, fmt.Errorf("search: %s: %w; its options are %s", info.Name, err, info.Options)
	}
	return p, nil
}

// Fit returns an error where the n answers of a program, which Options.Int bounds from 2, are more than the slots.
func (p *Problem) Fit(program string, n int) error {
	if n > p.Slots {
		return fmt.Errorf("search: %s: n is %d; it must be from 2 to %d, the slots of the model (--parallel, Options.Parallel)", program, n, p.Slots)
	}
	return nil
}

// Differs returns an error where all samples of a program would be the same.
func (p *Problem) Differs(program string) error {
	if p.Greedy {
		return fmt.Errorf("search: %s: the temperature is 0; it must be above 0, or all samples are the same", program)
	}
	return nil
}
