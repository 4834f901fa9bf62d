package conversation

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"grove/internal/command/harmless"
	"grove/internal/command/terminal"
)

// Writer shows Markdown that arrives in pieces: the block under way as it is written, and each block that is complete as
// [Render] gives it, in place of the former. A block that no longer fits the terminal stays as it was written, and so does one
// during which the terminal's width changes. It is for one goroutine.
type Writer struct {
	out  io.Writer
	size func() (columns, rows int)

	begun bool   // something was written
	held  string // a carriage return, until it is known whether it ends a line
	line  string // that has not ended
	code  string // the fence of the block of code under way, whose lines are shown as they come; "": there is none

	draft  *terminal.Wrapper // shows the block under way and the line; nil: neither has come
	block  string            // the complete lines of the block
	list   bool              // it is an item of a list
	fence  string            // of code inside the item
	blanks bool              // blank lines are behind the item
	fixed  bool              // the draft cannot be erased
	width  int               // of the terminal when the draft began
	before int               // and when the line did
}

// NewWriter returns a Writer to a terminal whose present size a function gives.
func NewWriter(out io.Writer, size func() (columns, rows int)) *Writer {
	return &Writer{out: out, size: size}
}

// Kinds of lines.
var (
	fences   = regexp.MustCompile("^ {0,3}(```+|~~~+)([^`]*)$")
	inner    = regexp.MustCompile("^\\s*(?:[-*+] +|\\d+[.)] +)?(```+|~~~+)")
	headings = regexp.MustCompile(`^ {0,3}#{1,6}(\s|$)`)
	items    = regexp.MustCompile(`^([-*+]|\d{1,9}[.)])(\s|$)`)
	indented = regexp.MustCompile(`^[ \t]`)
)

// Text writes the next piece of the text.
func (w *Writer) Text(text string) error {
	text = w.held + text
	w.held = ""
	if strings.HasSuffix(text, "\r") {
		text, w.held = text[:len(text)-1], "\r"
	}
	var b strings.Builder
	text = strings.ReplaceAll(text, "\r\n", "\n")
	for text != "" {
		piece, rest, ends := strings.Cut(text, "\n")
		w.add(&b, piece)
		if ends {
			w.end(&b)
		}
		text = rest
	}
	return w.flush(&b)
}

// Ahead returns how a text that may follow looks before it is rendered. In a line of code it begins on the next row.
func (w *Writer) Ahead(text string) terminal.Ahead {
	if w.draft != nil {
		return w.draft.Ahead(text)
	}
	a := terminal.NewDraft(w.columns).Ahead(text)
	if w.line != "" {
		a.Text, a.Column = "\n"+a.Text, terminal.ColumnsOf(w.line)
	}
	return a
}

// columns returns the present columns of a line of a draft.
func (w *Writer) columns() int {
	columns, _ := w.size()
	return max(1, columns-1) // terminals do not agree about what happens at the last column
}

// End writes what is left, and the end of the line.
func (w *Writer) End() error {
	var b strings.Builder
	w.add(&b, w.held)
	if w.line != "" {
		w.end(&b)
	}
	w.finish(&b)
	if !w.begun && b.Len() == 0 {
		b.WriteByte('\n')
	}
	err := w.flush(&b)
	*w = Writer{out: w.out, size: w.size}
	return err
}

func (w *Writer) flush(b *strings.Builder) error {
	if b.Len() == 0 {
		return nil
	}
	w.begun = true
	_, err := io.WriteString(w.out, b.String())
	return err
}

// add shows a piece of a line.
func (w *Writer) add(b *strings.Builder, piece string) {
	if piece == "" {
		return
	}
	columns, rows := w.size()
	if w.line == "" {
		w.before = columns
	}
	w.line += piece
	if w.code != "" {
		b.WriteString(styled(harmless.Text(piece), cyan))
		return
	}
	if w.draft == nil {
		w.begin(columns)
	}
	b.WriteString(w.draft.Wrap(piece))
	w.fixed = w.fixed || columns != w.width || w.draft.Rows() >= rows-1
}

// begin begins a block.
func (w *Writer) begin(columns int) {
	w.block, w.list, w.fence, w.blanks, w.fixed, w.width = "", false, "", false, false, columns
	w.draft = terminal.NewDraft(w.columns)
}

