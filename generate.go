package grove

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"grove/diffuse/fill"
	"grove/internal/engine"
	"grove/internal/engine/adapters"
	"grove/internal/sample"
	"grove/internal/text/answer"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
	"grove/method"
	"grove/method/layers"
	"grove/search"
)

// Request asks for a text.
type Request struct {
	Prompt    string
	PromptIDs []token.ID // the prompt as tokens, to which none are added; nil: Prompt
	Suffix    *string    // the text behind the answer, for models whose vocabulary has tokens for filling in; nil: none
	Files     []File     // files that the model reads before the text; only with Suffix
	MaxTokens int        // tokens to generate; 0: until the text or the context ends
	Sampling  Sampling   // the zero value takes the likeliest token; its Seed is ignored
	Seed      *uint64    // nil: one is drawn, and [Stats] reports it
	Stop      []string   // the text ends before the first of these

	Penalties   Penalties  // what changes logits before a draw; its Ends are the model's and StopTokens besides
	SampleIndex int        // the number of the answer, of several to a prompt: each number's draws are its own
	Thinking    *int       // tokens that the model may think before its marker of the end is forced, from 0; nil: no bound
	Thoughts    Thoughts   // what stands before a forced end, and how long the model thinks at least
	StopTokens  []token.ID // end the text, as the model's own do
	IgnoreEnd   bool       // the model's own tokens never end the text: they are not drawn; a text that is complete under Constraint ends
	CacheSalt   string     // requests share cached beginnings of prompts, and what drafting learns, only where their salts are equal
	Private     bool       // the request shares neither with any other; a Session makes no sense then

	// Constraint, where it is not nil, says which texts are legal: the answer begins a legal one, and ends where it is complete. It is
	// exact: no legal token is forbidden, and the tokens that bias and penalties leave keep their order. Where the end alone is
	// legal the answer ends, whatever Penalties.MinTokens and IgnoreEnd say. Stop and StopTokens, and MaxTokens, end
	// the answer where they do without it, which need not be where it is complete. [ErrConstraint] is in the error of
	// an answer that cannot go on. It must not be changed.
	Constraint *Constraint
	// Heal takes back up to four tokens at the end of Prompt where a longer token could stand in their place, and lets the
	// answer begin with their text, which is not reported again. A prompt that ends in the middle of a word, or with a blank, is then continued
	// as a text is. Beside Constraint.Lookahead it is an [*OptionError].
	Heal bool
	// HealExact is Heal without its bias: the end of Prompt, or of the text before the gap with a Suffix, is drawn by the probability of its bytes, in
	// whatever tokens. A tokenizer that changes texts ([bytewise.ErrNone]) is an [*OptionError].
	HealExact bool
	Prefix    bool // the prompt's tokens see each other, as a prefix LM has it; it must fit in a step ([Options.Chunk])

	// Top is the number of likeliest tokens that are reported beside each token of the answer. With PostSampling, they and
	// [Token.Logprob] have the probabilities of the draw, after penalties, temperature and truncation.
	Top          int
	PostSampling bool

	// Method says how several tokens a step are drafted: "" or [MethodAuto], [MethodOff], or names of methods
	// with commas between. Exact methods give the same tokens and log-probabilities as plain decoding.
	Method string
	// Accept is the rule that accepts drafts: "" or [AcceptExact], the methods' own, or the name of another rule of
	// [Rules], with options where it has some, such as [AcceptTypical] or threshold:beta=5,tau=3, which are lossy: they accept drafts that are likely enough.
	Accept string
	// Search is a program that computes several answers and chooses one, with its options: "ffs,n=4"; [Searches] lists
	// the programs. It is lossy, and the first token comes when the answer is chosen. "": one answer is computed.
	Search string
	Scorer *Scorer // rates texts for a Search that asks it, such as "best,by=score"; nil: nothing does. Where no search asks it, it is an [*OptionError]
	// SkipLayers lets the answer's tokens skip layers: "to=6", and with it from=N, first=N and over=N, with commas between; or "period=4" ([layers.Places], [Options.SkipAdapters]). The
	// prompt runs all. It is lossy; no method drafts. Another method than auto and off, a Search, or a model that cannot skip layers is an [*OptionError].
	SkipLayers string
	// Prediction is a text that the answer probably contains, such as the text to edit; of a longer one, as many tokens as the
	// context holds count. It changes the speed alone.
	Prediction string
	Drafts     method.Remote // gives drafts that are made elsewhere, for the method far; nil: none. It changes the speed alone
	// Session names a file of computed keys and values; "": none. The part of the prompt that the file holds is not
	// computed again, and the file is written anew when the answer ends or is cancelled. The file need not exist. Errors:
	// [ErrSessionFile] for a damaged file, or one of another model or cache type; [ErrSession] for one that cannot be
	// read or written, is no regular file, or is a file of the model, before anything is computed. A disk that is full is
	// an error behind the whole answer. It changes the speed alone, but for a forged file: who can write it can change
	// the answers of requests that name it, and of no others.
	Session string
	// Progress, where it is not nil, is told how many tokens of the prompt are computed, of all, first and after each step that
	// computes some. It must not wait: any goroutine that generates with the model may call it, one at a time. It changes nothing.
	Progress func(done, all int)
	// Priority, from [MinPriority] to [MaxPriority], orders requests: the highest gets a slot first and is preempted
	// last, and its prompt gets twice the rows for each four steps of priority. One that is passed over for long has its
	// turn, so that none starves. It changes no answer.
	Priority int
	// Adapters are the open adapters that work on the text, which add in this order, with scales besides the files' own; nil: all, with
	// those that [Model.Adapters] has; empty: none. Texts share what is computed only where they have the same. Drafts of a
	// second model come without them.
	Adapters []AdapterScale
	// Diffusion says how a model of masked diffusion fills its canvas; nil: as the zero value says. For other models it is an [*OptionError].
	Diffusion *Diffusion

	set  *adapters.Set         // that Adapters stands for
	form *tokenizer.InfillForm // of a prompt with a suffix
}

