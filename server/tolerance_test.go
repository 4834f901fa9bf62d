package server_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"grove/server"
	"grove/server/serving"
)

// TestTolerance: the fields that clients of other servers send change nothing, so the answer is the one without them.
func TestTolerance(t *testing.T) {
	s := serveModels(t, server.Config{}, source(modelName, edited(t, served(), template), options))
	text := func(path, body string) any {
		o := s.post(t, path, body)
		for _, at := range []string{"choices/0/message/content", "choices/0/text", "content", "output/0/content/0/text"} {
			if v := o.at(at); v != nil {
				return v
			}
		}
		t.Fatalf("%s: no text in %v", path, o)
		return nil
	}
	const some = `,"max_tokens":6,"seed":3`
	for _, route := range []struct {
		path, plain string
		fields      map[string]string
	}{
		{"/v1/chat/completions", `{` + hello + some, map[string]string{
			"openai": `"store":true,"metadata":{"a":"b"},"service_tier":"flex","user":"me","safety_identifier":"x","prompt_cache_key":"k","prompt_cache_retention":"24h","verbosity":"medium",
				"modalities":["text"],"audio":null,"functions":null,"function_call":null,"logit_bias":null,"logprobs":null,"top_logprobs":0,"n":1,"prediction":null,"reasoning_effort":null,"response_format":null,
				"stop":null,"stream":false,"stream_options":null,"tools":null,"tool_choice":null,"parallel_tool_calls":null,"web_search_options":null,"max_completion_tokens":6,"presence_penalty":0.0`,
			"langchain": `"n":1.0,"temperature":1,"top_p":1,"logprobs":false,"frequency_penalty":0,"stream":false,"best_of":1,"request_id":"x"`,
			"litellm":   `"top_k":-1,"functions":[],"function_call":"auto","user":null,"extra":null,"keep_alive":"5m"`,
			"llama.cpp": `"cache_prompt":true,"id_slot":-1,"slot_id":-1,"n_keep":-1,"n_discard":0,"t_max_predict_ms":0,"parse_tool_calls":true,"timings_per_token":false,"return_progress":false,
				"post_sampling_probs":false,"lora":[],"n_probs":0,"n_predict":6,"backend_sampling":false,"min_keep":0.0,"dry_penalty_last_n":-1.0,
				"samplers":["penalties","dry","temperature","top_n_sigma","min_p","top_k","typ_p","top_p","xtc"]`,
			"vllm": `"skip_special_tokens":true,"spaces_between_special_tokens":true,"include_stop_str_in_output":false,"add_special_tokens":false,"echo":false,"priority":0,"best_of":1,"use_beam_search":false,
				"truncate_prompt_tokens":null,"detokenize":true,"return_token_ids":false,"kv_transfer_params":null,"chat_template":null,"documents":null,"mm_processor_kwargs":null,"min_tokens":0,"stop_token_ids":[],
				"ignore_eos":false,"length_penalty":1.0,"bad_words":[],"allowed_token_ids":null,"guided_json":null,"structured_outputs":null,"add_generation_prompt":true,"continue_final_message":false,"repetition_penalty":1.0,"prompt_logprobs":null`,
			"numbers": `"max_completion_tokens":6.0,"n_predict":0.6e1,"repeat_last_n":-1.0`,
		}},
		{"/v1/completions", `{"prompt":"func main() {"` + some, map[string]string{
			"openai": `"best_of":1,"echo":false,"logprobs":null,"suffix":null,"user":"x","n":1.0,"store":true`,
			"vllm":   `"add_special_tokens":true,"skip_special_tokens":true,"truncate_prompt_tokens":null,"use_beam_search":false,"top_k":0`,
		}},
		{"/completion", `{"prompt":"func main() {","n_predict":6,"seed":3.0`, map[string]string{
			"llama.cpp": `"n_keep":0,"n_discard":-5,"slot_id":3,"cache_prompt":true,"samplers":["penalties","dry","top_n_sigma","top_k","typ_p","top_p","min_p","xtc","temperature"],"t_max_predict_ms":-1,"image_data":[],"grammar":"","json_schema":{},"lora":[],"penalize_nl":true`,
		}},
		{"/v1/responses", `{"input":"func main()","max_output_tokens":6,"seed":3`, map[string]string{
			"openai": `"store":false,"background":false,"truncation":"disabled","service_tier":"auto","metadata":{"a":"b"},"previous_response_id":null,"max_tool_calls":null,"text":{"verbosity":"medium"},"include":[],"prompt":null,"conversation":null,
				"reasoning":{"effort":null,"summary":null},"user":"x","top_logprobs":0`,
		}},
	} {
		want := text(route.path, route.plain+"}")
		for client, fields := range route.fields {
			if got := text(route.path, route.plain+","+fields+"}"); got != want {
				t.Errorf("%s of %s: %q, want %q", client, route.path, got, want)
			}
		}
	}
}

