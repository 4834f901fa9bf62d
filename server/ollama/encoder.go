package ollama

import (
	"encoding/json"
	"time"

	"grove"
	"grove/internal/text/answer"
	"grove/internal/text/token"
	"grove/server/driver"
	"grove/server/serving"
	"grove/server/wire"
)

// encoder writes the answers of /api/chat and /api/generate: lines, of which the last one has the figures.
type encoder struct {
	*driver.Generation
	q        *common
	chat     bool
	answer   *driver.Answer
	opened   time.Time       // when the model was there
	sent     int             // calls
	logprobs []driver.Scored // that are not sent yet
}

func newEncoder(g *driver.Generation, q *common, c driver.Chat) *encoder {
	return &encoder{Generation: g, q: q, answer: c.Answer(g, "0"), opened: time.Now()}
}

// line is a part of an answer, or all of it.
type line struct {
	Model    string         `json:"model"`
	Created  time.Time      `json:"created_at"`
	Message  *message       `json:"message,omitempty"`  // of a chat
	Response *string        `json:"response,omitempty"` // of a text
	Thinking string         `json:"thinking,omitempty"` // of a text
	Done     bool           `json:"done"`
	Reason   string         `json:"done_reason,omitempty"`
	Context  []token.ID     `json:"context,omitempty"`
	Logprobs *wire.Sequence `json:"logprobs,omitempty"`
	*figures
}

// figures are the counts and times of an answer, in nanoseconds.
type figures struct {
	Total       time.Duration `json:"total_duration"`
	Load        time.Duration `json:"load_duration"`
	PromptCount int           `json:"prompt_eval_count"`
	PromptTime  time.Duration `json:"prompt_eval_duration"`
	Count       int           `json:"eval_count"`
	Time        time.Duration `json:"eval_duration"`
}

// logprob is a token of an answer with the likeliest tokens at its place.
type logprob struct {
	tokenLogprob
	Top []tokenLogprob `json:"top_logprobs,omitempty"`
}

type tokenLogprob struct {
	Token   string  `json:"token"`
	Logprob float32 `json:"logprob"`
	Bytes   []int   `json:"bytes,omitempty"`
}

// Begin implements [driver.Encoder].
func (e *encoder) Begin() error { return nil }

// Token implements [driver.Encoder].
func (e *encoder) Token(_ int, t grove.Token, _ *serving.Timings) error {
	if e.q.Logprobs && t.ID != token.None {
		s, err := e.Keep(t)
		if err != nil {
			return err
		}
		e.logprobs = append(e.logprobs, s)
	}
	return e.add(e.answer.Add(t))
}

// takeLogprobs returns the log-probabilities that are not sent yet, made while they are written; nil: there are none.
func (e *encoder) takeLogprobs() *wire.Sequence {
	all := e.logprobs
	if e.logprobs = nil; len(all) == 0 {
		return nil
	}
	one := func(id token.ID, p float32) tokenLogprob {
		text, raw := e.Model.Piece(id)
		return tokenLogprob{text, p, driver.Numbers(raw)}
	}
	return wire.Each(len(all), func(i int) (any, error) {
		l := logprob{tokenLogprob: one(all[i].ID, all[i].Logprob)}
		for _, x := range all[i].Top {
			l.Top = append(l.Top, one(x.ID, x.Logprob))
		}
		return l, nil
	})
}

// add sends new parts where the answer streams.
func (e *encoder) add(parts []answer.Part) error {
	if e.Out == nil || len(parts) == 0 && len(e.logprobs) == 0 {
		return nil
	}
	content, thoughts, calls := "", "", []answer.Call(nil)
	for _, p := range parts {
		switch p.Kind {
		case answer.CallBegin, answer.CallText: // calls are whole here
		case answer.CallPart:
			calls = append(calls, *p.Call)
		case answer.Reasoning:
			thoughts += p.Text
		default:
			content += p.Text
		}
	}
	l := e.line(content, thoughts, calls)
	l.Logprobs = e.takeLogprobs()
	return e.Out.Send(l)
}

// line returns a part of the answer.
func (e *encoder) line(text, thoughts string, calls []answer.Call) line {
	l := line{Model: e.Model.Name, Created: time.Now().UTC()}
	if !e.chat {
		l.Response, l.Thinking = &text, thoughts
		return l
	}
	l.Message = &message{Role: "assistant", Content: content(text), Thinking: thoughts}
	for _, c := range calls {
		t := toolCall{ID: "call_" + c.ID}
		t.Function.Index, t.Function.Name, t.Function.Arguments = e.sent, c.Name, json.RawMessage(c.Arguments)
		if c.Cut {
			t.Function.Arguments = json.RawMessage("{}")
		}
		l.Message.ToolCalls = append(l.Message.ToolCalls, t)
		e.sent++
	}
	return l
}

// End implements [driver.Encoder].
func (e *encoder) End(int) error {
	why, _ := e.Ended(0)
	return e.add(e.answer.Close(why))
}

// Finish implements [driver.Encoder]. The last line of a stream has no text.
func (e *encoder) Finish() error {
	if e.Out == nil {
		return e.Reply(e.last(e.answer.Content.String(), e.answer.Reasoning.String(), e.answer.Calls))
	}
	return e.Out.Send(e.last("", "", nil))
}

// last returns the last line.
func (e *encoder) last(content, thoughts string, calls []answer.Call) line {
	l := e.line(content, thoughts, calls)
	l.Logprobs = e.takeLogprobs()
	l.Done, l.Reason = true, serving.Reason(e.Job.Answers[0].Stats().Finish)
	if !e.chat {
		l.Context = append(append([]token.ID{}, e.Job.Answers[0].Prompt()...), e.Job.Tokens(0)...)
	}
	t := e.Job.Timings()
	l.figures = &figures{
		Total: time.Since(e.Began), Load: e.opened.Sub(e.Began), PromptCount: t.PromptN + t.CacheN, PromptTime: milliseconds(t.PromptMS),
		Count: t.PredictedN, Time: milliseconds(t.PredictedMS),
	}
	return l
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// Fail implements [driver.Encoder].
func (e *encoder) Fail(err *wire.Error) error { return e.Out.Send(ErrorBody(err)) }
