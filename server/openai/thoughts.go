package openai

import (
	"cmp"

	"grove"
	"grove/server/driver"
	"grove/server/wire"
)

// thoughts are the fields of a request that say whether and how much the model thinks, and where its thoughts are sent. Each server has named them
// otherwise.
type thoughts struct {
	Effort *string         `json:"reasoning_effort" bytes:"256"`
	Format *string         `json:"reasoning_format" bytes:"256"`
	Enable *bool           `json:"enable_thinking"` // Qwen's API
	Switch *thoughtsSwitch `json:"thinking"`        // DeepSeek's and GLM's
	Router *thoughtsRouter `json:"reasoning"`       // OpenRouter's
}

type thoughtsSwitch struct {
	Type string `json:"type" bytes:"256"`
}

// Tolerated implements [wire.Tolerant].
func (thoughtsSwitch) Tolerated() []wire.Toleration {
	return []wire.Toleration{
		{Names: "clear_thinking", Values: "*", Client: "GLM", Reason: "the template says which thoughts of earlier turns stay"},
		{Names: "budget_tokens", Client: "litellm", Reason: "use reasoning_budget"},
	}
}

type thoughtsRouter struct {
	Effort  *string `json:"effort" bytes:"256"`
	Enabled *bool   `json:"enabled"`
}

// Tolerated implements [wire.Tolerant].
func (thoughtsRouter) Tolerated() []wire.Toleration {
	return []wire.Toleration{
		{Names: "summary generate_summary", Values: "*", Client: "OpenAI", Reason: "thoughts are sent as they are"},
		{Names: "exclude", Values: "false", Client: "OpenRouter", Reason: "thoughts are sent; leave them out of what you show"},
		{Names: "max_tokens", Client: "OpenRouter", Reason: "use reasoning_budget"},
	}
}

// apply says it in a conversation. Two fields that say different things are refused.
func (q *thoughts) apply(c *driver.Chat) error {
	if q.Format != nil {
		switch c.Inline = *q.Format == "none"; *q.Format {
		case "none", "auto", "deepseek":
		default:
			return wire.Refuse("reasoning_format", "reasoning_format is %q; it must be none, auto or deepseek", wire.Clip(*q.Format))
		}
	}
	effort, on := q.Effort, q.Enable
	if q.Router != nil {
		if effort != nil && q.Router.Effort != nil && *effort != *q.Router.Effort {
			return wire.Refuse("reasoning.effort", "reasoning.effort: reasoning_effort is %q; leave one of them out", wire.Clip(*effort))
		}
		effort, on = cmp.Or(effort, q.Router.Effort), cmp.Or(on, q.Router.Enabled)
	}
	if q.Switch != nil {
		switch q.Switch.Type {
		case "enabled", "disabled":
			on = new(q.Switch.Type == "enabled")
		case "auto", "adaptive":
		default:
			return wire.Refuse("thinking.type", "thinking.type is %q; it must be enabled, disabled or auto", wire.Clip(q.Switch.Type))
		}
	}
	if effort != nil {
		c.SetEffort(*effort)
	}
	if on != nil {
		if c.Options.Reasoning = grove.ReasoningOff; *on {
			c.Options.Reasoning = grove.ReasoningOn
		}
	}
	return nil
}
