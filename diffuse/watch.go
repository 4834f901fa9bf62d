package diffuse

import (
	"strings"

	"grove/internal/text/token"
)

// Run is a part of a canvas: the text of tokens beside each other, or so many masks.
type Run struct {
	Text  string // of whole characters: others are U+FFFD
	Masks int
}

// unfinished returns the canvas behind the places that stay as they are, as runs of tokens and of masks. The slice is the caller's.
func (g *Generator) unfinished() (runs []Run) {
	var text []byte
	end := func() {
		if len(text) > 0 {
			runs = append(runs, textRun(text))
			text = text[:0]
		}
	}
	for _, p := range g.canvas[len(g.Finished()):] {
		if p.ID != g.s.Mask {
			text = appendPiece(text, p.ID, g.s.Piece)
			continue
		}
		if end(); len(runs) == 0 || runs[len(runs)-1].Masks == 0 {
			runs = append(runs, Run{})
		}
		runs[len(runs)-1].Masks++
	}
	end()
	return runs
}

// tell tells who watches which tokens are the likeliest so far.
func (g *Renoiser) tell() {
	switch {
	case g.s.Watch == nil:
	case g.step == 0:
		g.s.Watch([]Run{{Masks: len(g.canvas)}})
	default:
		var text []byte
		for _, id := range g.likely {
			text = appendPiece(text, id, g.s.Piece)
		}
		g.s.Watch([]Run{textRun(text)})
	}
}

// textRun returns the run of a text.
func textRun(text []byte) Run { return Run{Text: strings.ToValidUTF8(string(text), "\uFFFD")} }

// appendPiece appends the text of a token; one that has none adds nothing.
func appendPiece(text []byte, id token.ID, piece func(dst []byte, id token.ID) ([]byte, error)) []byte {
	if with, err := piece(text, id); err == nil {
		return with
	}
	return text
}
