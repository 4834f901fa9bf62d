package grove

import (
	"errors"
	"fmt"
	"strings"

	"grove/sample"
	"grove/text/chat"
	"grove/text/token"
	"grove/text/tokenizer"
)

// thinkingMarkers are the markers around the thoughts of published models.
var thinkingMarkers = [][2]string{
	{"<think>", "</think>"},
	{"<|START_THINKING|>", "<|END_THINKING|>"},
	{"[THINK]", "[/THINK]"},
	{"<seed:think>", "</seed:think>"},
	{"<|channel|>analysis<|message|>", "<|end|>"},
}

// findThinking returns the markers of the model's thoughts, none where it has none. Of the published markers these are the
// first that the template mentions, or else the first, whose ends are special tokens of the vocabulary: other markers
// would not be the same tokens in each text.
func (m *Model) findThinking() sample.Thinking {
	source := ""
	if t, err := m.templates.For(chat.Options{}); err == nil {
		source = t.Source()
	}
	found := sample.Thinking{Budget: -1}
	for _, texts := range thinkingMarkers {
		begin, end := m.marker(texts[0]), m.marker(texts[1])
		if begin == nil || end == nil {
			continue
		}
		mentioned := strings.Contains(source, texts[1])
		if mentioned || found.Begin == nil {
			found.Begin, found.End = begin, end
		}
		if mentioned {
			break
		}
	}
	return found
}

// Thinks reports whether the model has markers of thinking, which a budget can bound.
func (m *Model) Thinks() bool { return m.thinking.Begin != nil }

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
		return t, &OptionError{fmt.Errorf("grove: the thinking budget is %d tokens; it must be 0 or more", *budget)}
	case t.Begin == nil:
		return t, &OptionError{errNoMarkers()}
	}
	t.Budget = *budget
	return t, nil
}

func errNoMarkers() error {
	var known []string
	for _, m := range thinkingMarkers {
		known = append(known, m[0]+" and "+m[1])
	}
	return errors.New("grove: a thinking budget is given, and the model has no markers of thinking; known are " + strings.Join(known, ", "))
}
