package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/term"
)

// interrupts are the signals that a conversation gets.
type interrupts struct{ came chan os.Signal }

func listen() *interrupts {
	i := &interrupts{make(chan os.Signal, 1)}
	signal.Notify(i.came, os.Interrupt, syscall.SIGTERM)
	return i
}

func (i *interrupts) stop() { signal.Stop(i.came) }

// during returns a context that the next signal ends, with a signalError as its cause.
func (i *interrupts) during() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case s := <-i.came:
			cancel(signalError{s.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-gone
	}
}

// cause returns the signal that has ended a context, or nil.
func (i *interrupts) cause(ctx context.Context) *signalError {
	var s signalError
	if ctx.Err() != nil && errors.As(context.Cause(ctx), &s) {
		return &s
	}
	return nil
}

func (e signalError) isInterrupt() bool { return e.Signal == syscall.SIGINT }

// lineReader reads what a person types, with editing, or the lines of another program.
type lineReader struct {
	signals  *interrupts
	terminal *term.Terminal // nil: no person types
	plain    *bufio.Reader
	restore  func() error // gives the terminal back; nil while it is not raw
}

// newLineReader reads standard input.
func newLineReader(signals *interrupts) *lineReader {
	r := &lineReader{signals: signals, plain: bufio.NewReader(os.Stdin)}
	if isTerminal(os.Stdin) && isTerminal(os.Stderr) && r.raw() == nil {
		r.close()
		r.terminal = term.NewTerminal(struct {
			io.Reader
			io.Writer
		}{os.Stdin, os.Stderr}, "")
		r.terminal.SetBracketedPasteMode(true)
	}
	return r
}

// raw makes the terminal give every key as it is typed.
func (r *lineReader) raw() error {
	fd := int(os.Stdin.Fd())
	old, err := term.MakeRaw(fd)
	if err != nil {
		return err
	}
	r.restore = func() error { return term.Restore(fd, old) }
	return nil
}

// close leaves the terminal as it was.
func (r *lineReader) close() {
	if r.restore != nil {
		_ = r.restore()
		r.restore = nil
	}
}

// message returns the next message: a line, lines of which all but the last end with a backslash, or what
// stands between two lines' """. The end of the input, and Ctrl-C at the prompt, are [io.EOF].
func (r *lineReader) message() (string, error) {
	text, err := r.line("> ")
	if err != nil {
		return "", err
	}
	if block, ok := strings.CutPrefix(text, `"""`); ok {
		return r.block(block)
	}
	for strings.HasSuffix(text, `\`) {
		more, err := r.line(". ")
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
		text = strings.TrimSuffix(text, `\`) + "\n" + more
	}
	return text, nil
}

// block reads up to """.
func (r *lineReader) block(text string) (string, error) {
	for {
		if inner, _, ok := strings.Cut(text, `"""`); ok {
			return strings.Trim(inner, "\n"), nil
		}
		more, err := r.line(". ")
		if errors.Is(err, io.EOF) {
			return "", errors.New(`the input ends before the """ that ends a message`)
		}
		if err != nil {
			return "", err
		}
		text += "\n" + more
	}
}

// line reads a line. A signal ends the wait.
func (r *lineReader) line(prompt string) (string, error) {
	type result struct {
		text string
		err  error
	}
	got := make(chan result, 1)
	if r.terminal != nil {
		select {
		case <-r.signals.came: // it was meant for the answer, which has ended by itself
		default:
		}
		if err := r.raw(); err != nil {
			return "", err
		}
		defer r.close()
	}
	go func() { // a read of a terminal cannot be called off; the process ends with it
		text, err := r.read(prompt)
		got <- result{text, err}
	}()
	select {
	case l := <-got:
		return l.text, l.err
	case s := <-r.signals.came:
		return "", signalError{s.(syscall.Signal)}
	}
}

// read reads a line, or lines that were pasted together.
func (r *lineReader) read(prompt string) (string, error) {
	if r.terminal == nil {
		text, err := r.plain.ReadString('\n')
		if err == io.EOF && text != "" {
			err = nil
		}
		if err != nil && err != io.EOF {
			err = fmt.Errorf("standard input: %w", err)
		}
		return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r"), err
	}
	if w, h, err := term.GetSize(int(os.Stderr.Fd())); err == nil && w > 0 {
		_ = r.terminal.SetSize(w, h)
	}
	r.terminal.SetPrompt(prompt)
	var pasted strings.Builder
	for {
		text, err := r.terminal.ReadLine()
		if errors.Is(err, term.ErrPasteIndicator) {
			pasted.WriteString(text + "\n")
			continue
		}
		if err == io.EOF {
			fmt.Fprint(os.Stderr, "\r\n")
		}
		return pasted.String() + text, err
	}
}
