package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Decode reads a request's body into a struct, whose fields are matched by their json tags. Every field of the body
// must be one of the struct, or one that asks for nothing (see [harmless]). It returns an [*apiError] that names the
// field to blame.
func Decode(body []byte, into any) error {
	if !utf8.Valid(body) {
		return Refuse("", "the body is not UTF-8")
	}
	if err := checkSurrogates(body); err != nil {
		return err
	}
	values, err := object(body)
	if err != nil {
		return err
	}
	fields := map[string]reflect.Value{}
	fieldsOf(reflect.ValueOf(into).Elem(), fields)
	for _, v := range values {
		field, ok := fields[v.name]
		if !ok {
			if err := harmless(v.name, v.raw); err != nil {
				return err
			}
			continue
		}
		if err := DecodeField(v.name, v.raw, field.Addr().Interface()); err != nil {
			return err
		}
	}
	return nil
}

// DecodeField reads one field, in which all that is there must be known.
func DecodeField(name string, raw json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var (
		api  *Error
		kind *json.UnmarshalTypeError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &api):
		if api.Param == "" {
			api.Param = name
		}
		return api
	case errors.As(err, &kind):
		if kind.Field != "" {
			name += "." + kind.Field
		}
		return Refuse(name, "%s: a %s is no value for it", name, kind.Value)
	}
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		if inner, err := strconv.Unquote(field); err == nil {
			name += "." + inner
		}
		return unknown(name)
	}
	return Refuse(name, "%s: %s", name, strings.TrimPrefix(err.Error(), "json: "))
}

func unknown(name string) *Error {
	e := Refuse(Clip(name), "%s: the field is not known", Clip(name))
	e.Code = "unknown_parameter"
	return e
}

// Clip cuts what a client wrote to a length that is fit for a message.
func Clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}

// A value is a field of an object.
type value struct {
	name string
	raw  json.RawMessage
}

// object returns the fields of the JSON object that is all of a body, in order. A field that is there twice is refused.
func object(body []byte) ([]value, error) {
	malformed := func(err error) error {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return Refuse("", "the body is not a JSON object: it ends too early")
		}
		return Refuse("", "the body is not a JSON object: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	d := json.NewDecoder(bytes.NewReader(body))
	t, err := d.Token()
	if err != nil {
		return nil, malformed(err)
	}
	if t != json.Delim('{') {
		return nil, Refuse("", "the body is not a JSON object")
	}
	var values []value
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, malformed(err)
		}
		name := t.(string) // the decoder takes nothing else for a key
		if seen[name] {
			return nil, Refuse(Clip(name), "%s: the field is there twice", Clip(name))
		}
		seen[name] = true
		v := value{name: name}
		if err := d.Decode(&v.raw); err != nil {
			return nil, malformed(err)
		}
		values = append(values, v)
	}
	if _, err := d.Token(); err != nil {
		return nil, malformed(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, Refuse("", "the body goes on behind the JSON object")
	}
	return values, nil
}

// fieldsOf lists the fields of a struct by their names in JSON, those of embedded structs among them.
func fieldsOf(v reflect.Value, fields map[string]reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			fieldsOf(v.Field(i), fields)
			continue
		}
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			fields[name] = v.Field(i)
		}
	}
}

// checkSurrogates refuses escapes of half a character, which decoding would replace in silence.
func checkSurrogates(body []byte) error {
	unit := func(i int) (rune, bool) {
		if i+6 > len(body) || body[i] != '\\' || body[i+1] != 'u' {
			return 0, false
		}
		n, err := strconv.ParseUint(string(body[i+2:i+6]), 16, 16)
		return rune(n), err == nil
	}
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' {
			continue
		}
		r, ok := unit(i)
		switch {
		case !ok:
			i++ // another escape, or one that the decoder refuses
		case r < 0xD800 || r > 0xDFFF:
			i += 5
		default:
			low, ok := unit(i + 6)
			if r > 0xDBFF || !ok || low < 0xDC00 || low > 0xDFFF {
				return Refuse("", "the body has %s, half a character, at byte %d", body[i:i+6], i)
			}
			i += 11
		}
	}
	return nil
}

// asks says what the values of a field that is not supported are that ask for nothing; any: all of them, since the
// field only describes the request, or another that is refused.
type asks struct {
	any     bool
	neutral []string // besides null, as JSON
	reason  string
}

const noSampler = "this way to sample is not supported"

// NoGrammar is the reason to refuse what wants the form of an answer held.
const NoGrammar = "constrained output is not supported yet"

