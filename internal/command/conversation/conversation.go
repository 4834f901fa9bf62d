// Package conversation holds a conversation with a person at a terminal, or with the lines of another program.
package conversation

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"grove"
	"grove/internal/command/exit"
	"grove/internal/command/terminal"
)

// Conversation is a conversation with a model. It is for one goroutine.
type Conversation struct {
	Model   *grove.Model
	Options grove.ChatOptions
	Request grove.Request // how answers are generated; its prompt is not used
	System  string        // the system message; "": none
	History bool          // the messages that a person writes are kept for later runs
	Show    Show
	Advice  string // settings of the draw that the model's file recommends, for the figures

	conversation *grove.Conversation
	messages     []grove.Message // without the system message
	last         grove.Stats     // of the last answer

	in      *terminal.LineReader // nil: one question only
	signals *terminal.Interrupts
}

// Ask asks one question, writes the answer and its figures, and ends the conversation.
func (c *Conversation) Ask(question string) (err error) {
	defer c.begin(&err)()
	err = c.turn(question)
	if c.last.PromptTokens > 0 {
		c.note("%v", c.figures())
	}
	return err
}

// figures returns the figures of the last answer.
func (c *Conversation) figures() Summary {
	s := Summarize(c.last)
	s.Advice = c.Advice
	return s
}

// begin returns the function that ends the conversation.
func (c *Conversation) begin(err *error) (end func()) {
	c.conversation, c.signals = c.Model.NewConversation(), terminal.Listen()
	return func() {
		c.signals.Stop()
		*err = errors.Join(*err, c.conversation.Close())
	}
}

// Loop takes messages and commands from standard input until its end or /exit. Where another program writes the lines,
// the first error ends the conversation.
func (c *Conversation) Loop() (err error) {
	defer c.begin(&err)()
	c.in = terminal.NewLineReader(c.signals, terminal.LineOptions{History: c.History, Complete: complete})
	defer c.in.Close()
	if c.in.Person() {
		info := c.Model.Info()
		c.note("%s, a context of %d tokens, template %s; /help lists commands", info.Name, info.Context, c.Options.Template.Name)
	}
	for {
		text, err := c.in.Message()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		err = c.handle(text)
		if errors.Is(err, errExit) {
			return nil
		}
		if err != nil && (!c.in.Person() || isFatal(err)) {
			return err
		}
		if err != nil {
			exit.Report(os.Stderr, err)
		}
	}
}

// isFatal reports whether an error ends the conversation: a signal, or output that cannot be written.
func isFatal(err error) bool {
	code := exit.Code(err)
	return code == exit.CodeOutput || code > exit.CodeSignal
}

// note writes a line to standard error.
func (c *Conversation) note(format string, args ...any) {
	terminal.Say("grove: " + fmt.Sprintf(format, args...))
}

// handle answers a message or runs a command.
func (c *Conversation) handle(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return nil
	case strings.HasPrefix(text, "//"):
		return c.turn(text[1:])
	case strings.HasPrefix(text, "/"):
		name, argument, _ := strings.Cut(text[1:], " ")
		return c.command(name, strings.TrimSpace(argument))
	}
	return c.turn(text)
}

// turn answers a question. A question that is refused leaves no message.
func (c *Conversation) turn(text string) error {
	c.messages = append(c.messages, grove.Message{Role: "user", Content: text})
	begun, err := c.answer()
	if !begun {
		c.messages = c.messages[:len(c.messages)-1]
	}
	return err
}

// all returns the messages, the system message first.
func (c *Conversation) all() []grove.Message {
	if c.System == "" {
		return c.messages
	}
	return append([]grove.Message{{Role: "system", Content: c.System}}, c.messages...)
}

