package grove

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"syscall"

	"grove/internal/engine"
	"grove/internal/fileio"
	"grove/internal/sample"
	"grove/internal/text/answer"
	"grove/internal/text/chat"
	"grove/internal/text/prompt"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
	"grove/search"
	"grove/search/bytewise"
)

// Message is one message of a conversation; its Role is one of [chat.Roles].
type Message = chat.Message

// ChatOptions says how a conversation becomes a prompt. The zero value asks for the next answer, by the template and the way of reasoning of [Options].
type ChatOptions = prompt.Options

// ChatPrompt is a conversation as the model reads it.
type ChatPrompt = prompt.Prompt

// Templates returns the templates that can render conversations with the model.
func (m *Model) Templates() *chat.Templates { return m.templates }

// Chat prepares the answer to a conversation, as [Model.Generate] does the continuation of a text; the Prompt
// of the request is not used. The text of the answer has no control tokens.
func (m *Model) Chat(ctx context.Context, messages []Message, o ChatOptions, r Request) (*Generation, error) {
	if o.Check == nil {
		o.Check = func(n int) error { return cmp.Or(ctx.Err(), m.CheckPrompt(n)) }
	}
	p, err := m.ApplyTemplate(messages, o)
	if err != nil {
		return nil, err
	}
	if len(p.Tokens) == 0 {
		return nil, errors.New("grove: the template makes an empty prompt")
	}
	r.PromptIDs = p.Tokens
	g, err := m.Generate(ctx, r)
	if err == nil {
		g.reading = answer.Options{Format: p.Format, Tools: o.Tools, Tail: p.Tail, OneCall: o.OneCall, ID: strconv.FormatUint(g.stats.Seed, 16)}
	}
	return g, err
}

// TokenParts is a token and the parts of the answer that are certain with it.
type TokenParts struct {
	Token
	Parts []answer.Part
}

// Parts is [Generation.Tokens] for the answers of [Model.Chat] and [Conversation.Chat]: it tells thoughts, content and calls of
// tools apart. The last parts come with the token [token.None]. With [ChatOptions.OneCall] the answer ends behind its first call.
func (g *Generation) Parts() iter.Seq2[TokenParts, error] {
	return func(yield func(TokenParts, error) bool) {
		r := answer.NewReader(g.reading)
		for t, err := range g.Tokens() {
			if err != nil {
				yield(TokenParts{}, err)
				return
			}
			if !yield(TokenParts{t, r.Add(t.Text, t.Control)}, nil) {
				return
			}
			if r.Done() {
				g.Stop()
			}
		}
		end := r.End
		if g.stats.Finish == FinishLength || g.stats.Finish == FinishContext {
			end = r.Cut
		}
		if rest := end(); len(rest) > 0 {
			yield(TokenParts{Token{ID: token.None}, rest}, nil)
		}
	}
}

// Conversation answers one turn after the other and keeps the computed text, so that an answer costs only the tokens
// that are new. Make it with [Model.NewConversation]. It is for one goroutine, and holds one of [Options.Parallel]
// slots, which it lends where another answer waits and it is idle: its next turn then waits for a slot.
type Conversation struct {
	model *Model
	seq   *engine.Sequence // nil: none is open
	ids   []token.ID       // its text
	req   Request          // that it was opened for
	draws engine.Answer    // the same for its sequence
}

// NewConversation returns a conversation without turns.
func (m *Model) NewConversation() *Conversation { return &Conversation{model: m} }

// Chat is [Model.Chat] for the conversation's next turn, or for any other: tokens and log-probabilities are
// those that [Model.Chat] gives. One answer must have ended before the next is begun.
func (c *Conversation) Chat(ctx context.Context, messages []Message, o ChatOptions, r Request) (*Generation, error) {
	if r.Seed == nil && c.seq != nil {
		r.Seed = &c.req.Sampling.Seed // draws differ by their index
	}
	g, err := c.model.Chat(ctx, messages, o, r)
	if err == nil {
		g.conversation = c
	}
	return g, err
}

// Close gives the conversation's slot back.
func (c *Conversation) Close() error {
	if c.seq == nil {
		return nil
	}
	s := c.seq
	c.seq, c.ids = nil, nil
	return s.Close()
}

// add notes a token of an answer.
func (c *Conversation) add(id token.ID) {
	if c != nil {
		c.ids = append(c.ids, id)
	}
}

