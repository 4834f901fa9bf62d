package diffuse

import (
	"grove/internal/sample"
	"grove/internal/text/token"
)

// Draws say how the tokens of an answer are drawn.
type Draws struct {
	sample.Settings
	Prompt     []token.ID
	Vocabulary int
	Top        int  // likeliest tokens that a [Judge] tells
	Drawn      bool // with the probabilities of the draw
}

// ReadText reports whether a draw depends on the text before its token, so that a [Follower] is needed.
func (d Draws) ReadText() bool {
	p, t := &d.Penalties, &d.Thinking
	repeats := p.Repeat != 0 && p.Repeat != 1 || p.Presence != 0 || p.Frequency != 0 || p.DRY.Multiplier != 0
	return len(d.Stages) > 0 || t.Begin != nil && t.Budget >= 0 || d.Params.Mirostat.Version > 0 || p.MinTokens > 0 || repeats
}

// NewSampler returns a [Judge] that draws by a chain; where it follows the text, also a [Follower], which proposes by a chain that knows no text. The random numbers of a
// place and a pass are those of the place's index and a use of the pass's own. Errors are those of [sample.NewChain].
func NewSampler(d Draws, follows bool) (Sampler, error) {
	free := sample.Settings{Params: d.Params, Penalties: sample.Penalties{Bias: d.Penalties.Bias, Ends: d.Penalties.Ends}, SampleIndex: d.SampleIndex}
	free.Params.Mirostat = sample.Mirostat{}
	proposing, err := d.chained(free)
	if err != nil || !follows {
		return proposing, err
	}
	text, err := d.chained(d.Settings)
	return &follower{chained: proposing, text: text}, err
}

// chained returns what draws by settings behind the prompt.
func (d *Draws) chained(by sample.Settings) (*chained, error) {
	chain, err := sample.NewChain(by, d.Vocabulary)
	if err != nil {
		return nil, err
	}
	chain.Begin(d.Prompt)
	return &chained{chain: chain, first: len(d.Prompt), p: make([]float64, d.Vocabulary), top: d.Top, drawn: d.Drawn}, nil
}

type chained struct {
	chain *sample.Chain
	first int
	p     []float64
	top   int
	drawn bool
}

// Draw implements [Sampler].
func (s *chained) Draw(logits []float32, index, pass int) (token.ID, error) {
	if s.chain.Params().Greedy() {
		t, err := s.chain.Draw(0, logits, s.first+index)
		return t.ID, err
	}
	if err := s.chain.Probs(s.p, 0, logits, s.first+index); err != nil {
		return token.None, err
	}
	return s.chain.Pick(s.p, s.first+index, purpose(pass)), nil
}

// Number implements [Sampler].
func (s *chained) Number(index, pass int) float64 {
	return s.chain.Number(s.first+index, purpose(pass)+1)
}

// purpose is what the random numbers of a pass are for: there are two uses of each.
func purpose(pass int) sample.Purpose { return sample.Purpose(1<<20 + 2*pass) }

// Judge implements [Judge].
func (s *chained) Judge(logits []float32, index int, id token.ID) (l *Likely, err error) {
	l = &Likely{Logprob: s.chain.Logprob(logits, id)}
	switch {
	case s.drawn:
		l.Top, l.Logprob, err = s.chain.TopDrawn(0, logits, s.first+index, s.top, id)
	case s.top > 0:
		l.Top, err = s.chain.Top(logits, s.top)
	}
	return l, err
}

// follower draws by the text so far, which is the trunk of its chain.
type follower struct {
	*chained // proposes
	text     *chained
	must     []token.ID
}

// Follow implements [Follower].
func (f *follower) Follow(logits []float32, index, pass int) (token.ID, error) {
	return f.text.Draw(logits, index, pass)
}

// Must implements [Follower].
func (f *follower) Must() token.ID {
	if f.must = f.text.chain.Forced(f.must[:0], 0); len(f.must) == 0 {
		return token.None
	}
	return f.must[0]
}

// Add implements [Follower].
func (f *follower) Add(id token.ID) { f.text.chain.Keep(f.text.chain.Next(0, id)) }

// Ended implements [Follower].
func (f *follower) Ended() bool { return f.text.chain.Ended(0) }

// Judge implements [Judge]: by the text before the place.
func (f *follower) Judge(logits []float32, index int, id token.ID) (*Likely, error) {
	return f.text.Judge(logits, index, id)
}

// NewShaper returns a sampler that shapes logits by the penalties, which must depend on no text, and draws from what is shaped by the parameters. The rest is as for
// [NewSampler]. Errors: those of [sample.NewChain].
func NewShaper(d Draws) (Shaper, error) {
	shape, err := sample.NewChain(d.Settings, d.Vocabulary)
	if err != nil {
		return nil, err
	}
	draw, err := d.chained(sample.Settings{Params: d.Params, SampleIndex: d.SampleIndex})
	if err != nil {
		return nil, err
	}
	return &shaper{draw, shape}, nil
}

type shaper struct {
	*chained
	shape *sample.Chain
}

// Shape implements [Shaper].
func (s *shaper) Shape(logits []float32) []float32 { return s.shape.Process(0, logits) }
