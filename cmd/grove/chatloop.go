package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"grove"
	"grove/engine"
	"grove/internal/wrap"
)

// chatLoop is a conversation with a person, or with a program's lines.
type chatLoop struct {
	model        *grove.Model
	conversation *grove.Conversation
	options      grove.ChatOptions
	request      grove.Request
	system       string
	messages     []grove.Message // without the system's
	last         grove.Stats     // of the last answer

	in      *lineReader
	out     *wrap.Writer
	signals *interrupts
}

// loop takes lines until they end or /exit. Where lines come from a program, the first error ends it.
func (l *chatLoop) loop() error {
	l.in = newLineReader(l.signals)
	defer l.in.close()
	if l.in.terminal != nil {
		info := l.model.Info()
		l.note("%s, a context of %d tokens, template %s; /help lists commands", info.Name, info.Context, l.options.Template.Name)
	}
	for {
		text, err := l.in.message()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		err = l.take(text)
		if errors.Is(err, errExit) {
			return nil
		}
		if err != nil && (l.in.terminal == nil || isFatal(err)) {
			return err
		}
		if err != nil {
			report(os.Stderr, err)
		}
	}
}

// isFatal tells whether nothing can follow an error: a termination, or output that no one takes.
func isFatal(err error) bool {
	var signal signalError
	var output outputError
	return errors.As(err, &signal) || errors.As(err, &output)
}

// note writes a line for the person.
func (l *chatLoop) note(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "grove: "+format+"\n", args...)
}

// take does what a message or command asks for.
func (l *chatLoop) take(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return nil
	case strings.HasPrefix(text, "//"):
		return l.turn(text[1:])
	case strings.HasPrefix(text, "/"):
		name, argument, _ := strings.Cut(text[1:], " ")
		return l.command(name, strings.TrimSpace(argument))
	}
	return l.turn(text)
}

// turn asks and answers. A question that cannot be asked is taken back.
func (l *chatLoop) turn(text string) error {
	l.messages = append(l.messages, grove.Message{Role: "user", Content: text})
	begun, err := l.answer()
	if !begun {
		l.messages = l.messages[:len(l.messages)-1]
	}
	return err
}

// all returns the messages with the system's.
func (l *chatLoop) all() []grove.Message {
	if l.system == "" {
		return l.messages
	}
	return append([]grove.Message{{Role: "system", Content: l.system}}, l.messages...)
}

// answer writes the answer to the messages, which it becomes part of as far as it came. An interrupt ends it
// and is no error where a person can go on.
func (l *chatLoop) answer() (begun bool, err error) {
	ctx, done := l.signals.during()
	defer done()
	g, err := l.conversation.Chat(ctx, l.all(), l.options, l.request)
	if errors.Is(err, engine.ErrContext) {
		return false, fmt.Errorf("%w; /clear and /undo make room", err)
	}
	if err != nil {
		return false, err
	}
	l.out.Begin(columns())
	var answer strings.Builder
	for t, e := range g.Tokens() {
		if err = e; err == nil {
			answer.WriteString(t.Text)
			err = l.out.Text(t.Text)
		}
		if err != nil {
			break
		}
	}
	err = errors.Join(err, l.out.End())
	l.messages = append(l.messages, grove.Message{Role: "assistant", Content: answer.String()})
	l.last = g.Stats()
	if cause := l.signals.cause(ctx); cause != nil {
		if !cause.isInterrupt() || l.in == nil {
			return true, *cause
		}
		l.note("stopped")
		return true, nil
	}
	if l.last.Finish == grove.FinishContext {
		l.note("the answer ends because the context of %d tokens is full; /clear and /undo make room", l.model.Info().Context)
	}
	return true, err
}

const chatHelp = `  /help          this list
  /system TEXT   begin the conversation with TEXT, "" for nothing; without TEXT, show what it begins with
  /regen         another answer to the last question
  /undo          take the last question and its answer back
  /clear         begin anew
  /save FILE     write the conversation as JSON
  /load FILE     go on with a conversation that was saved
  /stats         tokens and times of the last answer
  /exit          end; so do Ctrl-D, and Ctrl-C at the prompt
Ctrl-C ends an answer. A line that ends with \ goes on in the next, and so does a text between """ and """.
A message that begins with a slash is written with two.`

// errExit ends the loop.
var errExit = errors.New("exit")

// command does what a line that begins with a slash asks for.
func (l *chatLoop) command(name, argument string) error {
	switch name {
	case "help", "?":
		fmt.Fprintln(os.Stderr, chatHelp)
	case "exit", "quit":
		return errExit
	case "clear":
		l.messages = nil
	case "undo":
		return l.undo()
	case "regen":
		return l.regenerate()
	case "stats":
		if l.last.Tokens == 0 {
			return errors.New("/stats: there is no answer yet")
		}
		l.note("%v", measure(l.last))
	case "system":
		switch argument {
		case "":
			l.note("the conversation begins with %q", l.system)
		case `""`:
			l.system = ""
		default:
			l.system = argument
		}
	case "save":
		return l.save(argument)
	case "load":
		return l.load(argument)
	default:
		return fmt.Errorf("there is no command /%.40s; /help lists those there are", name)
	}
	return nil
}

// undo takes the last question back, with what followed it.
func (l *chatLoop) undo() error {
	for i := len(l.messages) - 1; i >= 0; i-- {
		if l.messages[i].Role == "user" {
			l.messages = l.messages[:i]
			return nil
		}
	}
	return errors.New("/undo: there is nothing to take back")
}

// regenerate answers the last question again, with other draws.
func (l *chatLoop) regenerate() error {
	n := len(l.messages)
	if n == 0 || l.messages[n-1].Role != "assistant" {
		return errors.New("/regen: there is no answer yet")
	}
	old := l.messages
	l.messages = old[: n-1 : n-1]
	seed := l.last.Seed + 1
	l.request.Seed = &seed
	begun, err := l.answer()
	if !begun {
		l.messages = old
	}
	return err
}