// goesOn tells whether the conversation's sequence can be taken further to a prompt and then answer a request.
func (c *Conversation) goesOn(g *Generation) bool {
	n, prompt, r := len(c.ids), g.prompt, &g.req
	return c.seq != nil && g.model.model.Info().Source == nil && g.program == nil && !g.req.Prefix && g.req.SkipLayers == "" && g.stages == nil && n <= len(prompt) && slices.Equal(c.ids, prompt[:n]) && reflect.DeepEqual(g.answer(), c.draws) &&
		r.Method == c.req.Method && r.terms() == c.req.terms() &&
		r.Accept == c.req.Accept && r.Prediction == c.req.Prediction
}

// open returns the sequence of an answer and how many tokens of the prompt it holds. That of a conversation
// is kept where the prompt goes on from what it holds; otherwise the cache has most of it.
func (g *Generation) open() (s *engine.Sequence, kept int, err error) {
	c := g.conversation
	if c != nil && c.goesOn(g) {
		kept = len(c.ids)
		c.ids = append(c.ids, g.prompt[kept:]...)
		return c.seq, kept, nil
	}
	if c != nil {
		if err := c.Close(); err != nil {
			return nil, 0, err
		}
	}
	if s, err = g.model.engine.NewSequence(g.answer()); err != nil {
		return nil, 0, g.model.busy(err)
	}
	if err = s.SetTerms(g.req.terms()); err == nil {
		err = g.checkSession()
	}
	if err != nil {
		return nil, 0, errors.Join(err, s.Close())
	}
	if c != nil {
		c.seq, c.ids, c.req, c.draws = s, slices.Clone(g.prompt), g.req, g.answer()
	}
	return s, 0, nil
}

// close ends an answer that ended with err. A conversation keeps the sequence, unless something is wrong with it.
func (g *Generation) close(s *engine.Sequence, err error) error {
	saved := g.save(s, err)
	switch {
	case g.conversation == nil:
		return errors.Join(saved, s.Close())
	case err != nil && g.ctx.Err() == nil || g.program != nil: // what a search leaves is not the answer's text
		return g.conversation.Close()
	}
	return saved
}

// keeper is an answer's text that a session keeps: a sequence or a canvas.
type keeper interface {
	Save(path string) error
	Restored() bool
}

// save writes the session of an answer that ended with err, unless something is wrong with it.
func (g *Generation) save(k keeper, err error) error {
	if g.req.Session == "" || err != nil && (g.ctx.Err() == nil || g.stats.Tokens == 0) { // one that nothing was added to stays as it is
		return nil
	}
	return k.Save(g.req.Session)
}

// checkSession returns an error where the request's session, if there is one, cannot be written.
func (g *Generation) checkSession() error {
	if g.req.Session == "" {
		return nil
	}
	if err := fileio.Check(g.req.Session, g.model.Files()...); err != nil && !errors.Is(err, syscall.ENOSPC) { // whether it fits shows at the end
		return fmt.Errorf("grove: Request.Session: %w: %w", ErrSession, err)
	}
	return nil
}

// compute computes what the sequence lacks of the prompt, and reads what a session holds of it.
func (g *Generation) compute(s *engine.Sequence, kept int) error {
	var err error
	if g.req.Session == "" || s.Len() > 0 {
		err = s.Append(g.ctx, g.prompt[kept:])
	} else {
		err = s.AppendSaved(g.ctx, g.prompt, g.req.Session)
	}
	if err != nil {
		return err
	}
	return g.weigh(g.ctx, s)
}

// blame names the session where what was read from it has led to an error of the model, and gives errors of a search or of healing that are the request's fault their kinds.
func (g *Generation) blame(k keeper, err error) error {
	if errors.Is(err, ErrNotFinite) && k.Restored() {
		return fmt.Errorf("grove: Request.Session: %s: %w: %w", g.req.Session, ErrSessionFile, err)
	}
	switch {
	case errors.Is(err, bytewise.ErrText):
		return fmt.Errorf("grove: %w: %w", ErrConstraint, err)
	case errors.Is(err, search.ErrPrompt), errors.Is(err, bytewise.ErrByte), errors.Is(err, bytewise.ErrCovers), errors.Is(err, bytewise.ErrNone):
		return &OptionError{Err: fmt.Errorf("grove: %w", err)}
	}
	return err
}

// Thinks reports whether the model has markers of thinking, which a budget can bound.
func (m *Model) Thinks() bool { return m.prompts.Markers.Begin != nil }