// TestReturnedMessages: messages come back from clients with the members of any server's answers.
func TestReturnedMessages(t *testing.T) {
	s := serveModels(t, server.Config{}, source(modelName, edited(t, served(), template), options))
	const format = `{"messages":[{"role":"user","content":"a"%s},{"role":"assistant","content":"b"%s},{"role":"user","content":[{"type":"text","text":"c"%s}]}]}`
	want := s.post(t, "/apply-template", fmt.Sprintf(format, "", "", ""))
	got := s.post(t, "/apply-template", fmt.Sprintf(format, `,"name":null,"tool_calls":null,"tool_call_id":null,"cache_control":{"type":"ephemeral"}`,
		`,"annotations":[],"audio":null,"function_call":null,"refusal":null,"tool_calls":[],"reasoning":null,"reasoning_content":null,"reasoning_details":[],"name":null,"provider_specific_fields":{"refusal":null},"parsed":{"a":1},"id":"x","thinking":null,"images":[]`,
		`,"annotations":[],"cache_control":{"type":"ephemeral"},"anything":null`))
	if got["prompt"] != want["prompt"] || want["prompt"] == "" {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestNoBound: -1 is no bound under each name.
func TestNoBound(t *testing.T) {
	s := serveModels(t, server.Config{}, source(modelName, edited(t, served(), template), options))
	for path, body := range map[string]string{
		"/v1/completions max_tokens": `{"prompt":"a","max_tokens":-1`, "/v1/completions n_predict": `{"prompt":"a","n_predict":-1.0`, "/v1/chat/completions max_tokens": `{` + hello + `,"max_tokens":-1`,
		"/v1/chat/completions max_completion_tokens": `{` + hello + `,"max_completion_tokens":-1,"max_tokens":-1`, "/v1/responses max_output_tokens": `{"input":"a","max_output_tokens":-1`,
	} {
		path, _, _ := strings.Cut(path, " ")
		o := s.post(t, path, body+`,"seed":1,"ignore_eos":true}`)
		if total := o.at("usage/total_tokens"); total != 256.0 {
			t.Errorf("%s %s: %v tokens, want the context, 256", path, body, total)
		}
	}
}

// TestUnknownFields: a server leaves unknown fields out, logs them and names them in a header; a strict one refuses fields that a route does not read.
func TestUnknownFields(t *testing.T) {
	var log journal
	strict := serve(t, server.Config{Strict: true})
	usual := serve(t, server.Config{Config: serving.Config{Log: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))}})
	for _, tt := range []struct {
		fields        string
		strict, usual int // status
		ignored       string
	}{
		{`"n":1`, 200, 200, ""}, {`"user":"me"`, 400, 200, ""}, {`"mood":null`, 400, 200, ""}, {`"mood":1,"humour":{}`, 400, 200, "mood humour"},
		{`"gram,mood\n":1`, 400, 200, "gram_mood_"},
		{`"grammar":"x"`, 400, 400, ""}, {`"temperature":-1`, 400, 400, ""}, {`"temprature":1`, 400, 400, ""}, {`"stream_options":{"mood":1}`, 400, 200, "stream_options.mood"},
	} {
		body := `{"prompt":"a","max_tokens":1,` + tt.fields + `}`
		if status, text, _ := strict.do(t, "POST", "/v1/completions", body); status != tt.strict {
			t.Errorf("strict: %s: %d %s", body, status, text)
		}
		status, text, header := usual.do(t, "POST", "/v1/completions", body)
		if got := strings.Join(header.Values("Grove-Ignored"), " "); status != tt.usual || got != tt.ignored {
			t.Errorf("%s: %d %s, the header names %s", body, status, text, got)
		}
		if lines := log.take(t); (len(lines) > 0) != (tt.ignored != "") {
			t.Errorf("%s: logged %v", body, lines)
		}
	}
	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, `,"mood%d":1`, i)
	}
	_, _, header := usual.do(t, "POST", "/v1/completions", `{"prompt":"a","max_tokens":1`+many.String()+`}`)
	if lines := log.take(t); len(header.Values("Grove-Ignored")) != 16 || len(lines) != 1 || lines[0]["number"] != 1000.0 || len(lines[0]["fields"].([]any)) != 16 {
		t.Errorf("1000 unknown fields are logged as %v", lines)
	}
}

// TestManyTexts: as many texts as OpenAI takes are embedded at a time.
func TestManyTexts(t *testing.T) {
	s := serveTarget(t, server.Config{})
	texts := strings.TrimSuffix(strings.Repeat(`"a",`, 2048), ",")
	o := s.post(t, "/v1/embeddings", `{"input":[`+texts+`],"dimensions":256,"encoding_format":"base64","user":"x"}`)
	if n := len(o["data"].([]any)); n != 2048 {
		t.Errorf("%d embeddings", n)
	}
	for _, tt := range []struct{ body, param, wants string }{
		{`{"input":["a",` + texts + `]}`, "input", "more than 2048 prompts"},
		{`{"input":"a","dimensions":257}`, "", "256"},
		{`{"input":"a","dimensions":"256"}`, "dimensions", "string"},
		{`{"input":"a","encoding_format":"int8"}`, "encoding_format", "int8"},
	} {
		status, text, _ := s.do(t, "POST", "/v1/embeddings", tt.body)
		if message, _, param, _ := wantError(t, text); status != 400 || param != tt.param || !strings.Contains(message, tt.wants) {
			t.Errorf("%.60s: %d %s, want %q of %s", tt.body, status, text, tt.wants, tt.param)
		}
	}
}