// end ends a line.
func (w *Writer) end(b *strings.Builder) {
	line := w.line
	if w.code != "" {
		w.line = ""
		b.WriteByte('\n')
		if t := strings.TrimSpace(line); len(t) >= len(w.code) && strings.Trim(t, w.code[:1]) == "" {
			w.code = ""
		}
		return
	}
	if w.fence != "" && !indented.MatchString(line) && strings.TrimSpace(line) != "" {
		w.fence = "" // the item has ended
	}
	opening := fences.FindStringSubmatch(line)
	switch {
	case strings.TrimSpace(line) == "":
		w.blank(b)
	case w.list && indented.MatchString(line):
		w.within(line)
		w.take(b)
	case opening != nil:
		w.cut(b)
		w.open(b, opening[1], opening[2])
	case headings.MatchString(line):
		w.cut(b)
		w.take(b)
		w.finish(b)
	case items.MatchString(line) && w.itemBegins(line):
		w.cut(b)
		w.list = true
		w.within(line)
		w.take(b)
	default:
		if w.blanks {
			w.cut(b)
		}
		w.take(b)
	}
}

// itemBegins reports whether a line with the marker of an item begins one: in the middle of a paragraph, a number does not.
func (w *Writer) itemBegins(line string) bool {
	return w.list || w.block == "" || !strings.Contains("0123456789", line[:1])
}

// within notes where code inside an item begins and ends.
func (w *Writer) within(line string) {
	if w.fence != "" {
		if t := strings.TrimSpace(line); len(t) >= len(w.fence) && strings.Trim(t, w.fence[:1]) == "" {
			w.fence = ""
		}
	} else if m := inner.FindStringSubmatch(line); m != nil {
		w.fence = m[1]
	}
}

// take adds the line to the block.
func (w *Writer) take(b *strings.Builder) {
	w.block, w.line = w.block+w.line+"\n", ""
	b.WriteString(w.draft.Wrap("\n"))
	_, rows := w.size()
	w.fixed = w.fixed || w.draft.Rows() >= rows-1
}

// blank takes a blank line. It ends the block, unless that is an item, which may go on.
func (w *Writer) blank(b *strings.Builder) {
	if w.list {
		w.blanks = w.fence == ""
		w.take(b)
		return
	}
	if w.draft != nil && w.block == "" {
		w.draft = nil // blanks alone, which were not shown
	}
	w.line = ""
	w.finish(b)
	b.WriteByte('\n')
}

// cut ends the block before the line, which begins another.
func (w *Writer) cut(b *strings.Builder) {
	if w.block == "" {
		return
	}
	columns, _ := w.size()
	line, fixed, resized := w.line, w.fixed, w.before != columns
	w.line = ""
	w.finish(b)
	w.begin(columns)
	w.line, w.fixed = line, fixed && resized
	if shown := w.draft.Wrap(line); !fixed {
		b.WriteString(shown)
	}
}

// finish ends the block.
func (w *Writer) finish(b *strings.Builder) {
	if w.draft == nil {
		return
	}
	draft, block, blanks := w.draft, w.block, w.blanks
	w.draft, w.block, w.list, w.fence, w.blanks = nil, "", false, "", false
	if w.fixed || block == "" {
		return
	}
	erase(b, draft.Rows())
	columns, _ := w.size()
	lines, ok := Render(block, columns)
	if !ok {
		plain := terminal.NewDraft(func() int { return columns })
		lines = []string{strings.TrimRight(plain.Wrap(block), "\n")}
	}
	b.WriteString(strings.Join(lines, "\n") + "\n")
	if blanks {
		b.WriteByte('\n')
	}
}

// erase erases the row of the cursor and those above it.
func erase(b *strings.Builder, above int) {
	b.WriteByte('\r')
	if above > 0 {
		fmt.Fprintf(b, "\x1b[%dA", above)
	}
	b.WriteString("\x1b[J")
}

// open begins a block of code with the line.
func (w *Writer) open(b *strings.Builder, mark, info string) {
	if w.fixed {
		b.WriteString(w.draft.Wrap("\n"))
	} else {
		erase(b, w.draft.Rows())
		b.WriteString(styled(mark+harmless.Text(info), dim) + "\n")
	}
	w.code, w.line, w.draft = mark, "", nil
}