// answer writes the answer to the messages and adds it to them, a part of it where it was interrupted or failed. begun
// reports whether there is an answer. An interrupt is no error where the conversation goes on.
func (c *Conversation) answer() (begun bool, err error) {
	ctx, done := c.signals.During()
	defer done()
	bar := terminal.Tokens("reading")
	defer bar.End()
	r := c.Request
	r.Progress = bar.Show
	g, err := c.conversation.Chat(ctx, c.all(), c.Options, r)
	if errors.Is(err, grove.ErrContext) {
		return false, fmt.Errorf("%w; /clear and /undo make room", err)
	}
	if err != nil {
		return false, err
	}
	d := c.Show.newDisplay(func() int { return g.Stats().Reasoning })
	g.WatchCanvas(func(runs []grove.CanvasRun) {
		bar.End()
		err = errors.Join(err, d.watch(runs))
	})
	for t, e := range g.Parts() {
		bar.End()
		if err = errors.Join(err, e); err == nil {
			err = d.show(t)
		}
		if err != nil {
			break
		}
	}
	err = errors.Join(err, d.end())
	c.messages = append(c.messages, d.message())
	c.last = g.Stats()
	if cause := c.signals.Cause(ctx); cause != nil {
		if cause.Signal != syscall.SIGINT || c.in == nil {
			return true, *cause
		}
		c.note("stopped")
		return true, nil
	}
	switch c.last.Finish {
	case grove.FinishLength:
		c.note("the answer was cut after %d tokens; -n sets how many, and -n 0 none", c.last.Tokens)
	case grove.FinishContext:
		c.note("the answer ends because the context of %d tokens is full; /clear and /undo make room", c.Model.Info().Context)
	}
	return true, err
}

const chatHelp = `  /help          this list
  /system TEXT   set the system message, "" for none; without TEXT, show it
  /regen         another answer to the last question, by the next seed
  /undo          remove the last question and its answer
  /clear         remove all messages
  /save FILE     write the conversation as JSON
  /load FILE     continue a conversation that was saved
  /stats         tokens and times of the last answer
  /exit          end; so do Ctrl-D, and Ctrl-C at the prompt
Ctrl-C ends an answer. A line that ends with \ continues in the next, and so does a text between """ and """.
A message that begins with a slash is written with two; one that begins with a space is not kept in the history.
Up and Ctrl-R bring back messages, also of earlier conversations; Tab completes commands and files. What is pasted
waits for Enter; its line ends appear as ↵.`

// commands are the commands; those of withArgument take one.
var (
	commands     = []string{"/help", "/system", "/regen", "/undo", "/clear", "/save", "/load", "/stats", "/exit"}
	withArgument = []string{"/system", "/save", "/load"}
)

// errExit ends the loop.
var errExit = errors.New("exit")

// command runs the command of a line that begins with a slash.
func (c *Conversation) command(name, argument string) error {
	switch name {
	case "help", "?":
		terminal.Say(chatHelp)
	case "exit", "quit", "bye":
		return errExit
	case "clear":
		c.messages = nil
	case "undo":
		return c.undo()
	case "regen":
		return c.regenerate()
	case "stats":
		if c.last.Tokens == 0 {
			return errors.New("/stats: there is no answer yet")
		}
		c.note("%v", c.figures())
	case "system":
		switch argument {
		case "":
			c.note("the system message is %q", c.System)
		case `""`:
			c.System = ""
		default:
			c.System = argument
		}
	case "save":
		return c.save(argument)
	case "load":
		return c.load(argument)
	default:
		return fmt.Errorf("there is no command /%.40s; /help lists the commands", name)
	}
	return nil
}

// undo removes the last question and all that follows it.
func (c *Conversation) undo() error {
	for i := len(c.messages) - 1; i >= 0; i-- {
		if c.messages[i].Role == "user" {
			c.messages = c.messages[:i]
			return nil
		}
	}
	return errors.New("/undo: there is no question to remove")
}

// regenerate answers the last question again, with the next seed.
func (c *Conversation) regenerate() error {
	n := len(c.messages)
	if n == 0 || c.messages[n-1].Role != "assistant" {
		return errors.New("/regen: there is no answer yet")
	}
	old := c.messages
	c.messages = old[: n-1 : n-1]
	seed := c.last.Seed + 1
	c.Request.Seed = &seed
	begun, err := c.answer()
	if !begun {
		c.messages = old
	}
	return err
}
