package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Toleration is a list of fields that routes do not read, with the values that cannot change an answer. null is one of them always.
type Toleration struct {
	Names  string // with spaces between
	Values string // JSON, with spaces between; "": none but null; *: all
	Reason string // why other values are refused; where all are taken, why none changes an answer
}

const noSampler = "this way to sample is not supported"

const (
	neverCut  = "texts are never cut"
	textAlone = "text alone is supported"
	noSpecial = "special tokens are not part of texts"
)

// Tolerated returns the fields of OpenAI's API, of llama.cpp, vLLM and their clients that routes do not read. A route that reads one of
// them has its own rule for it.
func Tolerated() []Toleration { return slices.Clone(tolerated) }

var tolerated = []Toleration{
	{"user safety_identifier metadata request_id rid", "*", "they describe the request"},
	{"store service_tier", "*", "they concern the keeping of copies, and prices"},
	{"prompt_cache_key prompt_cache_retention keep_alive n_cache_reuse slot_id", "*", "they concern the cache, which changes the speed alone"},
	{"speculative.n_max speculative.n_min speculative.p_min", "*", "they size drafts, which the server does by itself"},
	{"n_keep n_discard", "*", "they say what to cut, and " + neverCut},
	{"guided_decoding_backend", "*", "there is one engine of constraints"},
	{"spaces_between_special_tokens", "*", noSpecial},
	{"sse_ping_interval", "*", "a waiting stream gets comments anyway"},

	{"skip_special_tokens detokenize", "true", noSpecial + ", and answers are texts"},
	{"include_stop_str_in_output", "false", "stop strings are not part of texts"},
	{"return_token_ids return_tokens_as_token_ids return_tokens return_progress return_hidden_states", "false", "the route does not return them"},
	{"n_probs", "0", "the route does not return them"},
	{"prompt_logprobs", "", "the route does not return them"},
	{"parse_tool_calls separate_reasoning include_reasoning", "true", "it cannot be turned off"},
	{"backend_sampling verbose reasoning_in_content no_stop_trim enable_response_messages", "false", "it is not supported"},
	{"n_indent", "0", "it is not supported"},
	{"t_max_predict_ms t_max_prompt_ms", "0 -1", "use timeout"},
	{"options", "{}", "write its members as fields of the request"},
	{"num_ctx", "", "the context is the server's (grove serve --context)"},
	{"num_predict", "", "use max_tokens"},
	{"thinking enable_thinking", "", "use reasoning_effort or chat_template_kwargs"},
	{"reasoning", "{}", "use reasoning_effort"},

	{"verbosity", `"medium"`, "it is not supported"},
	{"modalities", `["text"]`, textAlone},
	{"audio", "", textAlone},
	{"image_data images", "[]", "images are not supported"},
	{"mm_processor_kwargs", "{}", textAlone},
	{"functions", "[]", "use tools"},
	{"function_call", `"auto" "none"`, "use tool_choice"},
	{"web_search_options documents", "[]", "it is not supported"},
	{"background", "false", "it is not supported"},
	{"truncation", `"disabled"`, neverCut},
	{"truncate_prompt_tokens", "", neverCut},
	{"max_tool_calls", "", "it is not supported"},
	{"previous_response_id", "", "/v1/responses has it"},
	{"conversation", "", "nothing but responses is stored"},
	{"prompt", "", "there are no stored prompts"},
	{"kv_transfer_params vllm_xargs", "{}", "it is not supported"},
	{"lora", "[]", "adapters are of routes that generate"},
	{"lora_path lora_request", "", "use model or lora"},

	{"format", "", "use response_format"},

	{"tfs_z length_penalty typical", "1", noSampler},
	{"top_a epsilon_cutoff eta_cutoff smoothing_factor", "0", noSampler},
	{"penalize_nl", "true", noSampler},
	{"use_beam_search early_stopping", "false", noSampler},
	{"bad_words logits_processors", "[]", noSampler},
	{"allowed_token_ids penalty_prompt", "", noSampler},
}

// MessageFields are the fields of messages that come back from clients and are not read.
var MessageFields = []Toleration{
	{"annotations provider_specific_fields cache_control parsed id metadata", "*", "they describe the message"},
	{"reasoning", `""`, "use reasoning_content"},
	{"reasoning_details", "[]", "use reasoning_content"},
	{"function_call", "", "use tool_calls"},
	{"audio", "", textAlone},
	{"images", "[]", "images are not supported"},
	{"prefix", "false", "use continue_final_message"},
}

// Tolerant is for structs that have tolerated fields of their own.
type Tolerant interface {
	// Tolerated returns them. At the top of a body they come before those that hold for all routes.
	Tolerated() []Toleration
}

// byName has the rule of each field.
var byName = tableOf(tolerated)

func tableOf(list []Toleration) map[string]Toleration {
	table := map[string]Toleration{}
	for _, r := range list {
		for name := range strings.FieldsSeq(r.Names) {
			table[name] = r
		}
	}
	return table
}

func toleratedNames() (names []string) {
	for _, r := range tolerated {
		names = append(names, strings.Fields(r.Names)...)
	}
	return names
}

// takes reports whether a value of the field cannot change an answer.
func (t Toleration) takes(raw json.RawMessage) bool {
	if t.Values == "*" {
		return true
	}
	var packed bytes.Buffer
	if json.Compact(&packed, raw) != nil {
		return false
	}
	number, err := strconv.ParseFloat(packed.String(), 64)
	for value := range strings.FieldsSeq(t.Values) {
		if want, no := strconv.ParseFloat(value, 64); value == packed.String() || err == nil && no == nil && number == want {
			return true
		}
	}
	return false
}
