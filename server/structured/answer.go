package structured

import (
	"strings"

	"grove"
	"grove/internal/text/answer"
)

// Answer is the answer to a conversation under way: its content, its thoughts and its calls.
type Answer struct {
	Content   strings.Builder
	Reasoning strings.Builder
	Calls     []answer.Call
	told      []toldCall
	reader    *answer.Reader
}

// NewAnswer returns an answer without tokens, which a reader reads.
func NewAnswer(r *answer.Reader) *Answer { return &Answer{reader: r} }

// Add adds a token, and returns the new parts: content, reasoning and calls. Remarks beside calls are content.
func (a *Answer) Add(t grove.Token) []answer.Part { return a.keep(a.reader.Add(t.Text, t.Control)) }

// Close ends the answer for a reason, and returns the parts that were held back.
func (a *Answer) Close(why string) []answer.Part {
	if why == string(grove.FinishLength) {
		return a.keep(a.reader.Cut())
	}
	return a.keep(a.reader.End())
}

// keep adds parts to the answer. Each call begins, has its arguments and is a part by itself then, also where it comes at once.
func (a *Answer) keep(parts []answer.Part) (all []answer.Part) {
	for _, p := range parts {
		switch p.Kind {
		case answer.CallBegin:
			a.told = append(a.told, toldCall{p.Call.ID, 0})
		case answer.CallText:
			a.told[len(a.told)-1].n += len(p.Text)
		case answer.CallPart:
			c := p.Call
			if len(a.told) == 0 || a.told[0].id != c.ID {
				all = append(all, answer.Part{Kind: answer.CallBegin, Call: &answer.Call{ID: c.ID, Name: c.Name}})
				a.told = append([]toldCall{{id: c.ID}}, a.told...)
			}
			if rest := c.Arguments[min(a.told[0].n, len(c.Arguments)):]; rest != "" {
				all = append(all, answer.Part{Kind: answer.CallText, Text: rest})
			}
			a.told, a.Calls = a.told[1:], append(a.Calls, *c)
		case answer.Reasoning:
			a.Reasoning.WriteString(p.Text)
		default:
			p.Kind = answer.Content
			a.Content.WriteString(p.Text)
		}
		all = append(all, p)
	}
	return all
}

// toldCall is a call that has begun and is not whole.
type toldCall struct {
	id string
	n  int // bytes of its arguments so far
}
