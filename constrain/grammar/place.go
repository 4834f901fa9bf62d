package grammar

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// Place returns the line and the column of a byte of a grammar's text, both from 1; columns count code points. A byte beyond the
// text stands for its end.
func Place(text []byte, at int) (line, column int) {
	before := text[:min(at, len(text))]
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
}

// Found returns what stands at a byte of a grammar's text, for an error.
func Found(text []byte, at int) string {
	if at >= len(text) {
		return "the end of the grammar"
	}
	r, _ := utf8.DecodeRune(text[at:])
	return fmt.Sprintf("%q", r)
}
