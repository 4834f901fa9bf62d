package driver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"grove"
	"grove/internal/text/answer"
	"grove/internal/text/chat"
	"grove/server/serving"
	"grove/server/structured"
	"grove/server/wire"
)

// Chat is a conversation to answer.
type Chat struct {
	Messages []grove.Message
	Options  grove.ChatOptions
	Origins  []int // of each message, the index of the request's message that it comes from; -1: none; nil: the same
	Inline   bool  // thoughts stay in the content
	Most     int   // a prompt of more tokens is not made any further; 0: only one that is many times as long as the context

	choice structured.Tools
	strict []string         // names of tools
	held   bool             // to the forms of calls
	prompt grove.ChatPrompt // once it is made
}

// SetVar sets a variable of the template. The variables of the request stay as they are.
func (c *Chat) SetVar(name string, value json.RawMessage) {
	if c.Options.Vars = maps.Clone(c.Options.Vars); c.Options.Vars == nil {
		c.Options.Vars = map[string]json.RawMessage{}
	}
	c.Options.Vars[name] = value
}

// CheckMessages refuses conversations without messages, or with too many: earlier ones count too.
func CheckMessages(n int) error {
	switch {
	case n == 0:
		return wire.Refuse("messages", "there is no message")
	case n > wire.MaxMessages:
		return wire.Refuse("messages", "messages: more than %d in the conversation", wire.MaxMessages)
	}
	return nil
}

// AddMessages adds the messages of a request: n, each as message returns it.
func (c *Chat) AddMessages(n int, message func(i int) (grove.Message, error)) error {
	if err := CheckMessages(n); err != nil {
		return err
	}
	for i := range n {
		m, err := message(i)
		if err != nil {
			return RefuseMessage(i, err)
		}
		c.Messages = append(c.Messages, m)
	}
	return nil
}

// RefuseMessage returns the error of a message of the request; it has the index.
func RefuseMessage(i int, err error) error {
	name := fmt.Sprintf("messages[%d]", i)
	return wire.Refuse(name, "%s: %v", name, err)
}

// UseTools sets the tools that the model sees, in the form of OpenAI's API, and which of them it may or must call.
func (c *Chat) UseTools(tools []json.RawMessage, choice structured.Tools) error {
	names, strict, err := structured.Names(tools)
	if err == nil {
		err = choice.Check(names)
	}
	if err != nil || choice.Off || len(tools) == 0 {
		return err
	}
	c.Options.Tools, c.choice, c.strict = tools, choice, strict
	return nil
}

// form returns the form of the answers, of which the fields ask for another: nil, or a form of the content.
func (c *Chat) form(content *structured.Form) (*structured.Form, error) {
	o := structured.Conversation{Options: &c.Options, Prompt: &c.prompt, Choice: c.choice, Strict: c.strict}
	form, err := o.Form(content)
	c.held = form != nil && form.Kind == structured.Tree && len(c.Options.Tools) > 0
	return form, err
}

// SetEffort says how much the model thinks, in words of the template; none: not at all.
func (c *Chat) SetEffort(effort string) {
	if effort == "none" {
		c.Options.Reasoning = grove.ReasoningOff
		return
	}
	value, _ := json.Marshal(effort) // a string has no error
	c.SetVar("reasoning_effort", value)
}

// Prompt returns the prompt that the model's template makes of the conversation. Its errors are the request's fault.
func (c *Chat) Prompt(ctx context.Context, h *serving.OpenModel) (grove.ChatPrompt, error) {
	c.Options.Check = func(tokens int) error {
		if c.Most > 0 && tokens > c.Most {
			return &grove.PromptError{Tokens: tokens, Context: c.Most, More: true}
		}
		return cmp.Or(ctx.Err(), h.Model.CheckPrompt(tokens))
	}
	messages, at, added := h.Gives.Conversation(c.Messages)
	p, err := h.Model.ApplyTemplate(messages, c.Options)
	c.prompt = p
	var fault *chat.Error
	if errors.As(err, &fault) && fault.Message >= at && added > 0 { // the messages of the name are not the request's
		if fault.Message -= added; fault.Message < at {
			fault.Message = -1
		}
	}
	switch {
	case err != nil && ctx.Err() != nil, errors.Is(err, grove.ErrContext):
		return p, err
	case errors.As(err, &fault):
		return p, c.refuse(fault)
	case err != nil:
		return p, wire.Refuse("messages", "%s", wire.Plain(err))
	case len(p.Tokens) == 0:
		return p, wire.Refuse("messages", "the template makes an empty prompt of these messages")
	}
	return p, nil
}

// Prompt returns the prompt of a conversation that is not answered, made when it is the request's turn.
func (x *Request) Prompt(h *serving.OpenModel, c *Chat) (p grove.ChatPrompt, err error) {
	err = x.Work(func(ctx context.Context) (err error) {
		p, err = c.Prompt(ctx, h)
		return err
	})
	return p, err
}

// refuse returns the answer to a conversation that is not rendered. It does not name the template: that can be a path.
func (c *Chat) refuse(fault *chat.Error) error {
	i, text := fault.Message, fault.Err.Error()
	if i >= 0 && c.Origins != nil {
		i = c.Origins[i]
	}
	switch {
	case errors.Is(fault, chat.ErrTools):
		return wire.Refuse("tools", "%s", text)
	case i >= 0:
		return RefuseMessage(i, fault.Err)
	case fault.Template != "" && !strings.HasPrefix(text, "the template"):
		text = "the template: " + text
	}
	return wire.Refuse("messages", "%s", text)
}

// Answer is the answer to a conversation under way.
type Answer = structured.Answer

// reader returns the reader of an answer.
func (c *Chat) reader(id string) *answer.Reader {
	return answer.NewReader(answer.Options{
		Format: c.prompt.Format, Tools: c.Options.Tools, Tail: c.prompt.Tail, Inline: c.Inline, OneCall: c.Options.OneCall, ID: id,
		Certain: c.held,
	})
}

// Cut is [serving.Spec.Cut] for the conversation: answers end behind their first call, where they may have one only.
func (c *Chat) Cut() func(grove.Token) bool {
	if !c.Options.OneCall {
		return func(grove.Token) bool { return false }
	}
	r := c.reader("")
	return func(t grove.Token) bool {
		r.Add(t.Text, t.Control)
		return r.Done()
	}
}

// Answer returns an answer without tokens, of the given number among those of the request. The prompt has been made.
func (c *Chat) Answer(g *Generation, number string) *Answer {
	a := structured.NewAnswer(c.reader(g.ID + "/" + number))
	g.read = append(g.read, a)
	return a
}

// Numbers returns bytes as JSON shows them.
func Numbers(raw []byte) []int {
	n := make([]int, len(raw))
	for i, b := range raw {
		n[i] = int(b)
	}
	return n
}