// Token is one token of an answer. Text is the text that is certain with it: empty while the bytes of a character are
// incomplete or could begin a stop string, and later the delayed text as well.
type Token struct {
	ID      token.ID
	Text    string
	Logprob float32      // natural logarithm of the model's probability, before temperature and truncation
	Top     []TopLogprob // the likeliest at its place, as many as [Request.Top] asks for
	Control string       // the spelling of a control token, which Text does not show; "" of other tokens
}

// TopLogprob is a token that may be drawn, and the logarithm of its probability.
type TopLogprob = sample.Token

// Finish says why a text ended.
type Finish string

// The reasons.
const (
	FinishNone    Finish = ""        // it has not: it was cancelled, failed, or goes on
	FinishStop    Finish = "stop"    // a stop string, or a token that ends the text
	FinishLength  Finish = "length"  // MaxTokens
	FinishContext Finish = "context" // the context is full
)

// Stats has the counts and times of a generation so far.
type Stats struct {
	PromptTokens   int           // begin-of-text included, and the suffix
	ReusedTokens   int           // of these, found in the cache
	Tokens         int           // generated
	Reasoning      int           // of these, between the model's markers of thinking
	QueueTime      time.Duration // waiting for a slot
	Extensions     int           // ends of thoughts that were replaced: [Request.Thoughts]
	ThoughtsForced bool          // the budget ended thoughts
	PromptTime     time.Duration // computing the prompt
	FirstTokenTime time.Duration // from the call to the first token
	GenerationTime time.Duration // from the first token to the last
	Seed           uint64
	Finish         Finish
	StopText       string             // of [Request.Stop], the one that ended the text
	StopToken      token.ID           // the token that ended the text; [token.None]: none
	Drafting       engine.SpecStats   // what drafting did
	RoundBytes     DraftBytes         // what its rounds take at most
	MaxDrafts      int                // of a round at most
	Grade          Grade              // what methods, rule and search leave of plain decoding's answer
	Attempts       []Attempt          // of [Request.Search]: the answers that were tried
	Figures        map[string]float64 // of [Request.Search]: its counts and measures by their names
	CanvasStats                       // of a diffusion model, once the answer has ended
}

