// thoughts.go lets a model think longer: where its thoughts would end before they have as many tokens as is asked, a text such as "Wait" takes the place of
// the end, and the model thinks on (budget forcing; s1, Muennighoff et al. 2025).

package engine

import (
	"context"
	"fmt"

	"grove/internal/sample"
	"grove/internal/text/token"
)

// ThoughtsOptions says what stands at the end of thoughts, as texts. The zero value leaves ends as they are.
type ThoughtsOptions struct {
	Message    string // before the end that a budget forces; "": nothing
	Least      int    // tokens of thoughts before which an end is replaced; 0: none is
	Extensions int    // ends that are replaced at most; 0: as many as Least asks for
	Wait       string // what replaces an end; "": [ThoughtsDefaultWait]
}

// ThoughtsDefaultWait is the text that replaces an end of thoughts.
const ThoughtsDefaultWait = "Wait"

// maxText bounds the tokens of a message, and of a text that replaces an end.
const maxText = 256

// Check returns an error for numbers that make no sense, or that a budget contradicts; nil is no budget.
func (o *ThoughtsOptions) Check(budget *int) error {
	switch {
	case o.Least < 0 || o.Extensions < 0:
		return fmt.Errorf("grove: thoughts of %d tokens at least, and %d extensions; both must be 0 or more", o.Least, o.Extensions)
	case o.Message != "" && budget == nil:
		return fmt.Errorf("grove: a message stands before the end that a thinking budget forces, and no budget is given")
	case o.Least == 0 && (o.Extensions > 0 || o.Wait != ""):
		return fmt.Errorf("grove: an extension of thoughts needs the tokens that they have at least, and these are 0")
	case budget != nil && o.Least > *budget:
		return fmt.Errorf("grove: thoughts of %d tokens at least, and a thinking budget of %d tokens; it must not be less", o.Least, *budget)
	}
	return nil
}

// EncodeThoughts returns the tokens of a text that stands in thoughts, which must not hold the token that begins their end.
func EncodeThoughts(text string, encode func(text string) ([]token.ID, error), end token.ID) ([]token.ID, error) {
	ids, err := encode(text)
	if err != nil {
		return nil, err
	}
	if n := len(ids); n == 0 || n > maxText {
		return nil, fmt.Errorf("grove: the text %.40q in thoughts has %d tokens; it must have from 1 to %d", text, n, maxText)
	}
	for _, id := range ids {
		if id == end {
			return nil, fmt.Errorf("grove: the text %.40q in thoughts holds the marker of their end; leave it out", text)
		}
	}
	return ids, nil
}

// ThoughtsExtension replaces ends of thoughts in a sequence. It is for one goroutine.
type ThoughtsExtension struct {
	Least, Most int        // as [ThoughtsOptions.Least] and Extensions; Most 0: any number
	Budget      int        // that the extended thoughts must leave room in; less than 0: none
	Wait        []token.ID // what replaces an end
	End         token.ID   // that begins the marker of the end
	Ends        func(id token.ID) bool
	Thoughts    *sample.Thoughts // behind the text so far; the caller adds each token that Next returns

	Count   int        // ends that were replaced
	pending []token.ID // of Wait
}

// Next is the sequence's Next. An end that comes too early, of the thoughts or of the text inside them, is taken back, and the tokens of Wait come in
// its place, with the log-probabilities that the model gives them. Errors are those of [engine.Sequence.Next] and [engine.Sequence.Truncate].
func (x *ThoughtsExtension) Next(ctx context.Context, s *Sequence) (d SampledToken, err error) {
	if len(x.pending) == 0 {
		if d, err = s.Next(ctx); err != nil {
			return d, err
		}
		if !x.early(d.ID) {
			return d, nil
		}
		if err := s.Truncate(s.Len() - 1); err != nil {
			return d, err
		}
		x.Count++
		x.pending = x.Wait
	}
	id := x.pending[0]
	if d, err = s.Describe(ctx, id); err != nil {
		return d, err
	}
	x.pending = x.pending[1:]
	return d, s.Follow(id)
}

// early reports whether a token ends thoughts that are to go on.
func (x *ThoughtsExtension) early(id token.ID) bool {
	n := x.Thoughts.Tokens()
	if !x.Thoughts.Inside() || id != x.End && !x.Ends(id) {
		return false
	}
	return n < x.Least && (x.Most == 0 || x.Count < x.Most) && (x.Budget < 0 || n+len(x.Wait) < x.Budget)
}
