package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"grove"
	"grove/internal/command/conversation"
	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/internal/text/chat"
)

// chatCommand holds a conversation.
type chatCommand struct {
	flags.Request   `set:"text=One question; the program ends after its answer."`
	flags.MaxTokens `set:"tokens=0"`
	flags.Reasoning
	flags.Constraint

	System   string            `short:"s" placeholder:"TEXT" var:"GROVE_SYSTEM" help:"The system message, which begins the conversation."`
	Template string            `name:"chat-template" placeholder:"NAME|FILE" var:"GROVE_CHAT_TEMPLATE" help:"Chat template: the name of another template in the model's file or of one inside this program, or a Jinja file. Without it, the model's own."`
	Set      map[string]string `placeholder:"NAME=JSON" sep:"none" mapsep:"none" help:"Variable of the template, such as enable_thinking=false; may be given several times."`

	NoMarkdown   bool `name:"no-markdown" var:"GROVE_NO_MARKDOWN" help:"Show answers at a terminal as the model writes them. So do TERM=dumb and NO_COLOR."`
	HideThinking bool `name:"hide-thinking" var:"GROVE_HIDE_THINKING" help:"Leave the thoughts of the model out; at a terminal, a line counts their tokens."`
	NoHistory    bool `name:"no-history" var:"GROVE_NO_HISTORY" help:"Do not read or write the file of messages of earlier conversations."`
}

// Valid refuses variables that are not JSON.
func (c *chatCommand) Valid() error {
	for name, text := range c.Set {
		if !json.Valid([]byte(text)) {
			return fmt.Errorf("--set: %s: %.40q is not JSON; a string needs quotes", name, text)
		}
	}
	return nil
}

// Run implements the command.
func (c *chatCommand) Run() error {
	question, err := c.Resolve()
	if err != nil {
		return err
	}
	return c.hold(question)
}

// hold answers a question, or holds a conversation where there is none.
func (c *chatCommand) hold(question *string) (err error) {
	constraint, err := c.Constraint.Of()
	if err != nil {
		return err
	}
	o, err := c.Options()
	if err != nil {
		return err
	}
	o.ChatTemplate, o.Reasoning = c.Template, grove.Reasoning(c.Reasoning.How)
	m, err := openModel(c.Model, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	l, err := c.newChat(m, constraint)
	if err != nil {
		return err
	}
	if question != nil {
		return l.Ask(*question)
	}
	return l.Loop()
}

// newChat returns the conversation that the flags describe.
func (c *chatCommand) newChat(m *grove.Model, constraint *grove.Constraint) (*conversation.Conversation, error) {
	r, err := c.RequestOf(m)
	if err != nil {
		return nil, err
	}
	if r.Constraint = constraint; constraint != nil {
		constraint.Thoughts = true
	}
	l := &conversation.Conversation{
		Model: m, System: c.System, Request: r, History: !c.NoHistory, Show: conversation.Show{Plain: c.NoMarkdown, HideThinking: c.HideThinking, NoCanvas: c.NoCanvas},
		Advice: c.AdviceOf(m).String(),
	}
	if l.Options.Template, err = c.template(m); err != nil {
		return nil, err
	}
	if constraint != nil {
		if err := m.CheckConstraint(*constraint); err != nil {
			return nil, c.Refused(err)
		}
	}
	for name, text := range c.Set {
		if l.Options.Vars == nil {
			l.Options.Vars = map[string]json.RawMessage{}
		}
		l.Options.Vars[name] = json.RawMessage(text)
	}
	l.Request.MaxTokens = c.Limit()
	return l, nil
}

// template returns the template of the conversation. It reports a template that the vocabulary suggests.
func (c *chatCommand) template(m *grove.Model) (*chat.Template, error) {
	if _, err := m.ApplyTemplate(nil, grove.ChatOptions{}); errors.Is(err, grove.ErrSource) {
		return nil, err
	}
	t, err := m.Templates().For(chat.Options{})
	if errors.Is(err, chat.ErrNone) && c.Model.Path == "" {
		return nil, exit.File(errors.New("grove: the model inside this program writes Go and holds no conversations; name one: grove chat MODEL ('grove list' shows those here, 'grove pull' fetches one)"))
	}
	if errors.Is(err, chat.ErrNone) {
		return nil, exit.File(fmt.Errorf("%w; grove run continues a text with a base model", err))
	}
	if err == nil && c.Template == "" && slices.Contains(chat.Builtin(), t.Name) {
		fmt.Fprintf(os.Stderr, "grove: the model has no chat template: using %s, to which its vocabulary belongs\n", t.Name)
	}
	return t, exit.File(err)
}