// Generation is an answer on its way. It is for one goroutine.
type Generation struct {
	model  *Model
	ctx    context.Context
	req    Request
	prompt []token.ID
	stats  Stats

	prediction []token.ID
	begun      bool
	ended      bool // by [Generation.Stop]
	start      time.Time

	reading  answer.Options            // of [Generation.Parts]
	thinking sample.Thinking           // the model's markers, and the budget
	thoughts *sample.Thoughts          // nil: the model has no markers
	extends  *engine.ThoughtsExtension // nil: thoughts end where the model ends them

	program search.Program   // nil: one answer is computed
	watch   *search.Watch    // is told how far it is; nil: nobody is
	seq     *engine.Sequence // while tokens are computed
	drafted SpecStats        // by its drafters before

	places layers.Places  // of [Request.SkipLayers]
	stages []sample.Stage // of the constraint, and of the combiner
	healed
	steered

	diffusion *fill.Answer // of a diffusion model; nil: the answer is decoded token by token

	conversation *Conversation // whose sequence it goes on with; nil: one of its own
}

// Generate prepares an answer; [Generation.Tokens] computes it. Errors: an [*OptionError] or another error of a setting
// that is out of range; a [*PromptError] for a prompt that exceeds the context; [tokenizer.ErrNoInfill] for a suffix that the
// vocabulary has no tokens for. The generation ends within a layer's time after ctx.
func (m *Model) Generate(ctx context.Context, r Request) (*Generation, error) {
	if err := m.generates(); err != nil {
		return nil, err
	}
	if err := m.check(&r); err != nil {
		return nil, err
	}
	ids, err := m.encode(ctx, r)
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
		return nil, &PromptError{Tokens: len(ids), Context: n}
	}
	g := &Generation{model: m, ctx: ctx, req: r, prompt: ids}
	g.stats.StopToken = token.None
	if g.stats.Grade, err = m.resident.Grade(r.Method, r.Accept); err != nil {
		return nil, err
	}
	if err := g.bound(); err != nil {
		return nil, err
	}
	if g.prediction, err = m.predict(ctx, r.Prediction); err != nil {
		return nil, err
	}
	for _, prepare := range []func() error{g.canvas, g.skip, func() error { return m.prefixed(&r, len(ids)) }, g.constrain, g.openSearch} {
		if err := prepare(); err != nil {
			return nil, err
		}
	}
	g.stats.PromptTokens = len(g.prompt)
	if r.Seed != nil {
		g.stats.Seed = *r.Seed
	} else {
		g.stats.Seed = sample.RandomSeed()
	}
	g.req.Sampling.Seed = g.stats.Seed
	return g, nil
}

