package grove

import (
	"errors"
	"fmt"
	"strings"

	"grove/sample"
	"grove/text/answer"
	"grove/text/token"
	"grove/text/tokenizer"
)

// findThinking returns the markers of the model's thoughts, none where it has none, and their texts. Of the published markers these
// are the first that the template mentions, or else the first, whose ends are special tokens of the vocabulary: other markers
// would not be the same tokens in each text.
func (m *Model) findThinking() (found sample.Thinking, texts [2]string) {
	source := m.ownTemplate()
	found.Budget = -1
	for _, k := range answer.KnownMarkers() {
		begin, end := m.marker(k.Begin), m.marker(k.End)
		if !k.Budget || begin == nil || end == nil {
			continue
		}
		mentioned := strings.Contains(source, k.End)
		if mentioned || found.Begin == nil {
			found.Begin, found.End, texts = begin, end, [2]string{k.Begin, k.End}
		}
		if mentioned {
			break
		}
	}
	return found, texts
}

// Thinks reports whether the model has markers of thinking, which a budget can bound.
func (m *Model) Thinks() bool { return m.thinking.Begin != nil }

// control returns the spelling of a control token, "" for other tokens.
func (m *Model) control(id token.ID) string {
	if m.tokenizer.Type(id) != tokenizer.Control {
		return ""
	}
	return m.tokenizer.Text(id)
}

// marker returns the tokens of a text that begins and ends with special tokens; nil where it does not.
func (m *Model) marker(text string) []token.ID {
	special := func(id token.ID) bool {
		kind := m.tokenizer.Type(id)
		return kind == tokenizer.Control || kind == tokenizer.UserDefined
	}
	ids, err := m.Tokenize(text, false, false)
	if err != nil || len(ids) == 0 || !special(ids[0]) || !special(ids[len(ids)-1]) {
		return nil
	}
	return ids
}

// boundThinking returns how the model's thoughts are counted and bounded, or an [*OptionError] where a budget is given
// and cannot be kept.
func (m *Model) boundThinking(budget *int) (sample.Thinking, error) {
	t := m.thinking
	switch {
	case budget == nil:
		return t, nil
	case *budget < 0:
		return t, &OptionError{Err: fmt.Errorf("grove: the thinking budget is %d tokens; it must be 0 or more", *budget)}
	case t.Begin == nil:
		return t, &OptionError{Err: errNoMarkers()}
	}
	t.Budget = *budget
	return t, nil
}

func errNoMarkers() error {
	var known []string
	for _, k := range answer.KnownMarkers() {
		if k.Budget {
			known = append(known, k.Begin+" and "+k.End)
		}
	}
	return errors.New("grove: a thinking budget is given, and the model has no markers of thinking; known are " + strings.Join(known, ", "))
}
