package anthropic

import (
	"fmt"
	"net/http"
	"slices"

	"grove"
	"grove/server/driver"
	"grove/server/structured"
	"grove/server/wire"
)

// conversation are the fields of a request that its prompt is rendered from; both routes have them.
type conversation struct {
	Messages []message    `json:"messages" most:"16384"`
	System   content      `json:"system" most:"16384"`
	Tools    []tool       `json:"tools" most:"1024"`
	Choice   *toolChoice  `json:"tool_choice"`
	Thinking *thinking    `json:"thinking"`
	Output   outputConfig `json:"output_config"`

	Context *contextManagement `json:"context_management"`
}

// fields are those that both routes do without.
var fields = []wire.Toleration{
	{Names: "cache_control", Values: "*", Client: "Claude Code", Reason: "where a cache begins and ends changes no answer: prefixes are always cached"},
	{Names: "speed inference_geo", Values: "*", Client: "Claude Code", Reason: "there is one machine with one speed"},
	{Names: "diagnostics betas anthropic_beta anthropic_version", Values: "*", Client: "Claude Code, litellm", Reason: "they describe the client"},
	{Names: "container", Values: "{}", Client: "Anthropic", Reason: "code is run by the client alone"},
	{Names: "mcp_servers", Values: "[]", Client: "Anthropic", Reason: "the client calls them; give their tools"},
}

// message is a message of the conversation.
type message struct {
	Role    string  `json:"role" bytes:"256"`
	Content content `json:"content" most:"16384"`
}

// thinking says whether the model may think, and for how long.
type thinking struct {
	Type    string  `json:"type" bytes:"256"`
	Budget  *int    `json:"budget_tokens" range:"1 2147483647"`
	Display *string `json:"display" bytes:"256"`
}

type outputConfig struct {
	Effort *string            `json:"effort" bytes:"256"`
	Format *structured.Format `json:"format"`
}

// asked is chat for a request that is answered: what the model is not offered is logged and named, and refused by a strict server.
func (q *conversation) asked(x *driver.Request) (c driver.Chat, err error) {
	var left []string
	if c, err = q.chat(func(part string) { left = append(left, part) }); err == nil {
		err = x.LeaveOut(left)
	}
	return c, err
}

// chat returns the conversation as the library takes it. What the model is not offered is given to ignored.
func (q *conversation) chat(ignored func(part string)) (c driver.Chat, err error) {
	if err := driver.CheckMessages(len(q.Messages)); err != nil {
		return c, err
	}
	system, err := q.System.text("system")
	if err != nil {
		return c, err
	}
	if system.Text() != "" {
		c.Messages, c.Origins = append(c.Messages, grove.Message{Role: "system", Content: system.Text(), Parts: system}), []int{-1}
	}
	for i := range q.Messages {
		all, err := q.Messages[i].messages()
		if err != nil {
			return c, driver.RefuseMessage(i, err)
		}
		c.Messages, c.Origins = append(c.Messages, all...), append(c.Origins, slices.Repeat([]int{i}, len(all))...)
	}
	c.Options.Continue = q.Messages[len(q.Messages)-1].Role == "assistant" // as this API does
	if q.Output.Effort != nil {
		c.SetEffort(*q.Output.Effort)
	}
	c.Options.OneCall = q.Choice != nil && q.Choice.NoParallel
	tools, use, err := q.tools(ignored)
	if err != nil {
		return c, err
	}
	return c, c.UseTools(tools, use)
}

// messagesRequest is the body of /v1/messages.
type messagesRequest struct {
	driver.Fields
	conversation

	MaxTokens *int       `json:"max_tokens" range:"1 *"`
	Stops     wire.Stops `json:"stop_sequences" most:"64" bytes:"4096"`
	Thread    *thread    `json:"thread"`

	Format *structured.Format `json:"output_format"` // the same as output_config.format
}

// Tolerated implements [wire.Tolerant].
func (messagesRequest) Tolerated() []wire.Toleration { return fields }

// thread asks the server to hold a conversation. Servers may forget them, and this one holds none: a client that goes on with one is
// told so, and sends the whole conversation anew.
type thread struct {
	Type     string `json:"type" bytes:"256"`
	Previous string `json:"previous_message_id" bytes:"1024"`
}

// check refuses to go on with a thread.
func (t *thread) check() error {
	switch {
	case t == nil || t.Type == "create":
		return nil
	case t.Type == "continue":
		return &wire.Error{
			Status: http.StatusNotFound, Type: wire.TypeInvalid, Param: "thread", Code: "thread_not_found",
			Message: fmt.Sprintf("thread: the message %q is not held, as conversations are not; send all of its messages", wire.Clip(t.Previous)),
		}
	}
	return wire.Refuse("thread", "thread: type %q is not known; create and continue are", wire.Clip(t.Type))
}

