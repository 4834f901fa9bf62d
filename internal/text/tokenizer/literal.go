package tokenizer

import (
	"errors"
	"strings"

	"grove/internal/text/token"
)

// Span is a range of bytes of a text: From to To-1.
type Span struct{ From, To int }

// fragments cuts text at the special tokens written in it. A special token that touches a literal span is plain text, and so is
// every one if the text is plain.
func (t *Tokenizer) fragments(text string, o Options, w *scratch, found func(fragment) error) error {
	if len(o.Literal) == 0 || o.Plain {
		return t.specials.partition(text, o.Plain, w, found)
	}
	guard, err := unusedByte(text)
	if err != nil {
		return err
	}
	if text, err = t.guarded(text, o.Literal, guard, w); err != nil {
		return err
	}
	bare := func(f fragment) error { return found(fragment{strings.ReplaceAll(f.text, guard, ""), f.id}) }
	return t.specials.partition(text, false, w, func(f fragment) error {
		if f.id != token.None {
			return found(f)
		}
		return t.controls.partition(f.text, false, w, bare)
	})
}

// unusedByte returns a byte that neither UTF-8 nor the text has.
func unusedByte(text string) (string, error) {
	for b := 0xff; b > 0xf4; b-- {
		if strings.IndexByte(text, byte(b)) < 0 {
			return string([]byte{byte(b)}), nil
		}
	}
	return "", errors.New("tokenizer: a text with literal spans is not UTF-8")
}

// guarded returns text with the guard within each special token that touches a span: before the first byte behind the token's start
// that lies in the span, so that no token outside the span contains the guard.
func (t *Tokenizer) guarded(text string, spans []Span, guard string, w *scratch) (string, error) {
	var b strings.Builder
	at := 0 // text before is in b
	for i := range len(text) {
		for len(spans) > 0 && spans[0].To <= i {
			spans = spans[1:]
		}
		if len(spans) == 0 {
			break
		}
		touches := false
		for _, s := range []*specials{&t.specials, &t.controls} {
			s.texts.match(text[i:], func(k int) {
				touches = touches || !s.all[k].plain && spans[0].From < i+len(s.all[k].text)
			})
		}
		if place := max(i+1, spans[0].From); touches && place > at {
			b.WriteString(text[at:place])
			b.WriteString(guard)
			at = place
		}
		if err := w.check(1); err != nil {
			return "", err
		}
	}
	b.WriteString(text[at:])
	return b.String(), nil
}