// check refuses settings that are out of range, and completes the penalties.
func (m *Model) check(r *Request) error {
	if r.MaxTokens < 0 {
		return fmt.Errorf("grove: Request.MaxTokens is %d; it must be 0 (no bound) or more", r.MaxTokens)
	}
	if r.Priority < MinPriority || r.Priority > MaxPriority {
		return fmt.Errorf("grove: Request.Priority is %d; it must be from %d to %d", r.Priority, MinPriority, MaxPriority)
	}
	if r.Private && r.Session != "" {
		return &OptionError{Err: errors.New("grove: Request.Session and Request.Private are both set, and a private request keeps nothing; leave one out")}
	}
	if len(r.Files) > 0 && r.Suffix == nil {
		return errors.New("grove: Request.Files is set and Request.Suffix is not; set both")
	}
	if r.Top < 0 || r.SampleIndex < 0 {
		return fmt.Errorf("grove: %d likely tokens, answer number %d", r.Top, r.SampleIndex)
	}
	if err := r.Sampling.Validate(); err != nil {
		return &OptionError{Err: err}
	}
	var err error
	if r.set, err = m.resident.AdapterSet(r.Adapters); err != nil {
		return err
	}
	if err = m.fills(r); err != nil {
		return err
	}
	if err := cmp.Or(m.checkIDs(r.PromptIDs), m.checkIDs(r.StopTokens)); err != nil {
		return err
	}
	r.Penalties.Ends = r.StopTokens
	if r.Penalties.MinTokens > 0 {
		r.Penalties.Ends = append(slices.Clip(r.StopTokens), m.tokenizer.EOG()...)
	}
	if r.IgnoreEnd {
		r.Penalties.Bias = slices.Clip(r.Penalties.Bias)
		for _, id := range m.tokenizer.EOG() {
			r.Penalties.Bias = append(r.Penalties.Bias, sample.Bias{ID: id, Add: float32(math.Inf(-1))})
		}
	}
	if err := r.Penalties.Validate(m.Vocabulary()); err != nil {
		return &OptionError{Err: err}
	}
	return nil
}

// answer returns the part of a request that its sequence must know.
func (g *Generation) answer() engine.Answer {
	r := &g.req
	return engine.Answer{
		Sampling: r.Sampling, Penalties: r.Penalties, Thinking: g.thinking, SampleIndex: r.SampleIndex, Prefix: r.Prefix, Top: r.Top, PostSampling: r.PostSampling,
		Places: g.places, Stages: g.stages,
	}
}

// Request returns the request with its seed and with the biases and ends that its other fields imply.
func (g *Generation) Request() Request { return g.req }

// Prompt returns the tokens of the prompt, the suffix included. They are not to be changed.
func (g *Generation) Prompt() []token.ID { return g.prompt }

// Prediction returns the tokens of the prediction, those that the context holds. They are not to be changed.
func (g *Generation) Prediction() []token.ID { return g.prediction }

// Stats returns what the generation did so far. It is for the goroutine of [Generation.Tokens].
func (g *Generation) Stats() Stats {
	st := g.stats
	if g.seq != nil {
		st.Drafting = g.seq.SpecStats().Since(g.drafted)
	}
	return st
}

// Drafted reports whether the token that [Generation.Tokens] yielded last was a draft, so that it cost no step of its
// own. Of a search's answer it reports false. It is for the goroutine of Tokens.
func (g *Generation) Drafted() bool { return g.seq != nil && g.program == nil && g.seq.Drafted() }

// Tokens computes the answer and yields its tokens, without the one that ends the text. An error is the last element.
// A caller that leaves the loop ends the answer and is not told of later errors, such as a [Request.Session] that cannot
// be written. Tokens can be used once.
func (g *Generation) Tokens() iter.Seq2[Token, error] {
	return func(yield func(Token, error) bool) {
		if g.begun {
			yield(Token{}, errors.New("grove: a generation's tokens are computed once"))
			return
		}
		g.begun = true
		left := false
		err := g.run(func(t Token, err error) bool {
			left = left || !yield(t, err)
			return !left
		})
		if err != nil && !left {
			yield(Token{}, err)
		}
	}
}

// Stop ends the answer behind the token that [Generation.Tokens] yields, as a token that ends the text does. It is for the goroutine
// of Tokens.
func (g *Generation) Stop() { g.ended = true }

