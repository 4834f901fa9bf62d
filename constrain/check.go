package constrain

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// TextError says where a text leaves a language.
type TextError struct {
	Offset   int    // bytes of the text that a legal one may begin with
	Line     int    // of that place, from 1
	Found    string // the character there; "": the end of the text
	Expected string // what was possible, in words
}

// Error returns the place, what is there and what was expected.
func (e *TextError) Error() string {
	found := "the end of the text"
	if r, size := utf8.DecodeRuneInString(e.Found); size > 0 {
		found = strconv.Quote(e.Found)
		if r == utf8.RuneError && size == 1 {
			found = fmt.Sprintf("byte 0x%02x", e.Found[0])
		}
	}
	return fmt.Sprintf("byte %d (line %d): found %s, expected %s", e.Offset, e.Line, found, e.Expected)
}

// Check returns nil for a legal text, and a [*TextError] for another. Errors of the grammar's limits are others. Triggers and thoughts do
// not count: the text is one that would stand behind them.
func (c *Constraint) Check(text []byte) error {
	if c.rec == nil {
		return errors.New("constrain: the constraint has no grammar that a text can be checked by")
	}
	c = c.fresh()
	at, n, err := c.rec.push(c.root, text)
	if err != nil || n == len(text) && c.rec.ends(at) {
		return err
	}
	e := &TextError{Offset: n, Line: 1 + bytes.Count(text[:n], []byte{'\n'}), Expected: c.rec.expected(at)}
	if n < len(text) {
		_, size := utf8.DecodeRune(text[n:])
		e.Found = string(text[n : n+size])
	}
	return e
}
