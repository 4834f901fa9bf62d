package wire

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"grove"
)

// Prediction is the text that the answer is expected to contain.
type Prediction struct {
	Type    string      `json:"type" bytes:"256"`
	Content ContentText `json:"content" most:"65536"`
}

// ContentText are texts, in JSON a text or a list of parts of type text.
type ContentText []string

// Text returns the texts with line ends between.
func (c ContentText) Text() string { return strings.Join(c, "\n") }

// ReadJSON implements [Own].
func (c *ContentText) ReadJSON(r *Reader) error {
	switch r.Kind() {
	case jsontext.KindBeginArray:
	case jsontext.KindString:
		text, err := r.Text()
		*c = ContentText{text}
		return err
	default:
		return r.Refuse("the content must be a text or a list of parts")
	}
	*c = nil
	return r.List(func(int) error {
		text, err := readTextPart(r)
		*c = append(*c, text)
		return err
	})
}

// textPart is a part of a content.
type textPart struct {
	Type string  `json:"type"`
	Text *string `json:"text"`
}

// Tolerated implements [Tolerant].
func (textPart) Tolerated() []Toleration {
	return []Toleration{{Names: "annotations cache_control logprobs id", Values: "*", Client: "OpenAI", Reason: "they describe the part"}}
}

// readTextPart reads a part, which must be a text.
func readTextPart(r *Reader) (string, error) {
	if r.Kind() != jsontext.KindBeginObject {
		return "", r.Refuse("a part of a content must be an object with a type")
	}
	raw, kind, err := r.Typed()
	if err != nil {
		return "", err
	}
	switch kind {
	case "text", "input_text", "output_text", "reasoning_text", "summary_text":
	case "image_url", "input_image", "image":
		return "", r.refusePart(kind, "images are not supported")
	case "input_audio", "audio", "audio_url", "video_url", "video":
		return "", r.refusePart(kind, "sound and films are not supported")
	case "file", "input_file", "document":
		return "", r.refusePart(kind, "files are not supported; put their text into the message")
	default:
		return "", r.refusePart(kind, textAlone)
	}
	var p textPart
	if err := r.Within(raw, &p); err != nil {
		return "", err
	}
	if p.Text == nil {
		return "", r.Refuse("a part of type %q has no text", kind)
	}
	return *p.Text, nil
}

// Typed reads the next object and returns its text, which is a part of the body, and its field type. Its values do not count among those that
// hold any JSON: the caller reads them by [Reader.Within], or forgets them.
func (r *Reader) Typed() (raw json.RawMessage, kind string, err error) {
	if r.Kind() != jsontext.KindBeginObject {
		return nil, "", r.wrong()
	}
	values := r.values
	r.values = math.MinInt / 2
	raw, err = r.Raw()
	if r.values = values; err != nil {
		return nil, "", err
	}
	kind, err = r.typeOf(raw)
	return raw, kind, err
}

// typeOf returns the field type of an object, whose other fields are of any names.
func (r *Reader) typeOf(raw json.RawMessage) (kind string, err error) {
	var o struct {
		Type string `json:"type"`
	}
	other := *r
	other.lax, other.values = true, math.MinInt/2
	err = other.Within(raw, &o)
	return o.Type, err
}

func (r *Reader) refusePart(kind, reason string) error {
	e := r.Refuse("a part of type %q: %s", Clip(kind), reason)
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
	r.Prediction = strings.Join(p.Content, "")
	return nil
}

// StreamOptions is stream_options.
type StreamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// Tolerated implements [Tolerant].
func (StreamOptions) Tolerated() []Toleration {
	return []Toleration{
		{Names: "include_obfuscation", Values: "*", Client: "OpenAI", Reason: "it pads events against those who count bytes on the way"},
		{Names: "continuous_usage_stats", Values: "*", Client: "vLLM", Reason: "the usage comes at the end"},
	}
}