func (g *Generation) run(yield func(Token, error) bool) (err error) {
	g.start = time.Now()
	if g.diffusion != nil {
		return g.fill(yield)
	}
	draft, err := g.model.resident.Drafting(g.ctx, g.req.Method) // before there is a slot, which measuring steps may wait for
	if err != nil {
		return err
	}
	s, kept, err := g.open()
	if err != nil {
		return err
	}
	g.drafted = s.SpecStats()
	g.seq = s
	defer func() {
		g.stats = g.Stats()
		g.seq = nil
		err = errors.Join(g.blame(s, err), g.close(s, err))
	}()
	if !s.Drafts() {
		if err := g.speculate(s, draft); err != nil {
			return err
		}
	}
	if s.SetProgress(g.req.Progress); g.req.Progress != nil {
		g.req.Progress(kept, len(g.prompt))
	}
	if err := g.compute(s, kept); err != nil {
		return err
	}
	s.SetProgress(nil)
	g.stats.ReusedTokens = max(kept, s.Reused())
	g.stats.QueueTime = max(0, s.Admitted().Sub(g.start)) // a conversation has its slot already
	g.stats.PromptTime = time.Since(g.start) - g.stats.QueueTime
	next := s.Next
	if x := g.extends; x != nil {
		next = func(ctx context.Context) (engine.SampledToken, error) { return x.Next(ctx, s) }
	}
	if g.program != nil {
		if next, err = g.search(s); err != nil {
			return err
		}
	}
	return g.emit(next, func() bool { return g.program == nil && s.Ended() }, yield)
}

// emit turns the tokens that next gives into text, until the answer ends: ended reports that its end is not drawn.
func (g *Generation) emit(next func(context.Context) (engine.SampledToken, error), ended func() bool, yield func(Token, error) bool) error {
	text, err := g.newText()
	if err != nil {
		return err
	}
	var first time.Time
	for {
		if g.req.MaxTokens > 0 && g.stats.Tokens == g.req.MaxTokens {
			g.stats.Finish = FinishLength
			break
		}
		if ended() {
			g.stats.Finish = FinishStop
			break
		}
		d, err := next(g.ctx)
		if errors.Is(err, engine.ErrContext) {
			g.stats.Finish = FinishContext
			break
		}
		if err == nil {
			err = g.ctx.Err() // a token that a step drew before needs none
		}
		if err != nil {
			return err
		}
		now := time.Now()
		if g.stats.Tokens == 0 {
			first = now
			if g.program != nil {
				first = g.start.Add(g.stats.QueueTime + g.stats.PromptTime) // a search gives its tokens at the end
			}
			g.stats.FirstTokenTime = now.Sub(g.start)
		}
		g.stats.Tokens++
		g.thoughts.Add(d.ID)
		g.countThoughts()
		g.stats.GenerationTime = now.Sub(first)
		g.conversation.add(d.ID)
		if g.ends(d.ID) {
			g.stats.Finish, g.stats.StopToken = FinishStop, d.ID
			break
		}
		text.Deaf = g.stats.Tokens <= g.req.Penalties.MinTokens
		piece, stopped, err := text.Next(d.ID)
		if err != nil {
			return err
		}
		control := g.model.control(d.ID)
		if control != "" && stopped == "" {
			piece += text.Release() // no stop string goes on behind it
		}
		if stopped != "" {
			g.stats.Finish, g.stats.StopText = FinishStop, stopped
		}
		left := !yield(Token{ID: d.ID, Text: piece, Logprob: d.Logprob, Top: d.Top, Control: control}, nil)
		if g.ended && !left {
			g.stats.Finish = FinishStop
		}
		if left || g.ended || stopped != "" {
			return nil
		}
	}
	if rest := text.Flush(); rest != "" {
		yield(Token{ID: token.None, Text: rest}, nil)
	}
	return nil
}

// newText returns the stream of the answer's text.
func (g *Generation) newText() (*tokenizer.Pieces, error) {
	s, err := tokenizer.NewStream(g.model.tokenizer, g.prompt[len(g.prompt)-1], g.req.Stop)
	if err == nil {
		s.Skip = len(g.head)
	}
	return s, err
}

// Text computes the answer and returns its text. On an error it returns the text so far beside it.
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
