package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// spaced writes a JSON text as Python's json.dumps with ensure_ascii=False: a blank behind commas and colons, members in their order,
// characters beyond ASCII as they are. Numbers stay as they are written.
func spaced(text []byte) (string, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var out []byte
	var open []byte // brackets
	n := 0          // parts of the innermost one
	var counts []int
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
		if c, ok := t.(json.Delim); ok && (c == '}' || c == ']') {
			out = append(out, byte(c))
			open, n, counts = open[:len(open)-1], counts[len(counts)-1], counts[:len(counts)-1]
			continue
		}
		switch {
		case len(open) == 0:
		case open[len(open)-1] == '{' && n%2 == 1:
			out = append(out, ": "...)
		case n > 0:
			out = append(out, ", "...)
		}
		n++
		switch t := t.(type) {
		case json.Delim:
			out = append(out, byte(t))
			open, counts, n = append(open, byte(t)), append(counts, n), 0
		case string:
			out = quoted(out, t)
		case nil:
			out = append(out, "null"...)
		default:
			out = fmt.Append(out, t)
		}
	}
	return string(out), nil
}

// quoted appends a string with the escapes of Python.
func quoted(dst []byte, text string) []byte {
	dst = append(dst, '"')
	for _, r := range text {
		switch r {
		case '"', '\\':
			dst = append(dst, '\\', byte(r))
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		case '\b':
			dst = append(dst, `\b`...)
		case '\f':
			dst = append(dst, `\f`...)
		default:
			if r < 0x20 {
				dst = fmt.Appendf(dst, `\u%04x`, r)
			} else {
				dst = append(dst, string(r)...)
			}
		}
	}
	return append(dst, '"')
}
