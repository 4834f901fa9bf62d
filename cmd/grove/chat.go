package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"grove"
	"grove/internal/wrap"
	"grove/text/chat"
)

// chatCommand holds a conversation.
type chatCommand struct {
	requestFlags

	System    string            `short:"s" placeholder:"TEXT" var:"GROVE_SYSTEM" help:"What the conversation begins with: the system's message."`
	Template  string            `name:"chat-template" placeholder:"NAME|FILE" var:"GROVE_CHAT_TEMPLATE" help:"Chat template: a further one of the model's, one of this program's, or a Jinja file. Without it, the model's own."`
	Set       map[string]string `placeholder:"NAME=JSON" sep:"none" mapsep:"none" help:"Variable of the template, such as enable_thinking=false; may be given several times."`
	MaxTokens count             `short:"n" placeholder:"N" default:"0" var:"GROVE_N" help:"Tokens of an answer; 0: until it or the context ends. Default: ${default}."`

	Question *string `arg:"" optional:"" help:"One question, after whose answer the program ends."`
}

// Validate refuses a stop string that is everywhere, and variables that are no JSON.
func (c *chatCommand) Validate() error {
	for name, text := range c.Set {
		if !json.Valid([]byte(text)) {
			return fmt.Errorf("--set: %s: %.40q is no JSON; a text needs quotes", name, text)
		}
	}
	return c.requestFlags.Validate()
}

// Run implements the command.
func (c *chatCommand) Run() (err error) {
	m, err := c.openModel(c.Template)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	l, err := c.newChat(m)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.conversation.Close()) }()
	l.signals = listen()
	defer l.signals.stop()
	if c.Question != nil {
		err := l.turn(*c.Question)
		if l.last.PromptTokens > 0 {
			l.note("%v", measure(l.last))
		}
		return err
	}
	return l.loop()
}

// newChat returns a conversation as the flags ask for.
func (c *chatCommand) newChat(m *grove.Model) (*chatLoop, error) {
	l := &chatLoop{model: m, conversation: m.NewConversation(), system: c.System, out: wrap.New(stdout)}
	var err error
	if l.options.Template, err = c.template(m); err != nil {
		return nil, err
	}
	for name, text := range c.Set {
		if l.options.Vars == nil {
			l.options.Vars = map[string]json.RawMessage{}
		}
		l.options.Vars[name] = json.RawMessage(text)
	}
	l.request = c.request()
	l.request.MaxTokens = int(c.MaxTokens)
	return l, nil
}

// template returns the template of the conversation, and says where it is a guess.
func (c *chatCommand) template(m *grove.Model) (*chat.Template, error) {
	t, err := m.Templates().For(chat.Options{})
	if errors.Is(err, chat.ErrNone) {
		return nil, fileError{fmt.Errorf("%w; a base model continues texts (grove run), and --chat-template names a template all the same: %s, or a file", err, strings.Join(chat.Builtin(), ", "))}
	}
	if err == nil && c.Template == "" && slices.Contains(chat.Builtin(), t.Name) {
		fmt.Fprintf(os.Stderr, "grove: the model has no chat template: using %s, which its vocabulary shows\n", t.Name)
	}
	return t, asFileError(err)
}