// unhonoured lists the fields of OpenAI, llama.cpp and vLLM that grove knows and does not honour.
var unhonoured = map[string]asks{
	"previous_response_id": {reason: "nothing is stored"}, "conversation": {reason: "nothing is stored"}, "prompt": {reason: "there are no stored prompts"},
	"background": {neutral: []string{"false"}, reason: "it is not supported"}, "truncation": {neutral: []string{`"disabled"`}, reason: "texts are never cut"},
	"max_tool_calls": {reason: "it is not supported"}, "prompt_cache_retention": {any: true},
	"user": {any: true}, "safety_identifier": {any: true}, "metadata": {any: true}, "prompt_cache_key": {any: true},
	"service_tier": {neutral: []string{`"auto"`, `"default"`}, reason: "there are no tiers"},
	"store":        {neutral: []string{"false"}, reason: "nothing is stored"},

	"grammar":          {neutral: []string{`""`}, reason: NoGrammar},
	"grammar_lazy":     {neutral: []string{"false"}, reason: NoGrammar},
	"grammar_triggers": {neutral: []string{"[]"}, reason: NoGrammar},
	"json_schema":      {neutral: []string{"{}"}, reason: NoGrammar},
	"guided_json":      {reason: NoGrammar}, "guided_regex": {reason: NoGrammar}, "guided_choice": {reason: NoGrammar},
	"guided_grammar": {reason: NoGrammar}, "structured_outputs": {reason: NoGrammar},

	"mirostat":       {neutral: []string{"0"}, reason: noSampler},
	"mirostat_tau":   {any: true},
	"mirostat_eta":   {any: true},
	"typical_p":      {neutral: []string{"1", "1.0"}, reason: noSampler},
	"tfs_z":          {neutral: []string{"1", "1.0"}, reason: noSampler},
	"top_n_sigma":    {neutral: []string{"-1", "-1.0", "0", "0.0"}, reason: noSampler},
	"dynatemp_range": {neutral: []string{"0", "0.0"}, reason: noSampler}, "dynatemp_exponent": {any: true},
	"xtc_probability": {neutral: []string{"0", "0.0"}, reason: noSampler}, "xtc_threshold": {any: true},
	"dry_multiplier": {neutral: []string{"0", "0.0"}, reason: noSampler},
	"dry_base":       {any: true}, "dry_allowed_length": {any: true}, "dry_penalty_last_n": {any: true}, "dry_sequence_breakers": {any: true},
	// These size drafts, which the plan of a step does here; no answer depends on them.
	"speculative.n_max": {any: true}, "speculative.n_min": {any: true}, "speculative.p_min": {any: true},

	"min_keep":        {neutral: []string{"0", "1"}, reason: noSampler},
	"samplers":        {reason: "the order of samplers is fixed"},
	"penalty_prompt":  {reason: noSampler},
	"penalize_nl":     {neutral: []string{"true"}, reason: noSampler},
	"use_beam_search": {neutral: []string{"false"}, reason: noSampler},
	"length_penalty":  {neutral: []string{"1", "1.0"}, reason: noSampler},
	"bad_words":       {neutral: []string{"[]"}, reason: noSampler}, "allowed_token_ids": {reason: noSampler},

	"n_keep": {neutral: []string{"0", "-1"}, reason: "texts are never cut"}, "n_discard": {neutral: []string{"0"}, reason: "texts are never cut"},
	"truncate_prompt_tokens": {reason: "texts are never cut"},
	"n_indent":               {neutral: []string{"0"}, reason: "it is not supported"},
	"t_max_predict_ms":       {neutral: []string{"0", "-1"}, reason: "it is not supported"}, "t_max_prompt_ms": {neutral: []string{"0", "-1"}, reason: "it is not supported"},
	"return_progress": {neutral: []string{"false"}, reason: "it is not supported"},
	"image_data":      {neutral: []string{"[]"}, reason: "images are not supported"},
	"lora":            {neutral: []string{"[]"}, reason: "adapters are not supported"},
	"modalities":      {neutral: []string{`["text"]`}, reason: "text alone is supported"},
	"audio":           {reason: "text alone is supported"}, "functions": {reason: "use tools"}, "function_call": {reason: "use tool_choice"},
	"web_search_options": {reason: "it is not supported"}, "verbosity": {reason: "it is not supported"},
}

// harmless returns nil for a field that asks for nothing, or an error that says why it is refused.
func harmless(name string, raw json.RawMessage) error {
	a, known := unhonoured[name]
	if !known {
		return unknown(name)
	}
	var packed bytes.Buffer
	if err := json.Compact(&packed, raw); err != nil {
		return fmt.Errorf("server: field %s: %w", name, err)
	}
	if text := packed.String(); a.any || text == "null" || slices.Contains(a.neutral, text) {
		return nil
	}
	return Unsupported(name, a.reason)
}
