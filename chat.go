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
	"grove/internal/text/answer"
	"grove/internal/text/chat"
	"grove/internal/text/prompt"
	"grove/internal/text/token"
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
		if rest := r.End(); len(rest) > 0 {
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
	if err := errors.Join(s.SetTerms(g.req.terms()), g.checkSession()); err != nil {
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

// blame names the session where what was read from it has led to an error of the model.
func (g *Generation) blame(k keeper, err error) error {
	if errors.Is(err, ErrNotFinite) && k.Restored() {
		return fmt.Errorf("grove: Request.Session: %s: %w: %w", g.req.Session, ErrSessionFile, err)
	}
	return err
}
