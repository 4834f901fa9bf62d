package openai

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"grove/server/wire"
)

// The model writes the text of a custom tool as the argument of a function: {"input": "..."}.

// customArguments returns the arguments of a call with a text.
func customArguments(text string) string {
	raw, err := wire.Marshal(map[string]string{"input": text})
	if err != nil { // a text of the body has been checked
		return "{}"
	}
	return string(raw)
}

// customBegun is what arguments have before the text.
var customBegun = regexp.MustCompile(`^\s*\{\s*"input"\s*:\s*"`)

// customInput returns the text of a call's arguments: that of input, as far as it goes, or all of them where the model wrote something else.
func customInput(arguments string) string {
	var t customText
	if text := t.add(arguments); t.begun {
		return text
	}
	var text string
	if json.Unmarshal([]byte(arguments), &text) == nil {
		return text
	}
	return arguments
}

// customText reads the text of arguments that come in parts.
type customText struct {
	rest  string // that is not read yet
	begun bool
	ended bool
}

// add adds a part of the arguments and returns what it adds to the text.
func (t *customText) add(part string) string {
	if t.ended {
		return ""
	}
	t.rest += part
	if !t.begun {
		begin := customBegun.FindString(t.rest)
		if begin == "" {
			return ""
		}
		t.begun, t.rest = true, t.rest[len(begin):]
	}
	n := 0
	for n < len(t.rest) && !t.ended {
		size := escapeSize(t.rest[n:])
		if size == 0 {
			break
		}
		if t.ended = t.rest[n] == '"'; !t.ended {
			n += size
		}
	}
	var text string
	if json.Unmarshal([]byte(`"`+t.rest[:n]+`"`), &text) != nil { // it is no JSON: as it is
		text = t.rest[:n]
	}
	t.rest = t.rest[n:]
	return text
}

// escapeSize returns the bytes of the character or escape that a JSON string begins with, both halves of a pair together; 0: more must come.
func escapeSize(text string) int {
	if text[0] != '\\' {
		return 1
	}
	if len(text) < 2 {
		return 0
	}
	code, whole := escapeCode(text)
	switch {
	case text[1] != 'u':
		return 2
	case !whole:
		return 0
	case code < 0xD800 || code > 0xDBFF: // no first half of a pair
		return 6
	case len(text) < 8 && strings.HasPrefix(`\u`, text[6:]):
		return 0
	case !strings.HasPrefix(text[6:], `\u`):
		return 6
	}
	second, whole := escapeCode(text[6:])
	switch {
	case !whole:
		return 0
	case utf16.DecodeRune(code, second) == utf8.RuneError:
		return 6
	}
	return 12
}

// escapeCode returns the code of an escape of four digits; false: it is not whole.
func escapeCode(text string) (rune, bool) {
	if len(text) < 6 {
		return 0, false
	}
	n, _ := strconv.ParseUint(text[2:6], 16, 16)
	return rune(n), true
}
