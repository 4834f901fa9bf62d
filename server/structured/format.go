package structured

import (
	"encoding/json"

	"grove/server/wire"
)

// Format is response_format of OpenAI's routes, text.format of /v1/responses and output_config.format of Anthropic's.
type Format struct {
	Type string        `json:"type" bytes:"256"`
	JSON *formatSchema `json:"json_schema"`

	Tags json.RawMessage `json:"structures"` // this and the next two are of type structural_tag
	On   json.RawMessage `json:"triggers"`
	Form json.RawMessage `json:"format"`

	formatSchema // as /v1/responses and llama.cpp have it
}

// formatSchema is a schema with its name. The schema is enforced whatever strict says.
type formatSchema struct {
	Schema json.RawMessage `json:"schema"`
	Name   *string         `json:"name" bytes:"256"`
	Strict *bool           `json:"strict"`
	About  *string         `json:"description" bytes:"65536"`
}

// Asks returns the form that a format asks for; nil: none. field is the route's name of it.
func (f *Format) Asks(field string) (*Form, error) {
	if f == nil || f.Type == "text" {
		return nil, nil
	}
	schema := f.Schema
	if f.JSON != nil {
		schema = f.JSON.Schema
	}
	switch given := len(schema) > 0 && string(schema) != "null"; {
	case f.Type == "json_object" && !given:
		return &Form{Field: field, Kind: Schema, Schema: []byte(anyObject)}, nil
	case f.Type == "json_schema" && !given:
		return nil, wire.Refuse(field, "%s: type json_schema has no schema", field)
	case f.Type == "json_object", f.Type == "json_schema":
		return &Form{Field: field, Kind: Schema, Schema: schema}, nil
	case f.Type == "structural_tag":
		raw, err := json.Marshal(map[string]json.RawMessage{"structures": f.Tags, "triggers": f.On, "format": f.Form})
		if err != nil {
			return nil, wire.Refuse(field, "%s: %v", field, err)
		}
		tree, err := tagged(field, raw)
		return &Form{Field: field, Kind: Tree, Tree: tree}, err
	}
	return nil, wire.Refuse(field, "%s: type %q is not known; text, json_object and json_schema are", field, wire.Clip(f.Type))
}

// Bare returns the form of ollama's field: "json", or a schema; nil: none.
func Bare(field string, raw json.RawMessage) (*Form, error) {
	switch string(raw) {
	case "", "null", `""`:
		return nil, nil
	case `"json"`:
		return &Form{Field: field, Kind: Schema, Schema: []byte(anyObject)}, nil
	}
	if raw[0] == '{' {
		return &Form{Field: field, Kind: Schema, Schema: raw}, nil
	}
	return nil, wire.Refuse(field, "%s is %s; it must be json or a schema", field, wire.Clip(string(raw)))
}
