package grove

import (
	"fmt"

	"grove/sample"
	"grove/text/prompt"
	"grove/text/token"
	"grove/text/tokenizer"
)

// Thinks reports whether the model has markers of thinking, which a budget can bound.
func (m *Model) Thinks() bool { return m.prompts.Markers.Begin != nil }

// markers returns the markers of the model's thoughts, none where it has none, and no bound.
func (m *Model) markers() sample.Thinking {
	k := m.prompts.Markers
	return sample.Thinking{Begin: k.Begin, End: k.End, Budget: -1}
}

// control returns the spelling of a control token, "" for other tokens.
func (m *Model) control(id token.ID) string {
	if m.tokenizer.Type(id) != tokenizer.Control {
		return ""
	}
	return m.tokenizer.Text(id)
}

// boundThinking returns how the model's thoughts are counted and bounded, or an [*OptionError] where a budget is given
// and cannot be kept.
func (m *Model) boundThinking(budget *int) (sample.Thinking, error) {
	t := m.markers()
	switch {
	case budget == nil:
		return t, nil
	case *budget < 0:
		return t, &OptionError{Err: fmt.Errorf("grove: the thinking budget is %d tokens; it must be 0 or more", *budget)}
	case t.Begin == nil:
		return t, &OptionError{Err: prompt.ErrNoMarkers()}
	}
	t.Budget = *budget
	return t, nil
}
