// canvas.go shows the canvas of a diffusion model at a terminal while it fills: behind the text so far, and erased before the next text is written.

package conversation

import (
	"fmt"
	"io"
	"strings"

	"grove"
	"grove/internal/command/terminal"
)

// CanvasText is a writer of the text before the canvas.
type CanvasText interface {
	// Ahead returns how a text that may follow looks.
	Ahead(text string) terminal.Ahead
}

// CanvasView shows a canvas. The zero value, and nil, show nothing. It is for one goroutine.
type CanvasView struct {
	out   io.Writer
	size  func() (columns, rows int)
	shown bool
}

// NewCanvas returns the view of standard output; nil where that is no terminal that moves its cursor, as its user wants, or off.
func NewCanvas(off bool) *CanvasView {
	if off || !terminal.Styled() {
		return nil
	}
	return &CanvasView{out: terminal.Stdout, size: terminal.Size}
}

// mask is what stands for a mask: a light block, one column wide.
const mask = string(terminal.Block)

// Show shows a canvas behind a text, in place of the one that was shown. Of one that is longer than the terminal has room for, the beginning is shown.
func (v *CanvasView) Show(behind CanvasText, runs []grove.CanvasRun) error {
	if v == nil {
		return nil
	}
	columns, rows := v.size()
	a := behind.Ahead(picture(runs, columns*rows))
	if a.Column >= columns || a.Text == "" {
		return v.Clear() // the cursor could not come back
	}
	text := clip(a.Text, rows-1-a.Above)
	above := strings.Count(text, "\n")
	var b strings.Builder
	fmt.Fprintf(&b, "\x1b[J\x1b[2m%s\x1b[0m\r", text)
	if above > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", above)
	}
	if a.Column > 0 {
		fmt.Fprintf(&b, "\x1b[%dC", a.Column)
	}
	v.shown = true
	_, err := io.WriteString(v.out, b.String())
	return err
}

// Clear erases the canvas: the cursor is where the next text begins.
func (v *CanvasView) Clear() error {
	if v == nil || !v.shown {
		return nil
	}
	v.shown = false
	_, err := io.WriteString(v.out, "\x1b[J")
	return err
}

// picture returns the text of a canvas, as far as a screen of most cells can show it.
func picture(runs []grove.CanvasRun, most int) string {
	var b strings.Builder
	for _, r := range runs {
		b.WriteString(r.Text)
		b.WriteString(strings.Repeat(mask, min(r.Masks, most)))
		if b.Len() >= most*len(mask) {
			break
		}
	}
	return b.String()
}

// clip returns a text up to the end of a number of line ends; none where there is no room for any.
func clip(text string, ends int) string {
	for at, r := range text {
		if r != '\n' {
			continue
		}
		if ends--; ends < 0 {
			return text[:at]
		}
	}
	return text
}