// markers returns the markers of the model's thoughts, none where it has none, and no bound.
func (m *Model) markers() sample.Thinking {
	k := m.prompts.Markers
	return sample.Thinking{Begin: k.Begin, End: k.End, Budget: -1}
}

// control returns the spelling of a control token, "" for other tokens.
func (m *Model) control(id token.ID) string {
	if m.tokenizer.Type(id) != tokenizer.Control {
		return ""
	}
	return m.tokenizer.Text(id)
}

// Thoughts says what stands at the end of thoughts.
type Thoughts = engine.ThoughtsOptions

// bound says how the answer's thoughts are counted, bounded and extended. It returns an [*OptionError] for what cannot be kept.
func (g *Generation) bound() error {
	t, o, budget := g.model.markers(), g.req.Thoughts, g.req.Thinking
	err := o.Check(budget)
	switch {
	case budget != nil && *budget < 0:
		err = fmt.Errorf("grove: the thinking budget is %d tokens; it must be 0 or more", *budget)
	case err == nil && t.Begin == nil && (budget != nil || o != Thoughts{}):
		err = prompt.ErrNoMarkers()
	case err == nil && o.Least > 0 && g.req.Search != "":
		err = errors.New("grove: thoughts with extensions, and a search: a search ends the thoughts of its samples where they end; leave one out")
	}
	if err == nil && o.Least > 0 && g.model.model.Info().Diffusion != nil {
		err = errors.New("grove: thoughts with extensions; a diffusion model fills its canvas in any order, and its thoughts are not extended")
	}
	if err == nil && budget != nil {
		t.Budget = *budget
	}
	if err == nil && o.Message != "" {
		t.Message, err = engine.EncodeThoughts(o.Message, g.model.plainly, t.End[0])
	}
	g.thinking, g.thoughts = t, t.Count(g.prompt)
	if err == nil && o.Least > 0 {
		x := &engine.ThoughtsExtension{Least: o.Least, Most: o.Extensions, Budget: t.Budget, End: t.End[0], Ends: g.ends, Thoughts: g.thoughts}
		x.Wait, err = engine.EncodeThoughts(cmp.Or(o.Wait, engine.ThoughtsDefaultWait), g.model.plainly, x.End)
		g.extends = x
	}
	if err != nil {
		return &OptionError{Err: err}
	}
	return nil
}

// plainly returns the tokens of a text in which special tokens are plain text.
func (m *Model) plainly(text string) ([]token.ID, error) { return m.Tokenize(text, false, true) }

// countThoughts notes what is known of the thoughts so far.
func (g *Generation) countThoughts() {
	g.stats.Reasoning, g.stats.ThoughtsForced = g.thoughts.Tokens(), g.thoughts.Forced()
	if g.extends != nil {
		g.stats.Extensions = g.extends.Count
	}
}

// Reasoning says whether a model thinks before it answers.
type Reasoning = prompt.Reasoning

// The ways of [Reasoning].
const (
	ReasoningAuto = prompt.ReasoningAuto // as the template does; the same as ""
	ReasoningOn   = prompt.ReasoningOn   // the template's variable for thinking is true
	ReasoningOff  = prompt.ReasoningOff  // the variable is false; thoughts that the template begins nevertheless are ended at once
)

// ApplyTemplate returns the prompt of a conversation. Errors: [chat.ErrNone] where neither the model nor the options
// have a template; an [*OptionError] for a way of reasoning that the template has not, and where the model reads a source ([ErrSource]) and has no template or
// is to continue an answer; those of [chat.Template.Render].
//
// Templates that print the date get it from [chat.Options.Now]. The variables date_string (such as 26 Jul 2024), current_date (the
// same) and datetime can be set in [chat.Options.Vars], so that the prompt does not depend on the day. A template that shows no tools
// gets a text that lists them and asks for calls in the form of Hermes. Reasoning of turns before the last question is left out.
func (m *Model) ApplyTemplate(messages []Message, o ChatOptions) (ChatPrompt, error) {
	source := m.engine.CheckSource("it holds conversations by a chat template alone, and continues no answer")
	if source != nil && o.Continue {
		return ChatPrompt{}, &OptionError{Err: source}
	}
	p, err := m.prompts.Render(messages, o)
	if source != nil && errors.Is(err, chat.ErrNone) {
		err = &OptionError{Err: source}
	}
	return p, err
}

// AnswerFormat returns how the model writes thoughts and calls of tools in conversations by its own template.
func (m *Model) AnswerFormat() answer.Format {
	return answer.FormatOf(m.prompts.Source(), m.prompts.IsSpecial)
}
