package bench

import (
	"encoding/json"
	"fmt"
)

// spaced writes a JSON text, which must be valid, as Python's json.dumps with ensure_ascii=False: a blank behind commas and colons, members
// in their order, characters beyond ASCII as they are. Numbers stay as they are written.
func spaced(text []byte) (string, error) {
	var out []byte
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case ' ', '\t', '\n', '\r':
		case ',', ':':
			out = append(out, c, ' ')
		case '"':
			end := i + 1
			for ; end < len(text) && text[end] != '"'; end++ {
				if text[end] == '\\' {
					end++
				}
			}
			var s string
			if err := json.Unmarshal(text[i:min(end+1, len(text))], &s); err != nil {
				return "", err
			}
			out, i = quoted(out, s), end
		default:
			out = append(out, c)
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
