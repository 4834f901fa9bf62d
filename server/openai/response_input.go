package openai

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"grove/server/driver"
	"grove/server/wire"
)

// input is a text, or items of a conversation.
type input []inputItem

// inputItem is a message, thoughts, a call, the output of a call, or one that the server does without.
type inputItem struct{ itemFields }

// itemFields are the fields of the items that the server reads.
type itemFields struct {
	Type      string           `json:"type" bytes:"256"`
	ID        string           `json:"id" bytes:"1024"`
	Role      string           `json:"role" bytes:"256"`
	Content   wire.ContentText `json:"content" most:"65536"`
	CallID    string           `json:"call_id" bytes:"65536"`
	Name      string           `json:"name" bytes:"1024"`
	Namespace string           `json:"namespace" bytes:"1024"`
	Arguments string           `json:"arguments" holds:"json"`
	Input     string           `json:"input"` // of a custom tool's call
	Output    wire.ContentText `json:"output" most:"65536"`
	Summary   wire.ContentText `json:"summary" most:"65536"` // of thoughts; the thoughts themselves are the content
	Encrypted *string          `json:"encrypted_content"`
	Action    json.RawMessage  `json:"action"` // of a call of a shell
}

// ReadJSON implements [wire.Own].
func (l *input) ReadJSON(r *wire.Reader) error {
	if r.Kind() != jsontext.KindString {
		return r.Into((*[]inputItem)(l))
	}
	text, err := r.Text()
	*l = input{{itemFields{Role: "user", Content: wire.ContentText{text}}}}
	return err
}

// Like implements [wire.Like].
func (input) Like() any { return []itemFields{} }

// ReadJSON implements [wire.Own]. Items that the server does without may have any fields.
func (i *inputItem) ReadJSON(r *wire.Reader) error {
	raw, kind, err := r.Typed()
	if err != nil {
		return err
	}
	if isHosted(kind) {
		i.Type = kind
		return nil
	}
	return r.Within(raw, &i.itemFields)
}

// Tolerated implements [wire.Tolerant].
func (itemFields) Tolerated() []wire.Toleration {
	return append(slices.Clone(wire.MessageFields), wire.Toleration{
		Names: "phase status internal_chat_message_metadata_passthrough created_by caller", Values: "*", Client: "Codex, OpenAI", Reason: "they describe the item",
	})
}

// hosted are the types of items that tell of tools and services that the server does not have, beside those that end with _call and
// _call_output.
var hosted = []string{
	"mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "tool_search_output", "additional_tools", "compaction", "compaction_summary",
	"compaction_trigger", "context_compaction", "ghost_snapshot", "other", "program", "program_output",
}

// read are the types of calls and of their outputs that the server reads.
var read = []string{
	"function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "local_shell_call", "local_shell_call_output",
}

// isHosted reports whether the server does without items of a type.
func isHosted(kind string) bool {
	call := strings.HasSuffix(kind, "_call") || strings.HasSuffix(kind, "_call_output")
	return call && !slices.Contains(read, kind) || slices.Contains(hosted, kind)
}

// sealed begins the encrypted_content of thoughts that this server has written: their text follows, in base64. Nothing is secret about it.
const sealed = "grove1."

// maxSealed bounds thoughts that are sent and read in encrypted_content, in bytes.
const maxSealed = 1 << 20

// seal returns thoughts as encrypted_content; nil: they are too long.
func seal(thoughts string) *string {
	if len(thoughts) > maxSealed {
		return nil
	}
	return new(sealed + base64.StdEncoding.EncodeToString([]byte(thoughts)))
}

// unseal returns the thoughts of encrypted_content; false: they are of another server, or too long.
func unseal(text string) (string, bool) {
	code, ours := strings.CutPrefix(text, sealed)
	if !ours || base64.StdEncoding.DecodedLen(len(code)) > maxSealed+2 {
		return "", false
	}
	raw, err := base64.StdEncoding.DecodeString(code)
	return string(raw), err == nil && utf8.Valid(raw)
}

// thoughts returns the text of an item of thoughts: its content, else what it has sealed, else its summary; foreign: the sealed part is of
// another server.
func (i *inputItem) thoughts() (text string, foreign bool) {
	if i.Encrypted != nil && *i.Encrypted != "" {
		own, ours := unseal(*i.Encrypted)
		text, foreign = own, !ours
	}
	if content := i.Content.Text(); content != "" {
		text = content
	}
	if text == "" {
		text = i.Summary.Text()
	}
	return text, foreign
}

// reading turns the items of a request into messages behind earlier ones.
type reading struct {
	x       *driver.Request
	offers  *offers
	all     []message
	origins []int // of each message, the index of its item; -1: it is of an earlier request
	first   int   // number of earlier messages, which do not change
	left    []string
}

