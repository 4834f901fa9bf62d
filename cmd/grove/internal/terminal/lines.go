package terminal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"golang.org/x/term"

	"grove/cmd/grove/internal/exit"
)

// LineReader reads the lines of a person, who can edit them, or of another program. It is for one goroutine.
type LineReader struct {
	signals  *Interrupts
	terminal *term.Terminal // nil: another program writes the lines
	plain    *bufio.Reader
	restore  func() error // ends the raw mode of the terminal; nil: it is not raw
}

// NewLineReader returns a reader of standard input. A signal ends the wait for a line.
func NewLineReader(signals *Interrupts) *LineReader {
	r := &LineReader{signals: signals, plain: bufio.NewReader(os.Stdin)}
	if Is(os.Stdin) && Is(os.Stderr) && r.raw() == nil {
		r.Close()
		r.terminal = term.NewTerminal(struct {
			io.Reader
			io.Writer
		}{os.Stdin, os.Stderr}, "")
		r.terminal.SetBracketedPasteMode(true)
	}
	return r
}

// raw sets the raw mode: the terminal passes on every key at once.
func (r *LineReader) raw() error {
	fd := int(os.Stdin.Fd())
	old, err := term.MakeRaw(fd)
	if err != nil {
		return err
	}
	r.restore = func() error { return term.Restore(fd, old) }
	return nil
}

// Close restores the terminal. The reader can be used again.
func (r *LineReader) Close() {
	if r.restore != nil {
		_ = r.restore()
		r.restore = nil
	}
}

// Person reports whether a person writes the lines, at a terminal.
func (r *LineReader) Person() bool { return r.terminal != nil }

// Message returns the next message: a line; lines of which all but the last end with a backslash; or the text between
// """ and """. The end of the input, and Ctrl-C at the prompt, give [io.EOF]. A signal gives an [exit.SignalError].
func (r *LineReader) Message() (string, error) {
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

// block reads the rest of a text that """ ends.
func (r *LineReader) block(text string) (string, error) {
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
func (r *LineReader) line(prompt string) (string, error) {
	type result struct {
		text string
		err  error
	}
	got := make(chan result, 1)
	if r.terminal != nil {
		select {
		case <-r.signals.came: // an interrupt of the answer that came after its end
		default:
		}
		if err := r.raw(); err != nil {
			return "", err
		}
		defer r.Close()
	}
	go func() { // a read of a terminal cannot be cancelled: it ends with the process
		text, err := r.read(prompt)
		got <- result{text, err}
	}()
	select {
	case l := <-got:
		return l.text, l.err
	case s := <-r.signals.came:
		return "", exit.SignalError{Signal: s.(syscall.Signal)}
	}
}

// read reads a line, or several lines that were pasted together.
func (r *LineReader) read(prompt string) (string, error) {
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
