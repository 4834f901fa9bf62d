package anthropic

import (
	"encoding/json"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"grove/server/driver"
	"grove/server/serving"
	"grove/server/wire"
)

// contextManagement says what a server clears of a conversation that has grown, before the model reads it.
type contextManagement struct {
	Edits []edit `json:"edits" most:"16"`
}

// edit is one way to clear.
type edit struct {
	Type     string   `json:"type" bytes:"256"`
	Trigger  *amount  `json:"trigger"`
	Keep     *amount  `json:"keep"`
	AtLeast  *amount  `json:"clear_at_least"`
	Excluded []string `json:"exclude_tools" most:"1024" bytes:"1024"`
	Inputs   inputs   `json:"clear_tool_inputs"`
}

// Tolerated implements [wire.Tolerant].
func (edit) Tolerated() []wire.Toleration {
	return []wire.Toleration{{Names: "instructions pause_after_compaction", Values: "*", Client: "Anthropic", Reason: "they are of compactions, which are refused where they are due"}}
}

// amount is a number of something: input_tokens, tool_uses or thinking_turns; or the text all.
type amount struct {
	Type  string `json:"type" bytes:"64"`
	Value int    `json:"value" range:"0 *"`
}

// ReadJSON implements [wire.Own].
func (a *amount) ReadJSON(r *wire.Reader) error {
	if r.Kind() != jsontext.KindString {
		return r.Into((*amountFields)(a))
	}
	text, err := r.Text()
	if err == nil && text != "all" {
		err = r.Refuse("it is %q; it must be all, or an object with a type and a value", wire.Clip(text))
	}
	a.Type = text
	return err
}

type amountFields amount // it does not read itself

// Like implements [wire.Like].
func (amount) Like() any { return amountFields{} }

// inputs says whose inputs are cleared too: those of all calls, or of some tools.
type inputs struct {
	all   bool
	tools []string
}

// ReadJSON implements [wire.Own].
func (i *inputs) ReadJSON(r *wire.Reader) error {
	if r.Kind() == jsontext.KindBeginArray {
		return r.Into(&i.tools)
	}
	return r.Into(&i.all)
}

// The kinds of edits, and their defaults as Anthropic documents them.
const (
	clearThinking = "clear_thinking_20251015"
	clearTools    = "clear_tool_uses_20250919"
	compact       = "compact_20260112"

	clearTrigger   = 100_000 // input tokens
	compactTrigger = 150_000
	keptUses       = 3
	keptTurns      = 1
)

const cleared = "[cleared to save context]"

// applied is what an edit did, as answers tell it.
type applied struct {
	Type     string `json:"type"`
	Tokens   int    `json:"cleared_input_tokens"`
	ToolUses *int   `json:"cleared_tool_uses,omitempty"`
	Thoughts *int   `json:"cleared_thinking_turns,omitempty"`
}

// clear applies the edits to the messages and returns what they did; nil: nothing was asked for. count returns the tokens of the
// conversation as it is.
func (q *conversation) clear(count func() (int, error)) (done []applied, err error) {
	if q.Context == nil {
		return nil, nil
	}
	done = []applied{}
	for i := range q.Context.Edits {
		e := &q.Context.Edits[i]
		var a applied
		switch e.Type {
		case clearThinking:
			a, err = q.clearThinking(e, count)
		case clearTools:
			a, err = q.clearTools(e, count)
		case compact:
			n := 0
			if n, err = count(); err == nil && n >= e.threshold(compactTrigger) {
				err = wire.Unsupported("context_management.edits", compact+" is due, and nothing sums conversations up here; send a shorter one")
			}
		default:
			err = wire.Unsupported("context_management.edits", "type "+wire.Clip(e.Type)+" is not known; "+clearThinking+" and "+clearTools+" are")
		}
		if err != nil {
			return nil, err
		}
		if a.Type != "" {
			done = append(done, a)
		}
	}
	return done, nil
}

func (e *edit) threshold(otherwise int) int {
	if e.Trigger != nil && e.Trigger.Type == "input_tokens" {
		return e.Trigger.Value
	}
	return otherwise
}

// keeps returns how many are kept; -1: all.
func (e *edit) keeps(otherwise int) int {
	switch {
	case e.Keep == nil:
		return otherwise
	case e.Keep.Type == "all":
		return -1
	}
	return e.Keep.Value
}

// clearThinking removes the thoughts of all turns of the assistant but the last ones.
func (q *conversation) clearThinking(e *edit, count func() (int, error)) (a applied, err error) {
	keep := e.keeps(keptTurns)
	var turns []int // the messages with thoughts
	for i, m := range q.Messages {
		if m.Role == "assistant" && slices.ContainsFunc(m.Content, block.isThought) {
			turns = append(turns, i)
		}
	}
	if keep < 0 || len(turns) <= keep {
		return a, nil
	}
	turns = turns[:len(turns)-keep]
	return q.cleared(clearThinking, count, func(a *applied) {
		for _, i := range turns {
			q.Messages[i].Content = slices.DeleteFunc(slices.Clone(q.Messages[i].Content), block.isThought)
		}
		a.Thoughts = new(len(turns))
	})
}

func (b block) isThought() bool { return b.Type == "thinking" || b.Type == "redacted_thinking" }

// clearTools replaces the results of all calls but the last ones, where the conversation has grown beyond the trigger.
func (q *conversation) clearTools(e *edit, count func() (int, error)) (a applied, err error) {
	names := map[string]string{} // of the tool by the id of a call
	var results []*block
	for i := range q.Messages {
		for j := range q.Messages[i].Content {
			switch b := &q.Messages[i].Content[j]; b.Type {
			case "tool_use":
				names[b.ID] = b.Name
			case "tool_result":
				if !slices.Contains(e.Excluded, names[b.ToolUseID]) {
					results = append(results, b)
				}
			}
		}
	}
	keep := e.keeps(keptUses)
	if keep < 0 || len(results) <= keep {
		return a, nil
	}
	if e.Trigger != nil && e.Trigger.Type == "tool_uses" {
		if len(results) <= e.Trigger.Value {
			return a, nil
		}
	} else if n, err := count(); err != nil || n < e.threshold(clearTrigger) {
		return a, err
	}
	results = results[:len(results)-keep]
	return q.cleared(clearTools, count, func(a *applied) {
		gone := map[string]bool{}
		for _, b := range results {
			b.Content, gone[b.ToolUseID] = content{{Type: "text", Text: new(cleared)}}, true
		}
		for i := range q.Messages {
			for j := range q.Messages[i].Content {
				if b := &q.Messages[i].Content[j]; b.Type == "tool_use" && gone[b.ID] && (e.Inputs.all || slices.Contains(e.Inputs.tools, b.Name)) {
					b.Input = json.RawMessage("{}")
				}
			}
		}
		a.ToolUses = new(len(results))
	})
}

// cleared runs an edit and counts what it saves.
func (q *conversation) cleared(kind string, count func() (int, error), run func(*applied)) (a applied, err error) {
	before, err := count()
	if err != nil {
		return a, err
	}
	a.Type = kind
	run(&a)
	after, err := count()
	a.Tokens = max(0, before-after)
	return a, err
}

// counter counts the tokens of a conversation that a model would read.
func (q *conversation) counter(x *driver.Request, h *serving.OpenModel) func() (int, error) {
	return func() (int, error) {
		c, err := q.chat(func(string) {})
		if err != nil {
			return 0, err
		}
		p, err := x.Prompt(h, &c)
		return len(p.Tokens), err
	}
}
