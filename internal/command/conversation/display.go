package conversation

import (
	"fmt"
	"io"
	"os"
	"strings"

	"grove"
	"grove/internal/command/terminal"
	"grove/internal/text/answer"
)

// Show says how answers are shown. Where standard output is no terminal, it gets their text as it is.
type Show struct {
	Plain        bool // at a terminal, Markdown is shown as it is written
	HideThinking bool // thoughts are left out; at a terminal, a line counts their tokens
	NoCanvas     bool // at a terminal, the canvas of a diffusion model is not shown while it fills
}

// display shows an answer as it arrives. It is for one goroutine.
type display struct {
	Show
	out    io.Writer // standard output
	notes  io.Writer // standard error
	person bool      // standard output is a terminal
	styled bool      // and it obeys sequences

	answer   plainText
	thoughts plainText
	canvas   *CanvasView
	thinking bool       // the last part was a thought
	counted  func() int // tokens of thoughts so far
	begun    bool       // something was shown

	content, reasoning strings.Builder
}

// plainText takes a text in pieces.
type plainText interface {
	CanvasText
	Text(piece string) error
	End() error
}

// newDisplay returns the display of an answer.
func (s Show) newDisplay(counted func() int) *display {
	d := &display{Show: s, out: terminal.Stdout, notes: os.Stderr, styled: terminal.Styled(), counted: counted, canvas: NewCanvas(s.NoCanvas)}
	d.person, _ = terminal.Columns()
	d.answer = terminal.NewWrapper(terminal.Stdout)
	if d.styled && !s.Plain {
		d.answer = NewWriter(terminal.Stdout, terminal.Size)
	}
	d.thoughts = terminal.NewWrapper(terminal.Stdout)
	if d.styled {
		d.thoughts = terminal.NewWrapper(dimmed{terminal.Stdout})
	}
	return d
}

// dimmed writes dimmed text.
type dimmed struct{ to io.Writer }

// Write implements [io.Writer].
func (d dimmed) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	_, err := io.WriteString(d.to, "\x1b[2m"+string(b)+"\x1b[0m")
	return len(b), err
}

// show shows what a token brings.
func (d *display) show(t grove.TokenParts) (err error) {
	if err = d.canvas.Clear(); err != nil {
		return err
	}
	if !d.person && !d.HideThinking {
		_, err = io.WriteString(d.out, t.Text)
	}
	for _, p := range t.Parts {
		isThought := p.Kind == answer.Reasoning
		if isThought {
			d.reasoning.WriteString(p.Text)
		} else {
			d.content.WriteString(p.Text)
		}
		if err == nil && (d.person || d.HideThinking) {
			err = d.part(p.Text, isThought)
		}
	}
	return err
}

// watch shows a canvas behind what is under way.
func (d *display) watch(runs []grove.CanvasRun) error {
	switch {
	case !d.thinking:
		return d.canvas.Show(d.answer, runs)
	case d.HideThinking:
		return nil
	}
	return d.canvas.Show(d.thoughts, runs)
}

// part shows a piece of a thought or of the answer.
func (d *display) part(piece string, isThought bool) error {
	if !d.begun {
		piece = strings.TrimLeft(piece, "\n") // between thoughts and the answer
	}
	if piece == "" {
		return nil
	}
	if isThought != d.thinking {
		if err := d.turn(isThought); err != nil {
			return err
		}
		if piece = strings.TrimLeft(piece, "\n"); piece == "" {
			return nil
		}
	}
	d.begun = true
	switch {
	case !isThought:
		return d.answer.Text(piece)
	case d.HideThinking:
		d.count("\r", "")
		return nil
	}
	return d.thoughts.Text(piece)
}

// turn goes from thoughts to the answer or back, with a line between.
func (d *display) turn(thinking bool) (err error) {
	if d.begun && d.thinking && !d.HideThinking {
		err = d.thoughts.End()
	} else if d.begun && !d.thinking {
		err = d.answer.End()
	}
	wasThinking := d.thinking
	d.thinking, d.begun = thinking, false
	if err != nil || !d.person {
		return err
	}
	switch {
	case d.HideThinking && wasThinking:
		d.count("\r", "\n")
	case d.HideThinking:
	case thinking:
		return d.line("── thoughts")
	default:
		return d.line("──")
	}
	return nil
}

// line writes a line between thoughts and the answer.
func (d *display) line(text string) error {
	w := d.out
	if d.styled {
		w = dimmed{w}
	}
	_, err := io.WriteString(w, text+"\n")
	return err
}

// count writes the line that counts the tokens of thoughts.
func (d *display) count(before, after string) {
	if d.person && (d.styled || after != "") {
		fmt.Fprintf(d.notes, "%sgrove: %d tokens of thoughts%s", before, d.counted(), after)
	}
}

// end ends the answer and its line.
func (d *display) end() error {
	if err := d.canvas.Clear(); err != nil {
		return err
	}
	switch {
	case !d.person:
		_, err := io.WriteString(d.out, "\n")
		return err
	case d.thinking && d.HideThinking:
		d.count("\r", "\n")
		return nil
	case d.thinking:
		return d.thoughts.End()
	}
	return d.answer.End()
}

// message returns the answer, or the part of it that has come.
func (d *display) message() grove.Message {
	return grove.Message{Role: "assistant", Content: d.content.String(), Reasoning: d.reasoning.String()}
}
