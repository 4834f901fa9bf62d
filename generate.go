package grove

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"grove/engine"
	"grove/method"
	"grove/sample"
	"grove/token"
	"grove/tokenizer"
)

// Request asks for a text.
type Request struct {
	Prompt    string
	PromptIDs []token.ID // the prompt as tokens, to which none are added; nil: Prompt
	Suffix    *string    // what follows the answer, for models whose vocabulary has tokens for filling in; nil: not known
	MaxTokens int        // tokens to generate; 0: until the text or the context ends
	Sampling  Sampling   // the zero value takes the likeliest token; its Seed is ignored
	Seed      *uint64    // nil: one is drawn, and [Stats] reports it
	Stop      []string   // the text ends before the first of these

	// Method says how several tokens a step are drafted: "" or [MethodAuto], [MethodOff], or names of methods
	// with commas between. Exact methods give the same tokens and log-probabilities as plain decoding.
	Method string
	// Accept is the rule by which guesses become text: "" or [AcceptExact], or [AcceptTypical], which is lossy: guesses
	// that are likely enough are taken although another token would have been drawn.
	Accept string
	// Prediction is what the answer is expected to contain, such as the text that is to be edited. It changes the
	// speed and nothing else.
	Prediction string
	// Session names a file of computed keys and values: what it holds of the prompt's beginning is not computed again, and
	// it is written anew when the answer ends or is cancelled. It need not be there yet; one of another model or cache
	// type, or a damaged one, is an error ([kv.ErrFile]). It changes the speed and nothing else. "": none.
	Session string
}

// Token is one token of an answer. Text is what it adds to the text: nothing while the bytes of a rune
// are incomplete or could begin a stop string, and then more than its own.
type Token struct {
	ID      token.ID
	Text    string
	Logprob float32 // natural logarithm of the model's probability, before temperature and truncation
}

// Finish says why a text ended.
type Finish string

// The reasons.
const (
	FinishNone    Finish = ""        // it has not: it was cancelled, failed, or goes on
	FinishStop    Finish = "stop"    // a stop string, or a token that ends the text
	FinishLength  Finish = "length"  // MaxTokens
	FinishContext Finish = "context" // the context is full
)

// Stats is what a generation did so far.
type Stats struct {
	PromptTokens int           // begin-of-text included, and the suffix
	ReusedTokens int           // of these, found in the cache
	Tokens       int           // generated
	Prompt       time.Duration // computing the prompt
	FirstToken   time.Duration // from the call to the first token
	Generation   time.Duration // from the first token to the last
	Seed         uint64
	Finish       Finish
	Drafting     engine.SpecStats // what drafting did
	Grade        method.Grade     // what the methods and the rule leave of plain decoding's answer
}

// Generation is an answer on its way. It is for one goroutine.
type Generation struct {
	model  *Model
	ctx    context.Context
	req    Request
	prompt []token.ID
	stats  Stats
	begun  bool

	conversation *Conversation // whose sequence it goes on with; nil: one of its own
}

// Generate prepares an answer; [Generation.Tokens] computes it. It returns an error where the request
// makes no sense, the prompt does not fit the context, or a suffix is given and the vocabulary has no tokens
// for that ([tokenizer.ErrNoFIM]). When ctx ends, so does the generation, within
// a layer's time.
func (m *Model) Generate(ctx context.Context, r Request) (*Generation, error) {
	if err := m.generates(); err != nil {
		return nil, err
	}
	if r.MaxTokens < 0 {
		return nil, fmt.Errorf("grove: %d tokens to generate", r.MaxTokens)
	}
	if err := r.Sampling.Validate(); err != nil {
		return nil, err
	}
	for i, id := range r.PromptIDs {
		if n := m.model.Info().Vocabulary; id < 0 || int(id) >= n {
			return nil, fmt.Errorf("grove: token id %d at index %d is out of range: the vocabulary has %d", id, i, n)
		}
	}
	ids, err := m.encode(r)
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 && m.tokenizer.BOS() != token.None {
		ids = append(ids, m.tokenizer.BOS())
	}
	if len(ids) == 0 {
		return nil, errors.New("grove: the prompt is empty, and the model has no token that begins a text")
	}
	if n := m.engine.Context(); len(ids) > n {
		return nil, fmt.Errorf("grove: the prompt has %d tokens and the context holds %d: %w", len(ids), n, engine.ErrContext)
	}
	g := &Generation{model: m, ctx: ctx, req: r, prompt: ids}
	if g.stats.Grade, err = m.grade(r.Method, r.Accept); err != nil {
		return nil, err
	}
	g.stats.PromptTokens = len(ids)
	if r.Seed != nil {
		g.stats.Seed = *r.Seed
	} else {
		g.stats.Seed = sample.RandomSeed()
	}
	g.req.Sampling.Seed = g.stats.Seed
	return g, nil
}