// messages returns the conversation behind earlier messages, and the item that each begins with: consecutive calls, and thoughts and an answer
// before them, are one message.
func (q *responsesRequest) messages(x *driver.Request, earlier []message) (*reading, error) {
	c := &reading{x: x, offers: q.made.offers, all: slices.Clone(earlier), origins: slices.Repeat([]int{-1}, len(earlier)), first: len(earlier)}
	var refused []error
	for i := range q.Input {
		err := c.add(i, &q.Input[i])
		if e, ok := err.(*wire.Error); ok && e.Param == "" {
			e.Param = fmt.Sprintf("input[%d]", i)
		}
		refused = append(refused, err)
		if len(c.all) > len(c.origins) {
			c.origins = append(c.origins, i)
		}
	}
	return c, wire.All(refused...)
}

// add adds an item.
func (c *reading) add(i int, item *inputItem) error {
	kind := item.Type
	if kind == "" && item.Role == "" && item.Content == nil && item.ID != "" {
		kind = "item_reference"
	}
	switch kind {
	case "", "message":
		if last := c.assistant(false); item.Role == "assistant" && last != nil && last.Content == nil && len(last.ToolCalls) == 0 {
			last.Content = item.Content
			return nil
		}
		c.all = append(c.all, message{Role: item.Role, Content: item.Content})
	case "reasoning": // of the message or the calls behind it
		text, foreign := item.thoughts()
		if foreign {
			c.left = append(c.left, fmt.Sprintf("input[%d].encrypted_content", i))
		}
		if last := c.assistant(false); text == "" {
			return nil
		} else if last != nil && last.Content == nil && len(last.ToolCalls) == 0 {
			last.Reasoning = strings.Trim(last.Reasoning+"\n"+text, "\n")
			return nil
		}
		c.all = append(c.all, message{Role: "assistant", Reasoning: text})
	case "function_call":
		c.call(item.CallID, inNamespace(item.Namespace, item.Name), item.Arguments)
	case "custom_tool_call":
		c.call(item.CallID, inNamespace(item.Namespace, item.Name), customArguments(item.Input))
	case "local_shell_call":
		c.call(cmp.Or(item.CallID, item.ID), "local_shell", string(bytes.TrimSpace(item.Action)))
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
		c.all = append(c.all, message{Role: "tool", ToolCallID: cmp.Or(item.CallID, item.ID), Content: item.Output})
	case "item_reference":
		of, err := storedItem(c.x, item.ID)
		if err != nil {
			return err
		}
		return c.add(i, of)
	default:
		if !isHosted(item.Type) {
			return wire.Refuse("", "input[%d] has the type %q; messages, reasoning, calls of functions and of custom tools, their outputs, and references are supported", i, wire.Clip(item.Type))
		}
		c.left = append(c.left, fmt.Sprintf("input[%d] %s", i, wire.Clip(item.Type)))
	}
	return nil
}

// assistant returns the last message where it is the assistant's and of this request; nil: it is not. With begin, one is begun then.
func (c *reading) assistant(begin bool) *message {
	if n := len(c.all); n > c.first && c.all[n-1].Role == "assistant" {
		return &c.all[n-1]
	}
	if !begin {
		return nil
	}
	c.all = append(c.all, message{Role: "assistant"})
	return &c.all[len(c.all)-1]
}

// call adds a call.
func (c *reading) call(id, name, arguments string) {
	call := toolCall{ID: id, Type: "function"}
	call.Function.Name, call.Function.Arguments = name, arguments
	last := c.assistant(true)
	last.ToolCalls = append(last.ToolCalls, call)
}

// shown returns an item as the API shows it.
func (i *inputItem) shown(id string) map[string]any {
	part := func(kind string, texts wire.ContentText) []map[string]any {
		parts := []map[string]any{}
		for _, text := range texts {
			parts = append(parts, map[string]any{"type": kind, "text": text})
		}
		return parts
	}
	item := map[string]any{"type": i.Type, "id": id}
	switch i.Type {
	case "function_call":
		item["call_id"], item["name"], item["arguments"] = i.CallID, i.Name, i.Arguments
	case "custom_tool_call":
		item["call_id"], item["name"], item["input"] = i.CallID, i.Name, i.Input
	case "local_shell_call":
		item["call_id"], item["action"] = i.CallID, i.Action
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
		item["call_id"], item["output"] = i.CallID, i.Output.Text()
	case "reasoning":
		item["summary"], item["content"] = []any{}, part("reasoning_text", i.Content)
	case "item_reference":
		item["id"] = i.ID
	case "", "message":
		kind := "input_text"
		if i.Role == "assistant" {
			kind = "output_text"
		}
		item["type"], item["role"], item["content"] = "message", i.Role, part(kind, i.Content)
	}
	if i.Namespace != "" {
		item["namespace"] = i.Namespace
	}
	return item
}
