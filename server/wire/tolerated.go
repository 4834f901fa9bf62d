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
	Client string // who sends them
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
	{"user safety_identifier metadata client_metadata request_id rid", "*", "OpenAI, Codex, SGLang", "they describe the request"},
	{"store service_tier", "*", "OpenAI", "they concern the keeping of copies, and prices"},
	{"prompt_cache_key prompt_cache_retention prompt_cache_options keep_alive n_cache_reuse slot_id", "*", "OpenAI, Codex, ollama, llama.cpp", "they concern the cache, which changes the speed alone"},
	{"speculative.n_max speculative.n_min speculative.p_min", "*", "llama.cpp", "they size drafts, which the server does by itself"},
	{"n_keep n_discard truncate shift num_ctx", "*", "llama.cpp, ollama", "they say what to cut of a text that is too long, and " + neverCut + ": one that fits stays as it is"},
	{"guided_decoding_backend", "*", "vLLM", "there is one engine of constraints"},
	{"spaces_between_special_tokens", "*", "vLLM", noSpecial},
	{"sse_ping_interval", "*", "llama.cpp", "a waiting stream gets comments anyway"},
	{"return_progress verbose backend_sampling", "*", "llama.cpp", "they ask for notes beside the answer, or say where it is computed"},
	{"verbosity", "*", "OpenAI", "it is a hint to models that were trained with it"},
	{"max_tool_calls", "*", "OpenAI", "it counts the calls of tools that the server runs, and there are none"},
	{"penalize_nl", "*", "llama.cpp", "llama.cpp does not read it any more"},

	{"skip_special_tokens detokenize", "true", "vLLM", noSpecial + ", and answers are texts"},
	{"include_stop_str_in_output", "false", "vLLM", "stop strings are not part of texts"},
	{"return_token_ids return_tokens_as_token_ids return_tokens return_hidden_states", "false", "vLLM, llama.cpp, SGLang", "the route does not return them"},
	{"n_probs", "0", "llama.cpp", "the route does not return them"},
	{"prompt_logprobs", "0", "vLLM", "the route does not return them"},
	{"parse_tool_calls separate_reasoning include_reasoning", "true", "llama.cpp, SGLang, OpenRouter", "it cannot be turned off"},
	{"reasoning_in_content no_stop_trim enable_response_messages", "false", "llama.cpp, SGLang, vLLM", "it is not supported"},
	{"n_indent", "0", "llama.cpp", "it is not supported"},
	{"t_max_predict_ms t_max_prompt_ms", "0 -1", "llama.cpp", "use timeout"},
	{"options", "{}", "ollama", "write its members as fields of the request"},
	{"num_predict", "", "ollama", "use max_tokens"},
	{"thinking enable_thinking", "", "DeepSeek, Qwen", "/v1/chat/completions has it"},
	{"reasoning", "{}", "OpenRouter", "use reasoning_effort"},

	{"modalities", `["text"]`, "OpenAI", textAlone},
	{"audio", "", "OpenAI", textAlone},
	{"image_data images", "[]", "llama.cpp, ollama", "images are not supported"},
	{"mm_processor_kwargs", "{}", "vLLM", textAlone},
	{"functions", "[]", "OpenAI", "use tools"},
	{"function_call", `"auto" "none"`, "OpenAI", "use tool_choice"},
	{"web_search_options documents", "[] {}", "OpenAI, vLLM", "it is not supported"},
	{"background", "false", "OpenAI", "/v1/responses has it"},
	{"truncation", `"disabled" "auto"`, "OpenAI", neverCut},
	{"truncate_prompt_tokens", "", "vLLM", neverCut},
	{"previous_response_id", "", "OpenAI", "/v1/responses has it"},
	{"conversation", "", "OpenAI", "nothing but responses is stored"},
	{"prompt", "", "OpenAI", "there are no stored prompts"},
	{"kv_transfer_params vllm_xargs", "{}", "vLLM", "it is not supported"},
	{"lora", "[]", "llama.cpp", "adapters are of routes that generate"},
	{"lora_path lora_request", "", "SGLang, vLLM", "use model or lora"},

	{"format", "", "ollama", "use response_format"},

	{"n best_of", "1", "OpenAI", "the route gives one answer"},
	{"max_new_tokens max_length max_output_tokens max_tokens_to_sample", "", "transformers, TGI, Anthropic", "use max_tokens"},
	{"stop_sequences stop_strings stopping_strings", "[]", "transformers, Anthropic", "use stop"},
	{"response_schema response_mime_type", "", "Gemini", "use response_format"},
	{"system contents", "", "Anthropic, Gemini", "use messages"},
	{"do_sample", "true", "transformers", "use temperature"},
	{"prefix_lm", "false", "grove", "the route does not read it"},
	{"num_beams guidance_scale cfg_scale", "1", "transformers, text-generation-webui", noSampler},
	{"no_repeat_ngram_size penalty_alpha top_n_tokens encoder_repetition_penalty", "0", "transformers, LMDeploy, TGI", noSampler},
	{"negative_prompt sampler_order bad_words_ids", "[]", "transformers, KoboldCpp", noSampler},
	{"tfs_z length_penalty typical", "1", "llama.cpp, vLLM, ollama", noSampler},
	{"top_a epsilon_cutoff eta_cutoff smoothing_factor", "0", "text-generation-webui", noSampler},
	{"use_beam_search early_stopping", "false", "vLLM", noSampler},
	{"bad_words logits_processors", "[]", "vLLM", noSampler},
	{"allowed_token_ids penalty_prompt", "", "vLLM", noSampler},
}

// MessageFields are the fields of messages that come back from clients and are not read.
var MessageFields = []Toleration{
	{"annotations provider_specific_fields cache_control parsed id metadata", "*", "OpenAI, litellm", "they describe the message"},
	{"reasoning_details", "*", "OpenRouter", "they are copies of the thoughts for the server that made them"},
	{"function_call", "", "OpenAI", "use tool_calls"},
	{"audio", "", "OpenAI", textAlone},
	{"images", "[]", "ollama", "images are not supported"},
	{"prefix", "false", "DeepSeek", "use continue_final_message"},
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
