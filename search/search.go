// Package search holds the parts that all searches share: several sequences with one beginning, of which one becomes
// the answer. A program is a package below this one; it works with the verbs of [engine.Sequence]: Next, Fork,
// Truncate, SetSampleIndex, CancelSiblings.
package search

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"grove/engine"
	"grove/internal/near"
	"grove/internal/options"
	"grove/method/datastore"
	"grove/sample"
	"grove/text/token"
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
}

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
	// Perplexity ranks the answers of a program that suggests several, 1 being the best, and Logprob is the sum of the logarithms of
	// their tokens' probabilities, by the rows that they share.
	Perplexity float64 `json:"perplexity,omitempty"`
	Logprob    float64 `json:"logprob,omitempty"`
}

// Result is the answer that a program chose, and its attempts.
type Result struct {
	Tokens   []engine.SampledToken
	Index    int // the sample index of the answer
	Attempts []Attempt
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
		return nil, fmt.Errorf("search: %q is not known; these are: %s%s", name, strings.Join(names, ", "), near.Hint(name, names))
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
		return fmt.Errorf("search: %s: n is %d; it must be from 2 to %d, the slots of the model", program, n, p.Slots)
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

// Samples go on side by side, in steps that they share.
type Samples struct {
	All       []Sample
	MaxTokens int // tokens that each may have; 0: as many as the context holds
	ctx       context.Context
	errs      []error
	forks     []*engine.Sequence
	enders    func() func(engine.SampledToken) bool
}

// Sample is one of several answers on their way: a sequence with a sample index, and the tokens that it has drawn.
type Sample struct {
	Seq   *engine.Sequence
	Index int // its sample index
	Drawn []engine.SampledToken
	Ended bool // by itself
	Full  bool // it has as many tokens as it may have
	ends  func(engine.SampledToken) bool
}

// Fork makes the samples from..to-1 of a problem whose first sequence stands behind the prompt. That
// sequence becomes the first of them. It makes fewer where fewer slots are free, one at least: a search waits for no
// slot, so that searches cannot wait for each other.
func Fork(ctx context.Context, p *Problem, from, to int) (*Samples, error) {
	ss := &Samples{MaxTokens: p.MaxTokens, ctx: ctx, enders: p.Ender}
	p.First.SetSampleIndex(p.Index + from)
	for i := from; i < to; i++ {
		s := p.First
		if i > from {
			var err error
			if s, err = p.First.Fork(p.Index + i); errors.Is(err, engine.ErrBusy) {
				break
			} else if err != nil {
				return nil, errors.Join(err, ss.Close())
			}
			ss.forks = append(ss.forks, s)
		}
		ss.All = append(ss.All, Sample{Seq: s, Index: p.Index + i, ends: p.Ender()})
	}
	ss.errs = make([]error, len(ss.All))
	return ss, nil
}

// ForkAll makes the first n samples of a problem, as Fork does, or none: fewer free slots are an
// [engine.ErrBusy].
func ForkAll(ctx context.Context, p *Problem, program string, n int) (*Samples, error) {
	ss, err := Fork(ctx, p, 0, n)
	if err == nil && len(ss.All) < n {
		err = fmt.Errorf("search: %s: %d of %d slots are free: %w", program, len(ss.All), n, engine.ErrBusy)
		return nil, errors.Join(err, ss.Close())
	}
	return ss, err
}

// Draw draws a token for each sample that is neither ended nor full, in steps that they share, and reports whether
// there was one. An error of one sample is the error of all.
func (ss *Samples) Draw() (drew bool, err error) {
	drew, errs := ss.Step()
	return drew, errors.Join(errs...)
}

// Step is Draw with the error of each sample; a sample with an error is full. The slice is good until the next call.
func (ss *Samples) Step() (drew bool, errs []error) {
	clear(ss.errs)
	done := make(chan struct{})
	running := 0
	for i := range ss.All {
		if one := &ss.All[i]; !one.Ended && !one.Full {
			running++
			go func() {
				ss.errs[i] = one.draw(ss.ctx, ss.MaxTokens)
				done <- struct{}{}
			}()
		}
	}
	for range running {
		<-done
	}
	for i, err := range ss.errs {
		ss.All[i].Full = ss.All[i].Full || err != nil
	}
	return running > 0, ss.errs
}

// Follow gives a sample a token that its program has chosen, in place of a draw.
func (ss *Samples) Follow(ctx context.Context, i int, id token.ID) error {
	one := &ss.All[i]
	logits, err := one.Seq.Logits(ctx)
	if err != nil {
		return err
	}
	d := engine.SampledToken{Token: sample.Token{ID: id, Logprob: logprob(logits, id)}}
	if err := one.Seq.Follow(id); err != nil {
		return err
	}
	one.take(d, ss.MaxTokens)
	return nil
}

// logprob returns the logarithm of the model's own probability of a token.
func logprob(logits []float32, id token.ID) float32 {
	sum := 0.0
	for _, l := range logits {
		sum += math.Exp(float64(l - logits[id]))
	}
	return float32(-math.Log(sum))
}

// Copy makes sample to a copy of sample from, with its own sample index, so that it goes on otherwise. The sample of the
// problem's first sequence computes the text behind the prompt again; the others fork.
func (ss *Samples) Copy(to, from int) error {
	t, f := &ss.All[to], &ss.All[from]
	ends := ss.enders()
	for _, d := range f.Drawn {
		ends(d)
	}
	switch {
	case f.Ended || f.Full:
	case to == 0:
		if err := t.Seq.Truncate(t.Seq.Len() - len(t.Drawn)); err != nil {
			return err
		}
		for _, d := range f.Drawn {
			if err := t.Seq.Follow(d.ID); err != nil {
				return err
			}
		}
	default:
		if err := t.Seq.Close(); err != nil {
			return err
		}
		s, err := f.Seq.Fork(t.Index)
		if err != nil {
			return err
		}
		ss.forks[to-1], t.Seq = s, s
	}
	t.Drawn, t.Ended, t.Full, t.ends = slices.Clone(f.Drawn), f.Ended, f.Full, ends
	return nil
}

func (one *Sample) draw(ctx context.Context, most int) error {
	d, err := one.Seq.Next(ctx)
	if errors.Is(err, engine.ErrContext) {
		one.Full = true
		return nil
	}
	if err != nil {
		return err
	}
	one.take(d, most)
	return nil
}

// take adds a token.
func (one *Sample) take(d engine.SampledToken, most int) {
	one.Drawn = append(one.Drawn, d)
	one.Ended = one.ends(d)
	one.Full = most > 0 && len(one.Drawn) == most
}

// Close closes the forks.
func (ss *Samples) Close() (err error) {
	for _, s := range ss.forks {
		err = errors.Join(err, s.Close())
	}
	ss.forks = nil
	return err
}
