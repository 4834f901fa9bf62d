// Package reading says which states of a text are read, and what its tokens see.
package reading

import (
	"errors"
	"fmt"

	"grove/internal/forest"
	"grove/internal/kv"
	"grove/internal/model"
)

// Mask says which tokens of a text see which.
type Mask int

// The masks. ByModel is Full of an encoder and of a model that says so, and Causal of any other model.
const (
	ByModel Mask = iota
	Causal       // a token sees itself and those before it
	Full         // all tokens see each other
)

var masks = map[string]Mask{"": ByModel, "causal": Causal, "full": Full}

// Reading says which states are read. The zero value is the stream behind the final norm.
type Reading struct {
	Layers []int // the streams behind these layers as they are, ascending from 0, side by side; nil: a state
	Embeds bool  // of Layers: the stream before the first layer is read too, and stands before them
	State  bool  // of Layers: the state behind the final norm is read too, and stands behind them
	Exit   int   // the state is that of the model's first layers, so many, behind the final norm; 0: of all
	Stream bool  // of Exit: what is read is the stream behind its layers as it is
	Mask   Mask
	Causal forest.Layers // of Full: layers in which a token sees itself and those before it all the same
}

// Options choose a reading, and how it becomes vectors. Layers and Tokens count from 0, and from the end with -1; nil are all tokens, and the state behind the
// final norm.
type Options struct {
	Layers, Tokens   []int
	Exit, Dimensions int
	Mask             string // causal, full, or masks of layers, as in causal:0..11,full:12..last; "": by the model
}

// Of returns what options read of a text of n tokens, and the pool of its vectors, without a kind. An error names the option that the model does not have.
func Of(o Options, info *model.Info, n int) (r Reading, p Pooler, err error) {
	p = Pooler{Tokens: n, Dimensions: o.Dimensions}
	if o.Layers == nil && o.Exit == 0 {
		p.Dense = info.Dense
	}
	width := info.Width
	for _, d := range p.Dense {
		width = d.Out
	}
	if o.Layers == nil {
		if p.Exit = info.Exit(o.Exit); p.Exit != nil {
			r.Stream, width = true, p.Exit.Width(width)
		}
	}
	if r.Mask, r.Causal, err = masksOf(o.Mask, info); err != nil {
		return r, p, err
	}
	if o.Dimensions < 0 || o.Dimensions > width {
		return r, p, fmt.Errorf("dimensions is %d; it must be from 1 to %d", o.Dimensions, width)
	}
	if r.Exit = o.Exit; o.Layers != nil {
		r.Layers, err = places("layer", o.Layers, len(info.Layers))
		p.Layers = len(r.Layers)
	}
	if o.Tokens != nil && err == nil {
		p.Chosen, err = places("token", o.Tokens, n)
	}
	if err != nil {
		return r, p, err
	}
	return r, p, r.Fit(info)
}

// Fit chooses the mask of a model that the reading leaves to it. It returns an error where the model has no such reading.
func (r *Reading) Fit(info *model.Info) error {
	layers := info.Layers
	if r.Mask == ByModel && (info.Encoder || info.Full) {
		r.Mask = Full
	}
	for i, l := range r.Layers {
		if l < 0 || l >= len(layers) || i > 0 && l <= r.Layers[i-1] {
			return fmt.Errorf("layers %v: they must ascend, from 0 to %d", r.Layers, len(layers)-1)
		}
	}
	if r.Exit < 0 || r.Exit > len(layers) || r.Exit > 0 && r.Layers != nil {
		return fmt.Errorf("an exit behind %d layers; it must be 1 to %d, without layers that are read", r.Exit, len(layers))
	}
	for i, l := range layers {
		if r.Mask == Full && len(l.States) > 0 {
			return fmt.Errorf("layer %d is recurrent: it reads tokens in order, so that they cannot all see each other", i)
		}
		if s := l.Keeps.From; l.Keeps.Kind == kv.Shared && r.Causal.Has(s) != r.Causal.Has(i) {
			return fmt.Errorf("layer %d reads the keys of layer %d, where its tokens see the same: the two must have one mask", i, s)
		}
	}
	return nil
}

// Whole reports whether the text must be read in one step, by a model.
func (r Reading) Whole() bool { return r.Exit > 0 || r.Mask == Full }

// Block is the block of the rows: all tokens are one where they see each other.
func (r Reading) Block() int {
	if r.Mask == Full {
		return 1
	}
	return 0
}

// ErrPrefix reports a prompt whose tokens cannot see each other.
var ErrPrefix = errors.New("the prompt's tokens cannot see each other")

// Prefix returns an [ErrPrefix] where a text cannot begin with a prefix: n tokens that see each other, in one step of at most so many rows.
func Prefix(info *model.Info, n, rows int) error {
	if info.Source != nil {
		return fmt.Errorf("%w: %s reads its prompt by an encoder", ErrPrefix, info.Arch)
	}
	for i, l := range info.Layers {
		if len(l.States) > 0 {
			return fmt.Errorf("%w: layer %d of %s reads them one after the other", ErrPrefix, i, info.Arch)
		}
	}
	if n > rows {
		return fmt.Errorf("%w: it has %d tokens, and a step %d rows at most", ErrPrefix, n, rows)
	}
	return nil
}
