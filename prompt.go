package grove

import (
	"errors"

	"grove/internal/text/answer"
	"grove/internal/text/chat"
	"grove/internal/text/prompt"
)

// Reasoning says whether a model thinks before it answers.
type Reasoning = prompt.Reasoning

// The ways of [Reasoning].
const (
	ReasoningAuto = prompt.ReasoningAuto // as the template does; the same as ""
	ReasoningOn   = prompt.ReasoningOn   // the template's variable for thinking is true
	ReasoningOff  = prompt.ReasoningOff  // the variable is false; thoughts that the template begins nevertheless are ended at once
)

// ApplyTemplate returns the prompt of a conversation. Errors: [chat.ErrNone] where neither the model nor the options
// have a template; an [*OptionError] for a way of reasoning that the template has not, and where the model reads a source ([ErrSource]) and has no template or
// is to continue an answer; those of [chat.Template.Render].
//
// Templates that print the date get it from [chat.Options.Now]. The variables date_string (such as 26 Jul 2024), current_date (the
// same) and datetime can be set in [chat.Options.Vars], so that the prompt does not depend on the day. A template that shows no tools
// gets a text that lists them and asks for calls in the form of Hermes. Reasoning of turns before the last question is left out.
func (m *Model) ApplyTemplate(messages []Message, o ChatOptions) (ChatPrompt, error) {
	source := m.engine.CheckSource("it holds conversations by a chat template alone, and continues no answer")
	if source != nil && o.Continue {
		return ChatPrompt{}, &OptionError{Err: source}
	}
	p, err := m.prompts.Render(messages, o)
	if source != nil && errors.Is(err, chat.ErrNone) {
		err = &OptionError{Err: source}
	}
	return p, err
}

// AnswerFormat returns how the model writes thoughts and calls of tools in conversations by its own template.
func (m *Model) AnswerFormat() answer.Format {
	return answer.FormatOf(m.prompts.Source(), m.prompts.IsSpecial)
}
