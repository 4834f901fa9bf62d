package fill

import (
	"bytes"
	"fmt"

	"grove/diffuse"
	"grove/internal/forest"
	"grove/internal/model"
	"grove/internal/text/token"
)

// Wish says how a diffusion model fills the canvas of an answer, which has as many tokens as the answer may. The zero value is Fast-dLLM's threshold
// over one block, without a cache; of a model of blocks, SDAR's dynamic over blocks of its own length, with the keys of finished blocks.
type Wish struct {
	Steps  int    // passes of all blocks together, for policies that count them; 0: one for each token
	Block  int    // tokens of a block: blocks are filled one after the other; 0: the canvas is one, or the block of a model of blocks, which it does not exceed
	Policy string // what a pass fixes, with options, as in "threshold:p=0.9"; [diffuse.Policies] lists them
	Cache  string // whose keys of earlier passes a pass sees; [diffuse.Caches] lists them. All but none and blocks are lossy
	Blocks string // "adaptive" or "adaptive:P": a block ends behind a line whose end has at least the probability P (AdaBlock, 2025), and is of Block tokens otherwise; "": no
	Early  string // "prophet": all masks become tokens once they are sure; "end": the canvas ends with the text; "": neither
	Drafts int    // states of the canvas that a pass verifies (FreeDave, 2025), of the policy static; the answer is the same; 0: one
}

// Check returns an error where the wish names a policy, a cache or another thing that there is for no canvas.
func (w Wish) Check() error {
	return checkNames(diffuse.Settings{Policy: w.Policy, Cache: w.Cache, Blocks: w.Blocks, Early: w.Early})
}

// Conditions hold the model, the prompt and the rest that an answer's canvases depend on.
type Conditions struct {
	Model      *model.Diffusion
	Vocabulary int
	Context    int                                           // tokens of the context
	Prompt     int                                           // tokens of the prompt
	Length     int                                           // tokens of the answer at most; 0: as many as are usual
	Left       bool                                          // see [diffuse.Settings]
	Likely     bool                                          // see [diffuse.Settings]
	Session    bool                                          // keys are kept in a file
	Ends       func(token.ID) bool                           // reports whether a token ends the text
	IgnoreEnd  bool                                          // no token ends canvases of random tokens, and loops go on
	Piece      func(dst []byte, id token.ID) ([]byte, error) // appends a token's text
}

// Prepare completes and checks the settings of an answer's canvases. Errors are a [*diffuse.SettingError].
func (w Wish) Prepare(c Conditions) (*Answer, error) {
	own := c.Model
	s := &diffuse.Settings{
		Length: c.Length, Block: w.Block, Native: own.Block, Passes: w.Steps, Policy: w.Policy, Cache: w.Cache, Drafts: w.Drafts, Mask: own.Mask, Shift: own.Shift,
		Blocks: w.Blocks, Early: w.Early, Ends: c.Ends, Piece: c.Piece, Left: c.Left, Likely: c.Likely,
	}
	if own.Renoise != nil {
		if c.IgnoreEnd {
			s.Ends = nil
		}
		random, err := diffuse.Renoise(own.Renoise, s, c.Context-c.Prompt, c.Vocabulary)
		return &Answer{Random: random}, err
	}
	if own.Filter != nil {
		s.Filter = own.Filter
	}
	usual, room := s.Room(c.Context, c.Prompt)
	if s.Length == 0 {
		s.Length = usual
	}
	if s.Length > room || room < 1 {
		return nil, &diffuse.SettingError{Setting: "length", Err: fmt.Errorf("a canvas of %d tokens behind a prompt of %d: the context has %d", s.Length, c.Prompt, c.Context)}
	}
	if w.Blocks != "" {
		s.Delimiters = lineEnds(c.Vocabulary, c.Piece)
	}
	if err := s.Check(); err != nil || !c.Session {
		return &Answer{Masks: s}, err
	}
	return &Answer{Masks: s}, sessions(s)
}

// sessions returns an error where a session has no use for the keys of blocks, of settings that were checked.
func sessions(s *diffuse.Settings) error {
	why := ""
	switch {
	case s.Native == 0:
		why = "rows that all see each other have keys of one canvas alone, which no other text can use; leave out the session"
	case s.Cache == "none":
		why = "cache none keeps no keys; leave out the cache or the session"
	case !s.Lasts():
		why = fmt.Sprintf("blocks of %d tokens do not end where the pages of a session do; choose a length that divides %d, or leave out the session", s.Block, forest.SlotsPerPage)
	default:
		return nil
	}
	return &diffuse.SettingError{Setting: "session", Err: fmt.Errorf("a session of a canvas: %s", why)}
}

// Length returns how many tokens the answer has at most.
func (a *Answer) Length() int {
	if a.Random != nil {
		return a.Random.Length
	}
	return a.Masks.Length
}

// Exact reports whether no cache changes what rows see.
func (a *Answer) Exact() bool { return a.Masks == nil || a.Masks.Exact() }

// checkNames returns an error where a setting that is a name is none, of models whose rows all see each other and of models of blocks.
func checkNames(s diffuse.Settings) (err error) {
	for _, native := range []int{0, 1} {
		s := s
		s.Length, s.Native, s.Delimiters, s.Filter = 1, native, []token.ID{0}, anyFilter{}
		if more := s.Check(); more == nil {
			return nil
		} else if err == nil {
			err = more
		}
	}
	return err
}

// anyFilter stands for the filter of a model that is not known.
type anyFilter struct{}

// Block implements [Filter].
func (anyFilter) Block() int { return diffuse.MostLength }

// Score implements [Filter].
func (anyFilter) Score(_, _ []float32) {}

// lineEnds returns the tokens of a vocabulary that are the ends of lines, with blanks behind them.
func lineEnds(vocabulary int, piece func(dst []byte, id token.ID) ([]byte, error)) (ids []token.ID) {
	var text []byte
	for id := range token.ID(vocabulary) {
		var err error
		if text, err = piece(text[:0], id); err == nil && bytes.HasPrefix(text, []byte("\n")) && len(bytes.TrimSpace(text)) == 0 {
			ids = append(ids, id)
		}
	}
	return ids
}
