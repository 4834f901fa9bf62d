package terminal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/ergochat/readline"
	"golang.org/x/term"

	"grove/internal/command/exit"
)

// LineOptions says how a person's lines are read. The zero value keeps no history and completes nothing.
type LineOptions struct {
	History bool // the messages of earlier runs are offered, and those of this one are kept
	// Complete returns the end of a text that can be completed, and all that it can become.
	Complete func(text string) (end string, candidates []string)
}

// LineReader reads the lines of a person, who can edit them, or of another program. It is for one goroutine.
type LineReader struct {
	signals *Interrupts
	plain   *bufio.Reader

	editor  *readline.Instance // nil: lines come as they are, from another program or a dumb terminal
	dumb    bool               // the terminal cannot move its cursor (TERM=dumb)
	glyphs  *glyphs
	history *history
	mode    *term.State // of the terminal before
}

// NewLineReader returns a reader of standard input. A signal ends the wait for a line. What is wrong with the history is
// reported, and no error.
func NewLineReader(signals *Interrupts, o LineOptions) *LineReader {
	r := &LineReader{signals: signals, plain: bufio.NewReader(os.Stdin)}
	if !Is(os.Stdin) || !Is(os.Stderr) {
		return r
	}
	if r.dumb = os.Getenv("TERM") == "dumb"; r.dumb {
		return r
	}
	mode, err := term.GetState(int(os.Stdin.Fd()))
	if err != nil {
		return r
	}
	r.mode, r.glyphs = mode, newGlyphs()
	if err := r.edit(o); err != nil {
		fmt.Fprintf(os.Stderr, "grove: lines cannot be edited: %v\n", err)
		return r
	}
	_, _ = io.WriteString(os.Stderr, pasteOn)
	if o.History {
		r.recall()
	}
	return r
}

// edit starts the line editor.
func (r *LineReader) edit(o LineOptions) (err error) {
	k := &keys{from: os.Stdin, to: os.Stderr, glyphs: r.glyphs}
	words := &words{glyphs: r.glyphs}
	config := &readline.Config{
		Stdin: k, Stdout: k, Stderr: k, Undo: true,
		HistoryLimit: historyMessages, DisableAutoSaveHistory: true, HistorySearchFold: true,
		FuncIsTerminal: func() bool { return true }, FuncGetSize: editorSize,
		FuncMakeRaw: func() error {
			_, err := term.MakeRaw(int(os.Stdin.Fd()))
			return err
		},
		FuncExitRaw:         r.rest,
		FuncFilterInputRune: words.filter, Listener: words.edit,
	}
	if o.Complete != nil {
		config.AutoComplete = completer{r.glyphs, o.Complete}
	}
	r.editor, err = readline.NewFromConfig(config)
	return err
}

// editorSize returns the present size of the terminal of standard error.
func editorSize() (columns, rows int) { return sizeOf(os.Stderr) }

// recall offers the messages of earlier runs.
func (r *LineReader) recall() {
	path, err := historyPath()
	if err != nil {
		r.complain(err)
		return
	}
	r.history = &history{path}
	messages, err := r.history.read()
	r.complain(err)
	for _, m := range messages {
		r.remember(m)
	}
}

// rest sets the mode between lines: as before, without the echo of keys, which would appear within answers.
func (r *LineReader) rest() error {
	fd := int(os.Stdin.Fd())
	return errors.Join(term.Restore(fd, r.mode), silence(fd))
}

// Close gives the terminal back as it was.
func (r *LineReader) Close() {
	if r.editor == nil {
		return
	}
	_ = r.editor.Close()
	_, _ = io.WriteString(os.Stderr, pasteOff)
	_ = term.Restore(int(os.Stdin.Fd()), r.mode)
}

// Person reports whether a person writes the lines, at a terminal.
func (r *LineReader) Person() bool { return r.editor != nil || r.dumb }

// Message returns the next message: a line; lines of which all but the last end with a backslash; or the text between
// """ and """. The end of the input, and Ctrl-C at the prompt, give [io.EOF]; Ctrl-C at a further line drops the message, and the next
// one is read. A signal gives an [exit.SignalError].
func (r *LineReader) Message() (string, error) {
	text, err := r.message()
	for errors.Is(err, errDropped) {
		text, err = r.message()
	}
	if err == nil && r.editor != nil {
		text = strings.TrimRight(text, "\n") // a paste often ends with a line end
		r.keep(text)
	}
	return text, err
}

// errDropped says that a person gave up a message of several lines.
var errDropped = errors.New("the message is dropped")

// further is the prompt of the lines of a message behind its first.
const further = ". "

func (r *LineReader) message() (string, error) {
	text, err := r.line("> ")
	if err != nil {
		return "", err
	}
	if block, ok := strings.CutPrefix(text, `"""`); ok {
		return r.block(block)
	}
	for strings.HasSuffix(text, `\`) {
		more, err := r.line(further)
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
		more, err := r.line(further)
		if errors.Is(err, io.EOF) {
			return "", errors.New(`the input ends before the """ that ends a message`)
		}
		if err != nil {
			return "", err
		}
		text += "\n" + more
	}
}

// keep adds a message to the history. The first error is reported and ends the history of later runs.
func (r *LineReader) keep(message string) {
	if err := r.history.add(message); err != nil {
		r.complain(err)
		r.history = nil
	}
	if !strings.HasPrefix(message, " ") {
		r.remember(message)
	}
}

// remember adds a message to what the editor offers.
func (r *LineReader) remember(message string) {
	_ = r.editor.SaveToHistory("") // back to the end: a message that was recalled and edited stays as it was
	_ = r.editor.SaveToHistory(string(r.glyphs.of(message)))
}

func (r *LineReader) complain(err error) {
	if err != nil {
		exit.Report(os.Stderr, err)
	}
}

// line reads a line. A signal ends the wait.
func (r *LineReader) line(prompt string) (string, error) {
	type result struct {
		text string
		err  error
	}
	got := make(chan result, 1)
	if r.editor != nil {
		select {
		case <-r.signals.came: // an interrupt of the answer that came after its end
		default:
		}
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

// read reads a line.
func (r *LineReader) read(prompt string) (string, error) {
	if r.editor != nil {
		r.editor.SetPrompt(prompt)
		text, err := r.editor.ReadLine()
		switch {
		case errors.Is(err, readline.ErrInterrupt) && prompt == further:
			err = errDropped
		case errors.Is(err, readline.ErrInterrupt):
			err = io.EOF
		}
		return r.glyphs.text([]rune(text)), err
	}
	if r.dumb {
		_, _ = io.WriteString(os.Stderr, prompt)
	}
	text, err := r.plain.ReadString('\n')
	if err == io.EOF && text != "" {
		err = nil
	}
	if err != nil && err != io.EOF {
		err = fmt.Errorf("standard input: %w", err)
	}
	return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r"), err
}

// completer offers the completions of a line to the editor.
type completer struct {
	glyphs   *glyphs
	complete func(text string) (end string, candidates []string)
}

// Do implements [readline.AutoCompleter].
func (c completer) Do(line []rune, at int) (ends [][]rune, shared int) {
	end, candidates := c.complete(c.glyphs.text(line[:at]))
	for _, text := range candidates {
		if rest, ok := strings.CutPrefix(text, end); ok {
			ends = append(ends, c.glyphs.of(rest))
		}
	}
	return ends, len(c.glyphs.of(end))
}
