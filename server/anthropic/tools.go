package anthropic

import (
	"encoding/json"
	"regexp"
	"strings"

	"grove/server/structured"
	"grove/server/wire"
)

// tool is a function that may be called.
type tool struct {
	Type        string          `json:"type" bytes:"256"` // "" or custom: one of the client's own
	Name        string          `json:"name" bytes:"1024"`
	Description *string         `json:"description"`
	Schema      json.RawMessage `json:"input_schema"`
	Strict      bool            `json:"strict"`
}

// Tolerated implements [wire.Tolerant].
func (tool) Tolerated() []wire.Toleration {
	return []wire.Toleration{
		{Names: "cache_control", Values: "*", Client: "Claude Code", Reason: "where a cache begins and ends changes no answer"},
		{Names: "eager_input_streaming defer_loading allowed_callers input_examples", Values: "*", Client: "Claude Code", Reason: "the tool is always loaded, and calls come from the model itself"},
		{Names: "max_characters display_width_px display_height_px display_number enable_zoom", Values: "*", Client: "Anthropic", Reason: "the client's own tool keeps to them"},
		{Names: "max_uses max_content_tokens allowed_domains blocked_domains user_location citations mcp_server_name default_config configs", Values: "*", Client: "Anthropic", Reason: "they are of tools that Anthropic runs, which are left out"},
	}
}

type toolChoice struct {
	Type       string `json:"type" bytes:"256"`
	Name       string `json:"name" bytes:"1024"`
	NoParallel bool   `json:"disable_parallel_tool_use"`
}

// known is a tool whose name and input Anthropic's API fixes and whose calls the client runs.
type known struct{ prefix, description, schema string }

// The tools of that kind. Their descriptions and inputs are those that the API documents; a model that was not trained with them reads both.
var clientTools = []known{
	{"bash_", "Run a command in a bash session that stays open between calls.", `{"type":"object","properties":{"command":{"type":"string","description":"the command"},"restart":{"type":"boolean","description":"true: begin a new session instead"}}}`},
	{"text_editor_", "View, create and edit files.", `{"type":"object","properties":{"command":{"type":"string","enum":["view","create","str_replace","insert"]},` +
		`"path":{"type":"string","description":"the file or directory"},"view_range":{"type":"array","items":{"type":"integer"},"description":"view: the first and the last line"},` +
		`"file_text":{"type":"string","description":"create: the content"},"old_str":{"type":"string","description":"str_replace: the text to replace, which occurs once"},` +
		`"new_str":{"type":"string","description":"str_replace: the text in its place"},"insert_line":{"type":"integer","description":"insert: the line behind which the text goes, 0: at the beginning"},` +
		`"insert_text":{"type":"string","description":"insert: the text"}},"required":["command","path"]}`},
	{"memory_", "Keep notes in files below /memories.", `{"type":"object","properties":{"command":{"type":"string","enum":["view","create","str_replace","insert","delete","rename"]},` +
		`"path":{"type":"string"},"view_range":{"type":"array","items":{"type":"integer"}},"file_text":{"type":"string"},"old_str":{"type":"string"},"new_str":{"type":"string"},` +
		`"insert_line":{"type":"integer"},"insert_text":{"type":"string"},"old_path":{"type":"string"},"new_path":{"type":"string"}},"required":["command"]}`},
}

// hosted are the kinds of tools that Anthropic's servers run: the model is not offered them.
var hosted = regexp.MustCompile(`^(web_search|web_fetch|code_execution|tool_search_tool|mcp_toolset|advisor)(_|$)`)

// tools returns the tools in the form of OpenAI's API, and which of them may or must be called. Those that nobody here can run are given to ignored.
func (q *conversation) tools(ignored func(part string)) (all []json.RawMessage, use structured.Tools, err error) {
	if c := q.Choice; c != nil {
		switch c.Type {
		case "auto":
		case "none":
			use.Off = true
		case "any":
			use.Must = true
		case "tool":
			use = structured.Tools{Must: true, Allowed: []string{c.Name}}
		default:
			return nil, use, wire.Refuse("tool_choice", "tool_choice: type %q is not known; auto, none, any and tool are", wire.Clip(c.Type))
		}
	}
	var refused []error
	for i := range q.Tools {
		t := &q.Tools[i]
		if hosted.MatchString(t.Type) {
			ignored("tools:" + t.Type)
			continue
		}
		raw, err := t.function(i)
		if all = append(all, raw); err != nil {
			refused = append(refused, err)
		}
	}
	return all, use, wire.All(refused...)
}

// function returns a tool in the form of OpenAI's API.
func (t *tool) function(number int) (json.RawMessage, error) {
	if t.Type != "" && t.Type != "custom" {
		for _, k := range clientTools {
			if strings.HasPrefix(t.Type, k.prefix) {
				t.Description, t.Schema = new(k.description), json.RawMessage(k.schema)
			}
		}
	}
	switch {
	case t.Name == "":
		return nil, wire.Refuse("tools", "tools: tool %d has no name", number)
	case len(t.Schema) == 0 && strings.HasPrefix(t.Type, "computer_"):
		return nil, wire.Unsupported("tools", "tool "+wire.Clip(t.Type)+" answers with pictures of a screen, which are not supported")
	case len(t.Schema) == 0 && t.Type != "" && t.Type != "custom":
		return nil, wire.Unsupported("tools", "tool "+wire.Clip(t.Type)+" has a fixed input that is not known here; give input_schema")
	case len(t.Schema) == 0:
		return nil, wire.Refuse("tools", "tools: tool %q has no input_schema", wire.Clip(t.Name))
	}
	var f struct {
		Type     string `json:"type"`
		Function struct {
			Name        string          `json:"name"`
			Description *string         `json:"description,omitempty"`
			Parameters  json.RawMessage `json:"parameters"`
			Strict      bool            `json:"strict,omitempty"`
		} `json:"function"`
	}
	f.Type = "function"
	f.Function.Name, f.Function.Description, f.Function.Parameters, f.Function.Strict = t.Name, t.Description, t.Schema, t.Strict
	return wire.Marshal(f)
}
