package tokenizer

import (
	"errors"
	"slices"
	"strings"

	"grove/text/token"
)

// Span is a range of bytes of a text: From to To-1.
type Span struct{ From, To int }

// fragments cuts text at the special tokens written in it. A special token that touches a literal span is plain text, and so is
// every one if the text is plain.
func (t *Tokenizer) fragments(text string, o Options) ([]fragment, error) {
	if len(o.Literal) == 0 || o.Plain {
		return t.specials.partition(text, o.Plain), nil
	}
	guard, err := unusedByte(text)
	if err != nil {
		return nil, err
	}
	// A byte that the text lacks is put into each of these tokens while the others are found.
	places := append(t.specials.reaching(text, o.Literal), t.controls.reaching(text, o.Literal)...)
	slices.Sort(places)
	var frags []fragment
	for _, f := range t.specials.partition(guarded(text, slices.Compact(places), guard), false) {
		if f.id != token.None {
			frags = append(frags, f)
		} else {
			frags = append(frags, t.controls.partition(f.text, false)...)
		}
	}
	for i := range frags {
		frags[i].text = strings.ReplaceAll(frags[i].text, guard, "")
	}
	return frags, nil
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

// guarded returns text with the guard at each of the places, which ascend.
func guarded(text string, places []int, guard string) string {
	var b strings.Builder
	at := 0
	for _, p := range places {
		b.WriteString(text[at:p] + guard)
		at = p
	}
	b.WriteString(text[at:])
	return b.String()
}

// reaching returns an index within each special token of text that touches a span: the first index behind the token's start that
// lies in the span, so that no token outside the span contains it.
func (s *specials) reaching(text string, spans []Span) (places []int) {
	for _, sp := range s.written(text, false) {
		if sp.plain {
			continue
		}
		for at := 0; ; at++ {
			i := strings.Index(text[at:], sp.text)
			if i < 0 {
				break
			}
			at += i
			k, _ := slices.BinarySearchFunc(spans, at, func(s Span, at int) int { return s.To - at - 1 })
			if k < len(spans) && spans[k].From < at+len(sp.text) {
				places = append(places, max(at+1, spans[k].From))
			}
		}
	}
	return places
}
