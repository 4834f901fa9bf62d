package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// unsupported is a field that grove knows and does not honour. Its neutral values ask for nothing.
type unsupported struct {
	any     bool     // all values are neutral: the field describes the request, or belongs to another field that is refused
	neutral []string // besides null, as JSON
	reason  string   // for refusing other values
}

const noSampler = "this way to sample is not supported"

// NoGrammar is the reason to refuse fields that constrain the form of an answer.
const NoGrammar = "constrained output is not supported yet"

// unsupportedFields are fields of OpenAI, llama.cpp and vLLM.
var unsupportedFields = map[string]unsupported{
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

	"tfs_z": {neutral: []string{"1", "1.0"}, reason: noSampler},
	// These size drafts. The planner does that here, and no answer depends on them.
	"speculative.n_max": {any: true}, "speculative.n_min": {any: true}, "speculative.p_min": {any: true},

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

// harmless returns nil for a field that the server can leave out of account, and otherwise an error that says why it is refused.
func harmless(name string, raw json.RawMessage) error {
	f, known := unsupportedFields[name]
	if !known {
		return unknown(name)
	}
	var packed bytes.Buffer
	if err := json.Compact(&packed, raw); err != nil {
		return fmt.Errorf("server: field %s: %w", name, err)
	}
	if text := packed.String(); f.any || text == "null" || slices.Contains(f.neutral, text) {
		return nil
	}
	return Unsupported(name, f.reason)
}
