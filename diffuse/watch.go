package diffuse

import (
	"strings"

	"grove/text/token"
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
			runs = append(runs, Run{Text: strings.ToValidUTF8(string(text), "\uFFFD")})
			text = text[:0]
		}
	}
	for _, p := range g.canvas[len(g.Finished()):] {
		if p.ID != g.s.Mask {
			text = g.s.appendPiece(text, p.ID)
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

// appendPiece appends the text of a token; one that has none adds nothing.
func (s *Settings) appendPiece(text []byte, id token.ID) []byte {
	if with, err := s.Piece(text, id); err == nil {
		return with
	}
	return text
}

// tell tells who watches how far the canvas is.
func (g *Generator) tell() {
	if g.s.Watch != nil {
		g.s.Watch(g.unfinished())
	}
}
