package terminal

import (
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"grove/internal/command/harmless"
)

// Wrapper writes a text that arrives in pieces. To a terminal, it writes lines that break between words and nothing that
// controls the terminal ([harmless.Text]); elsewhere it changes nothing. It is for one goroutine.
type Wrapper struct {
	out   io.Writer
	size  func() (terminal bool, columns int) // 0 columns: lines are not broken
	exact bool                                // words that are longer than a line break by a line end

	column int
	rows   int    // line ends that were written
	rest   string // the last character, which the next piece may continue
	word   []byte // that is not written yet
	wide   int    // columns of the word
	space  int    // columns before the word
}

// NewWrapper returns a Wrapper to out, which is standard output.
func NewWrapper(out io.Writer) *Wrapper { return &Wrapper{out: out, size: Columns} }

// longestCharacter is the bytes of a character that waits for its next rune.
const longestCharacter = 128

// NewDraft returns a Wrapper for a text at a terminal that is to be erased: no line is longer than columns gives, so that
// [Wrapper.Rows] counts the rows that it takes. It writes nothing itself: [Wrapper.Wrap] gives what it would.
func NewDraft(columns func() int) *Wrapper {
	return &Wrapper{exact: true, size: func() (bool, int) { return true, columns() }}
}

// Say writes lines to standard error. Nothing in them controls a terminal, and at one they break between words.
func Say(text string) {
	if text = harmless.Text(text) + "\n"; Is(os.Stderr) {
		text = NewDraft(func() int { columns, _ := editorSize(); return columns }).Wrap(text)
	}
	_, _ = io.WriteString(os.Stderr, text)
}

// Rows returns the number of line ends that were written.
func (w *Wrapper) Rows() int { return w.rows }

// tabStop is the distance of the tab stops of a terminal.
const tabStop = 8

// Text writes the next piece of the text.
func (w *Wrapper) Text(text string) error {
	if terminal, _ := w.size(); !terminal {
		_, err := io.WriteString(w.out, text)
		return err
	}
	_, err := io.WriteString(w.out, w.Wrap(text))
	return err
}

// Wrap returns what is written to a terminal for the next piece of the text.
func (w *Wrapper) Wrap(text string) string {
	_, columns := w.size()
	var b strings.Builder
	text = w.rest + text
	for state := -1; text != ""; {
		var cluster string
		whole := text
		cluster, text, _, state = uniseg.FirstGraphemeClusterInString(text, state)
		if text == "" && len(whole) < longestCharacter { // the next piece may go on with it
			w.rest = whole
			break
		}
		w.put(&b, cluster, columns)
		w.rest = ""
	}
	if strings.HasSuffix(w.rest, "\n") {
		w.put(&b, w.rest, columns)
		w.rest = ""
	}
	return b.String()
}

// Ahead is how a text that may follow looks at a terminal, where it can be erased again: no line of it is longer than the terminal's.
type Ahead struct {
	Text   string
	Column int // at which it begins
	Above  int // rows above that must stay on the screen
}

// Ahead returns how a text that may follow looks, with the last word that is not written yet. The wrapper stays as it is. Where the terminal's size is not known it is nothing.
func (w *Wrapper) Ahead(text string) Ahead {
	_, columns := w.size()
	if columns <= 0 {
		return Ahead{}
	}
	next, above := *w, 0
	if next.word, next.exact = slices.Clone(w.word), true; w.exact {
		above = w.rows
	}
	var b strings.Builder
	b.WriteString(next.Wrap(text))
	next.put(&b, next.rest, columns)
	next.flush(&b, columns)
	return Ahead{b.String(), w.column, above}
}

// Block stands for something of one column that is not known yet. A line can break on both sides of it.
const Block = '░'

// ColumnsOf returns the columns of a line that was written from the first column on.
func ColumnsOf(line string) (n int) {
	for part := range strings.SplitAfterSeq(line, "\t") {
		text, tab := strings.CutSuffix(part, "\t")
		if n += Width(harmless.Text(text)); tab {
			n += tabStop - n%tabStop
		}
	}
	return n
}

// put adds a character.
func (w *Wrapper) put(b *strings.Builder, cluster string, columns int) {
	switch cluster {
	case "\n", "\r\n":
		w.flush(b, columns)
		w.line(b)
		return
	case " ":
		w.flush(b, columns)
		w.space++
		return
	case "\t":
		w.flush(b, columns)
		w.space += tabStop - (w.column+w.space)%tabStop
		return
	}
	cluster = harmless.Text(cluster)
	n := Width(cluster)
	if n == 2 && !isEmoji(cluster) || cluster == string(Block) { // East Asian text: a line can break on both sides
		w.flush(b, columns)
		w.word, w.wide = append(w.word, cluster...), n
		w.flush(b, columns)
		return
	}
	w.word, w.wide = append(w.word, cluster...), w.wide+n
	if columns > 0 && w.wide > 4*columns { // no word; a bound on what waits
		w.flush(b, columns)
	}
}

func isEmoji(cluster string) bool {
	r, _ := utf8.DecodeRuneInString(cluster)
	return r >= 0x1f000 || r >= 0x2300 && r < 0x2e80
}

func (w *Wrapper) line(b *strings.Builder) {
	b.WriteByte('\n')
	w.column, w.space, w.rows = 0, 0, w.rows+1
}

// flush writes the word, on a new line if it does not fit the present one.
func (w *Wrapper) flush(b *strings.Builder, columns int) {
	if len(w.word) == 0 {
		return
	}
	if columns > 0 && w.column > 0 && w.column+w.space+w.wide > columns {
		w.line(b)
	}
	if columns > 0 {
		w.space = min(w.space, columns-1)
	}
	b.WriteString(strings.Repeat(" ", w.space))
	w.column += w.space
	word := string(w.word)
	w.word, w.wide, w.space = w.word[:0], 0, 0
	for state := -1; word != ""; {
		var cluster string
		cluster, word, _, state = uniseg.FirstGraphemeClusterInString(word, state)
		n := Width(cluster)
		if columns > 0 && w.column > 0 && w.column+n > columns {
			if w.exact {
				w.line(b)
			}
			w.column = 0 // the terminal goes on with the next row, and a copy of the word is whole
		}
		b.WriteString(cluster)
		w.column += n
	}
}

// End writes the last word and the end of the line.
func (w *Wrapper) End() error {
	terminal, columns := w.size()
	var b strings.Builder
	if terminal && w.rest != "" {
		w.put(&b, w.rest, columns)
	}
	w.flush(&b, columns)
	w.line(&b)
	*w = Wrapper{out: w.out, size: w.size, exact: w.exact}
	_, err := io.WriteString(w.out, b.String())
	return err
}

// Width returns the most columns that a character or a text takes on terminals: not all of them join the runes of a
// character.
func Width(text string) int {
	sum := 0
	for _, r := range text {
		sum += uniseg.StringWidth(string(r))
	}
	return max(sum, uniseg.StringWidth(text))
}