// fieldNames are the names that this route has for fields of the others.
var fieldNames = map[string]string{"prompt": "messages", "stop": "stop_sequences"}

// Parse implements [driver.Body].
func (q *messagesRequest) Parse(g *driver.Generation) (driver.Encoder, error) {
	g.FieldNames = fieldNames
	if err := q.Thread.check(); err != nil {
		return nil, err
	}
	switch {
	case q.MaxTokens == nil:
		return nil, wire.Refuse("max_tokens", "the field is required")
	case q.TimingsPerTok:
		return nil, wire.Unsupported("timings_per_token", "this route has no place for them")
	}
	if q.Stops != nil {
		if q.Stop != nil {
			return nil, wire.Refuse("stop_sequences", "stop is another name of the field; leave one of them out")
		}
		q.Stop = q.Stops
	}
	edits, err := q.clear(q.counter(g.Request, g.Model))
	if err != nil {
		return nil, err
	}
	c, err := q.asked(g.Request)
	if err != nil {
		return nil, err
	}
	budget, err := q.Thinking.apply(&c)
	if err != nil {
		return nil, err
	}
	r, err := g.Base(wire.DefaultsOpenAI)
	if err != nil {
		return nil, err
	}
	if budget != nil && g.Model.Model.Thinks() {
		r.Thinking = budget
	}
	r.MaxTokens = *q.MaxTokens
	format, err := q.format()
	if err = g.Ask(r, &c, format, err); err != nil {
		return nil, err
	}
	return &encoder{Generation: g, answer: c.Answer(g, "0"), hidden: q.Thinking.hidden(), edits: edits}, nil
}

// format returns the form of the content, which has two names; nil: none.
func (q *messagesRequest) format() (*structured.Form, error) {
	if q.Output.Format != nil && q.Format != nil {
		return nil, wire.Refuse("output_format", "output_format: output_config.format is another name of the field; leave one of them out")
	}
	if q.Format != nil {
		return q.Format.Asks("output_format")
	}
	return q.Output.Format.Asks("output_config.format")
}

// countRequest is the body of /v1/messages/count_tokens.
type countRequest struct {
	conversation
	Model string `json:"model" bytes:"1024"`
}

// Tolerated implements [wire.Tolerant].
func (countRequest) Tolerated() []wire.Toleration {
	return append(slices.Clone(fields), wire.Toleration{
		Names:  "max_tokens stop_sequences stream temperature top_p top_k metadata service_tier output_format thread",
		Values: "*", Client: "Anthropic", Reason: "they are of answers, and a prompt has none of them",
	})
}

// countTokens handles POST /v1/messages/count_tokens.
func countTokens(x *driver.Request) error {
	var q countRequest
	h, err := x.Open(&q, &q.Model)
	if err != nil {
		return err
	}
	if _, err := q.clear(q.counter(x, h)); err != nil {
		return err
	}
	c, err := q.asked(x)
	if err != nil {
		return err
	}
	if _, err := q.Thinking.apply(&c); err != nil {
		return err
	}
	p, err := x.Prompt(h, &c)
	if err != nil {
		return err
	}
	return x.Reply(map[string]int{"input_tokens": len(p.Tokens)})
}

// omitted is the display of thoughts that are not sent: their blocks are empty.
const omitted = "omitted"

func (t *thinking) hidden() bool { return t != nil && t.Display != nil && *t.Display == omitted }

// apply says in a conversation whether the model may think, and returns the bound of its thoughts; nil: none.
func (t *thinking) apply(c *driver.Chat) (budget *int, err error) {
	if t != nil && t.Display != nil && *t.Display != "summarized" && *t.Display != omitted {
		return nil, wire.Refuse("thinking", "thinking: display is %q; it must be summarized (thoughts are sent as they are) or omitted", wire.Clip(*t.Display))
	}
	switch {
	case t == nil || t.Type == "adaptive":
		return nil, nil
	case t.Type == "disabled":
		c.Options.Reasoning = grove.ReasoningOff
		return nil, nil
	case t.Type != "enabled":
		return nil, wire.Refuse("thinking", "thinking: type %q is not known; enabled, disabled and adaptive are", wire.Clip(t.Type))
	case t.Budget == nil:
		return nil, wire.Refuse("thinking", "thinking: budget_tokens is missing")
	}
	c.Options.Reasoning = grove.ReasoningOn
	return t.Budget, nil
}