// encode returns the tokens of a prompt. With a suffix, special tokens that are written in the prompt are text.
func (m *Model) encode(r Request) ([]token.ID, error) {
	if r.PromptIDs != nil {
		return r.PromptIDs, nil
	}
	if r.Suffix != nil {
		ids, err := m.tokenizer.EncodeFIM(nil, r.Prompt, *r.Suffix)
		if errors.Is(err, tokenizer.ErrNoFIM) {
			err = &OptionError{fmt.Errorf("grove: a suffix is given: %w", err)}
		}
		return ids, err
	}
	return m.tokenizer.Encode(nil, r.Prompt, tokenizer.Options{Special: true})
}

// Stats returns what the generation did so far.
func (g *Generation) Stats() Stats { return g.stats }

// Tokens computes the answer and yields its tokens, without the one that ends the text. An error ends
// it; so does leaving the loop. It can be used once.
func (g *Generation) Tokens() iter.Seq2[Token, error] {
	return func(yield func(Token, error) bool) {
		if g.begun {
			yield(Token{}, errors.New("grove: a generation's tokens are computed once"))
			return
		}
		g.begun = true
		if err := g.run(yield); err != nil {
			yield(Token{}, err)
		}
	}
}

func (g *Generation) run(yield func(Token, error) bool) (err error) {
	start := time.Now()
	s, kept, err := g.open()
	if err != nil {
		return err
	}
	before := s.SpecStats()
	defer func() {
		g.stats.Drafting = s.SpecStats().Since(before)
		err = errors.Join(err, g.close(s, err))
	}()
	if err := s.Append(g.ctx, g.prompt[kept:]); err != nil {
		return err
	}
	g.stats.ReusedTokens = max(kept, s.Reused())
	g.stats.Prompt = time.Since(start)
	text, err := newTextStream(g.model.tokenizer, g.prompt[len(g.prompt)-1], g.req.Stop)
	if err != nil {
		return err
	}
	var first time.Time
	for {
		if g.req.MaxTokens > 0 && g.stats.Tokens == g.req.MaxTokens {
			g.stats.Finish = FinishLength
			break
		}
		if s.Len() == g.model.engine.Context() {
			g.stats.Finish = FinishContext
			break
		}
		c, err := s.Next(g.ctx)
		if err != nil {
			return err
		}
		now := time.Now()
		if g.stats.Tokens == 0 {
			first = now
			g.stats.FirstToken = now.Sub(start)
		}
		g.stats.Tokens++
		g.stats.Generation = now.Sub(first)
		g.conversation.add(c.ID)
		if g.model.tokenizer.IsEOG(c.ID) {
			g.stats.Finish = FinishStop
			break
		}
		piece, stopped, err := text.next(c.ID)
		if err != nil {
			return err
		}
		if stopped {
			g.stats.Finish = FinishStop
		}
		if !yield(Token{ID: c.ID, Text: piece, Logprob: c.Logprob}, nil) || stopped {
			return nil
		}
	}
	if rest := text.flush(); rest != "" {
		yield(Token{ID: token.None, Text: rest}, nil)
	}
	return nil
}

// speculate makes the sequence draft as the request asks.
func (g *Generation) speculate(s *engine.Sequence) error {
	draft, err := g.model.drafting(g.ctx, g.req.Method)
	if draft == nil || err != nil {
		return err
	}
	prediction, err := g.model.Tokenize(g.req.Prediction, false, false)
	if err != nil {
		return err
	}
	if err := s.Speculate(draft, prediction); err != nil {
		return err
	}
	if g.req.Accept == AcceptTypical {
		s.Typical()
	}
	return nil
}

// Text computes the answer and returns it whole. On error it returns what there is besides.
func (g *Generation) Text() (string, error) {
	var b []byte
	for t, err := range g.Tokens() {
		if err != nil {
			return string(b), err
		}
		b = append(b, t.Text...)
	}
	return string(b), nil
}
