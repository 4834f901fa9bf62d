package prompt

import (
	"errors"
	"strings"

	"grove/internal/text/answer"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
)

// Markers begin and end a model's thoughts. Begin is nil where it has none.
type Markers struct {
	Begin, End []token.ID
	Texts      [2]string // of both
}

// findMarkers returns the markers of the model's thoughts. Of the published markers these are the first that the template
// mentions, or else the first, whose ends are special tokens of the vocabulary: other markers would not be the same tokens in each
// text.
func (m *Maker) findMarkers() (found Markers) {
	source := m.Source()
	for _, k := range answer.KnownMarkers() {
		begin, end := m.marker(k.Begin), m.marker(k.End)
		if !k.Budget || begin == nil || end == nil {
			continue
		}
		mentioned := strings.Contains(source, k.End)
		if mentioned || found.Begin == nil {
			found = Markers{begin, end, [2]string{k.Begin, k.End}}
		}
		if mentioned {
			break
		}
	}
	return found
}

// IsSpecial reports whether a text is a special token of the vocabulary.
func (m *Maker) IsSpecial(text string) bool { return len(m.marker(text)) == 1 }

// marker returns the tokens of a text that begins and ends with special tokens; nil where it does not.
func (m *Maker) marker(text string) []token.ID {
	special := func(id token.ID) bool {
		kind := m.tokenizer.Type(id)
		return kind == tokenizer.Control || kind == tokenizer.UserDefined
	}
	ids, err := m.tokenizer.Encode(nil, text, tokenizer.Options{})
	if err != nil || len(ids) == 0 || !special(ids[0]) || !special(ids[len(ids)-1]) {
		return nil
	}
	return ids
}

// ErrNoMarkers reports a budget of thoughts for a model that has no markers of them.
func ErrNoMarkers() error {
	var known []string
	for _, k := range answer.KnownMarkers() {
		if k.Budget {
			known = append(known, k.Begin+" and "+k.End)
		}
	}
	return errors.New("grove: a thinking budget is given, and the model has no markers of thinking; known are " + strings.Join(known, ", "))
}
