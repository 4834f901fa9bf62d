package wire

import (
	"encoding/json"

	"grove"
)

// Prediction is the text that the answer is expected to contain.
type Prediction struct {
	Type    string      `json:"type"`
	Content ContentText `json:"content"`
}

// ContentText is a text, in JSON also a list of parts of type text.
type ContentText string

// UnmarshalJSON implements [json.Unmarshaler].
func (c *ContentText) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	if json.Unmarshal(b, (*string)(c)) == nil {
		return nil
	}
	var parts []json.RawMessage
	if json.Unmarshal(b, &parts) != nil {
		return Refuse("", "the content must be a text or a list of parts")
	}
	var text []byte
	for _, raw := range parts {
		p, err := parseTextPart(raw)
		if err != nil {
			return err
		}
		text = append(text, *p.Text...)
	}
	*c = ContentText(text)
	return nil
}

// textPart is a part of a content.
type textPart struct {
	Type string  `json:"type"`
	Text *string `json:"text"`
}

// Tolerated implements [Tolerant].
func (textPart) Tolerated() []Toleration {
	return []Toleration{{"annotations cache_control logprobs id", "*", "they describe the part"}}
}

// parseTextPart reads a part, which must be a text.
func parseTextPart(raw []byte) (p textPart, err error) {
	var kind struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &kind) != nil || string(raw) == "null" {
		return p, Refuse("", "a part of a content must be an object with a type")
	}
	switch kind.Type {
	case "text", "input_text", "output_text", "reasoning_text":
	case "image_url", "input_image", "image":
		return p, refusePart(kind.Type, "images are not supported")
	case "input_audio", "audio", "audio_url", "video_url", "video":
		return p, refusePart(kind.Type, "sound and films are not supported")
	case "file", "input_file", "document":
		return p, refusePart(kind.Type, "files are not supported; put their text into the message")
	default:
		return p, refusePart(kind.Type, textAlone)
	}
	if err := DecodeField("content", raw, &p); err != nil {
		return p, err
	}
	if p.Text == nil {
		return p, Refuse("", "a part of type %q has no text", kind.Type)
	}
	return p, nil
}

func refusePart(kind, reason string) error {
	e := Refuse("", "a part of type %q: %s", Clip(kind), reason)
	e.Code = "unsupported_parameter"
	return e
}

// Apply sets the prediction of a request, if there is one.
func (p *Prediction) Apply(r *grove.Request) error {
	if p == nil {
		return nil
	}
	if p.Type != "content" {
		return Refuse("prediction", "a prediction of type %q: it must be content", Clip(p.Type))
	}
	r.Prediction = string(p.Content)
	return nil
}

// Format is response_format.
type Format struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"json_schema"`
	Plain  json.RawMessage `json:"schema"`
	Name   json.RawMessage `json:"name"` // this and the next two are of /v1/responses
	Strict json.RawMessage `json:"strict"`
	About  json.RawMessage `json:"description"`
}

// Check refuses all formats but text; field is the route's name for it.
func (f *Format) Check(field string) error {
	switch {
	case f == nil || f.Type == "text":
		return nil
	case f.Type == "json_object" || f.Type == "json_schema":
		return Unsupported(field, NoGrammar+", and an answer of type "+f.Type+" could not be promised")
	}
	return Refuse(field, "%s: type %q is not known", field, Clip(f.Type))
}

// StreamOptions is stream_options.
type StreamOptions struct {
	IncludeUsage       bool  `json:"include_usage"`
	IncludeObfuscation *bool `json:"include_obfuscation"`
}

// Check refuses options of a request that does not stream, and those that are not supported.
func (o *StreamOptions) Check(stream bool) error {
	switch {
	case o == nil:
		return nil
	case !stream:
		return Refuse("stream_options", "stream_options: there is no stream")
	case o.IncludeObfuscation != nil && *o.IncludeObfuscation:
		return Unsupported("stream_options.include_obfuscation", "it is not supported")
	}
	return nil
}
