package server_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"grove/server"
)

// TestRefused: each fault of a request is answered with a status and the field to blame, and the server goes on.
func TestRefused(t *testing.T) {
	s := serve(t, server.Config{Body: 1 << 20})
	long := fmt.Sprintf("%q", strings.Repeat("word ", 400))
	many := strings.TrimSuffix(strings.Repeat(`"x",`, 10_000), ",")
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	for _, tt := range []struct {
		path, body   string
		status       int
		param, wants string
	}{
		{"/v1/completions", `{"prompt":"a","temprature":1}`, 400, "temprature", `not known; did you mean "temperature"?`},
		{"/v1/completions", `{"prompt":"a","stream":true,"stream_options":{"includes_usage":true}}`, 400, "stream_options.includes_usage", "not known"},
		{"/v1/completions", `{"prompt":"a","prompt":"b"}`, 400, "prompt", "twice"},
		{"/v1/completions", `{"prompt":"a","best_of":5,"n":2}`, 400, "best_of", "best_of: n is 2; it must be 1"},
		{"/v1/completions", `{"prompt":"a","best_of":128}`, 400, "best_of", "n is \"128\"; it must be a whole number from 2 to 64"},
		{"/v1/completions", `{"prompt":"a","best_of":2,"temperature":0}`, 400, "", "the temperature is 0"},
		{"/v1/completions", `{"prompt":"a","best_of":3,"search":"ffs"}`, 400, "best_of", "search asks for a program already"},
		{"/v1/completions", `{"prompt":"a","best_of":3,"max_tokens":0,"echo":true}`, 400, "search", "nothing is generated"},
		{"/v1/completions", `{"prompt":"a","use_beam_search":true,"n":3}`, 400, "use_beam_search", "use_beam_search: n is 3; it must be 1"},
		{"/v1/completions", `{"prompt":"a","length_penalty":0.5}`, 400, "length_penalty", "set use_beam_search to true"},
		{"/v1/completions", `{"prompt":"a","early_stopping":"never"}`, 400, "early_stopping", "set use_beam_search to true"},
		{"/v1/completions", `{"prompt":"a","use_beam_search":true,"early_stopping":"soon"}`, 400, "early_stopping", "it must be true, false or never"},
		{"/v1/completions", `{"prompt":"a","use_beam_search":true,"early_stopping":1}`, 400, "early_stopping", "it must be true, false or never"},
		{"/v1/completions", `{"prompt":"a","use_beam_search":true,"length_penalty":11}`, 400, "length_penalty", "from -10 to 10"},
		{"/v1/completions", `{"prompt":"a","response_format":{"type":"json_schema"}}`, 400, "response_format", "no schema"},
		{"/v1/completions", `{"prompt":"a","response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object","properties":{"a":{"type":"integer","enum":["x"]}},"required":["a"]}}}}`, 400, "response_format", "response_format: #"},
		{"/v1/completions", `{"prompt":"a","response_format":{"type":"yaml"}}`, 400, "response_format", "not known"},
		{"/v1/completions", `{"prompt":"a","tfs_z":0.5}`, 400, "tfs_z", "not supported"},
		{"/v1/completions", `{"prompt":"a","grammar":"root ::= x"}`, 400, "grammar", "grammar: "},
		{"/v1/completions", `{"prompt":"a","model":"gpt-4"}`, 404, "model", `the model "gpt-4" is not served; served is gopher`},
		{"/v1/completions", `{"max_tokens":3}`, 400, "prompt", "missing"},
		{"/v1/completions", `{"prompt":[]}`, 400, "prompt", "empty"},
		{"/v1/completions", `{"prompt":[[]]}`, 400, "prompt", "empty"},
		{"/v1/completions", `{"prompt":{"a":1}}`, 400, "prompt", "prompt_string is missing"},
		{"/v1/completions", `{"prompt":true}`, 400, "prompt", "must be a text"},
		{"/v1/completions", `{"prompt":[1.5]}`, 400, "prompt[0]", "1.5"},
		{"/v1/completions", `{"prompt":["a",1,["b"]]}`, 400, "prompt", "among them"},
		{"/v1/completions", `{"prompt":[-1]}`, 400, "prompt", "token id -1 is out of range: the vocabulary has 4096"},
		{"/v1/completions", `{"prompt":[1,4096]}`, 400, "prompt", "token id 4096 is out of range"},
		{"/v1/completions", `{"prompt":[99999999999]}`, 400, "prompt", "out of range"},
		{"/v1/completions", `{"prompt":[1e99]}`, 400, "prompt[0]", "1e99"},
		{"/v1/completions", `{"prompt":` + long + `}`, 400, "prompt", "exceeds the available context size of 256 tokens"},
		{"/v1/completions", `{"prompt":` + long + `,"max_tokens":0,"echo":true}`, 400, "prompt", "exceeds the available context size of 256 tokens"},
		{"/v1/completions", `{"prompt":"a","max_tokens":-2}`, 400, "max_tokens", "-2; it must be -1 (no bound) or more"},
		{"/v1/completions", `{"prompt":"a","max_tokens":9223372036854775808}`, 400, "max_tokens", "9223372036854775808"},
		{"/v1/completions", `{"prompt":"a","max_tokens":3,"max_completion_tokens":4}`, 400, "max_completion_tokens", "differ"},
		{"/v1/completions", `{"prompt":"a","max_tokens":"many"}`, 400, "max_tokens", "string"},
		{"/v1/completions", `{"prompt":"a","n":0}`, 400, "n", "from 1 to 128"},
		{"/v1/completions", `{"prompt":"a","n":1000000}`, 400, "n", "from 1 to 128"},
		{"/v1/completions", `{"prompt":[` + many + `],"n":128}`, 400, "prompt", "more than 1024 prompts"},
		{"/v1/completions", `{"prompt":["a","b","c","d","e","f","g","h","i"],"n":128}`, 400, "n", "at most 1024"},
		{"/v1/completions", `{"prompt":"a","n":-5,"max_tokens":0}`, 400, "n", "-5"},
		{"/v1/completions", `{"prompt":"a","logprobs":1000000}`, 400, "logprobs", "from 0 to 20"},
		{"/v1/completions", `{"prompt":"a","logprobs":-1}`, 400, "logprobs", "from 0 to 20"},
		{"/v1/completions", `{"prompt":"a","temperature":-1}`, 400, "temperature", "-1"},
		{"/v1/completions", `{"prompt":"a","temperature":1e39}`, 400, "temperature", "1e39"},
		{"/v1/completions", `{"prompt":"a","temperature":NaN}`, 400, "", "not a JSON object"},
		{"/v1/completions", `{"prompt":"a","top_p":1.5}`, 400, "top_p", "1.5"},
		{"/v1/completions", `{"prompt":"a","min_p":-0.1}`, 400, "min_p", "-0.1"},
		{"/v1/completions", `{"prompt":"a","top_k":-2}`, 400, "top_k", "-2"},
		{"/v1/completions", `{"prompt":"a","presence_penalty":3}`, 400, "presence_penalty", "-2 to 2"},
		{"/v1/completions", `{"prompt":"a","frequency_penalty":-2.5}`, 400, "frequency_penalty", "-2 to 2"},
		{"/v1/completions", `{"prompt":"a","repeat_penalty":0}`, 400, "repeat_penalty", "0.01"},
		{"/v1/completions", `{"prompt":"a","repetition_penalty":-1}`, 400, "repetition_penalty", "-1"},
		{"/v1/completions", `{"prompt":"a","repeat_last_n":-2}`, 400, "repeat_last_n", "-2"},
		{"/v1/completions", `{"prompt":"a","min_tokens":-1}`, 400, "min_tokens", "-1"},
		{"/v1/completions", `{"prompt":"a","seed":1.5}`, 400, "seed", "1.5"},
		{"/v1/completions", `{"prompt":"a","seed":99999999999999999999}`, 400, "seed", "64 bits"},
		{"/v1/completions", `{"prompt":"a","stop":[""]}`, 400, "stop[0]", "0 bytes"},
		{"/v1/completions", `{"prompt":"a","stop":[` + many + `]}`, 400, "stop", "more than 64 elements"},
		{"/v1/completions", `{"prompt":"a","stop":"` + strings.Repeat("s", 1<<19) + `"}`, 400, "stop", "524288 bytes"},
		{"/v1/completions", `{"prompt":"a","stop":3}`, 400, "stop", "text"},
		{"/v1/completions", `{"prompt":"a","stop_token_ids":[-1]}`, 400, "stop_token_ids", "-1"},
		{"/v1/completions", `{"prompt":"a","logit_bias":{"4096":1}}`, 400, "logit_bias", "4096"},
		{"/v1/completions", `{"prompt":"a","logit_bias":{"-1":1}}`, 400, "logit_bias", "-1"},
		{"/v1/completions", `{"prompt":"a","logit_bias":{"05":1}}`, 400, "logit_bias.05", `"05"`},
		{"/v1/completions", `{"prompt":"a","logit_bias":{"99999999999999999999":1}}`, 400, "logit_bias.99999999999999999999", "not a token id"},
		{"/v1/completions", `{"prompt":"a","logit_bias":{"a":101}}`, 400, "logit_bias.a", "101"},
		{"/v1/completions", `{"prompt":"a","n_predict":-2}`, 400, "n_predict", "-2"},
		{"/v1/completions", `{"prompt":"a","n_predict":2,"max_tokens":3}`, 400, "n_predict", "differs from 3"},
		{"/v1/completions", `{"prompt":"a","logit_bias":{"5":101}}`, 400, "logit_bias.5", "101"},
		{"/v1/completions", `{"prompt":"a","logit_bias":[[5]]}`, 400, "logit_bias[0]", "is a pair"},
		{"/v1/completions", `{"prompt":"a","logit_bias":[[5,true]]}`, 400, "logit_bias[0][1]", "a number, or false"},
		{"/v1/completions", `{"prompt":"a","method":"magic"}`, 400, "method", "magic"},
		{"/v1/completions", `{"prompt":"a","suffix":"b"}`, 400, "", "suffix"},
		{"/v1/completions", `{"prompt":"a","prediction":{"type":"x"}}`, 400, "prediction", `"x"`},
		{"/v1/completions", `{"prompt":"a","prediction":{"type":"content","content":[{"type":"image"}]}}`, 400, "prediction.content[0]", "image"},
		{"/v1/completions", `{"prompt":"\ud800"}`, 400, "", "half a character"},
		{"/v1/completions", `{"prompt":"\udc00\ud800"}`, 400, "", "half a character"},
		{"/v1/completions", "{\"prompt\":\"\xff\"}", 400, "", "not UTF-8"},
		{"/v1/completions", ``, 400, "", "ends too early"},
		{"/v1/completions", `{"prompt":"a"`, 400, "", "not a JSON object"},
		{"/v1/completions", `{"prompt":"a"} {}`, 400, "", "goes on"},
		{"/v1/completions", `["a"]`, 400, "", "not a JSON object"},
		{"/v1/completions", deep, 400, "", "not a JSON object"},
		{"/v1/completions", `{"prompt":` + deep + `}`, 400, "prompt[0][0]", "nested deeper than 64"},
		{"/v1/completions", `{"` + strings.Repeat("k", 50_000) + `":1}`, 400, "prompt", "missing"},
		{"/v1/completions", `{"prompt":"` + strings.Repeat("a", 1<<20) + `"}`, 413, "", "more than 1048576 bytes"},

		{"/completion", `{"prompt":"a","n_predict":-2}`, 400, "n_predict", "-2"},
		{"/completion", `{"prompt":"a","n_probs":1000000}`, 400, "n_probs", "from 0 to 1000"},
		{"/completion", `{"prompt":"a","n_predict":2,"max_tokens":3}`, 400, "max_tokens", "differs from 2"},
		{"/completion", `{"prompt":"a","n_cmpl":2,"n":3}`, 400, "n", "differs from 2"},
		{"/embedding", `{"content":"a","input":"b"}`, 400, "input", "another name"},
		{"/v1/embeddings", `{"content":"a","input":"b"}`, 400, "content", "another name"},
		{"/completion", `{"prompt":"a","id_slot":2}`, 400, "id_slot", "to 1"},
		{"/completion", `{"prompt":"a","id_slot":-2}`, 400, "id_slot", "-2"},
		{"/completion", `{"prompt":{"prompt_string":"a","multimodal_data":["x"]}}`, 400, "prompt.multimodal_data", "images are not supported"},
		{"/completion", `{"prompt":[{"prompt_string":"a","multimodal_data":["x"]}]}`, 400, "prompt[0].multimodal_data", "images are not supported"},
		{"/completion", `{"prompt":{"prompt_string":null}}`, 400, "prompt", "prompt_string is missing"},
		{"/completion", `{"prompt":"a","input_suffix":"b"}`, 400, "input_suffix", "/infill"},
		{"/infill", `{"input_prefix":"a"}`, 400, "input_suffix", "missing"},
		{"/infill", `{"input_suffix":"a"}`, 400, "input_prefix", "missing"},
		{"/infill", `{"input_prefix":"a","input_suffix":"b"}`, 400, "", "filled in"},
		{"/completion", `{"prompt":"a","prefix_lm":true,"session":"x"}`, 400, "session", "prefix_lm"},
		{"/completion", `{"prompt":"a","prefix_lm":1}`, 400, "prefix_lm", "not a value"},
		{"/v1/completions", `{"prompt":"a","prefix_lm":true,"session":"x"}`, 400, "session", "prefix_lm"},
		{"/v1/completions", `{"prompt":"a","prefix_lm":true,"max_tokens":0}`, 400, "prefix_lm", "scored"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"a"}],"prefix_lm":true}`, 400, "prefix_lm", "does not read it"},
		{"/infill", `{"input_prefix":"a","input_suffix":"b","input_extra":[{"filename":"x"}]}`, 400, "input_extra", "file 0 has no text"},
		{"/infill", `{"input_prefix":"a","input_suffix":"b","input_extra":[{"filename":1,"text":"a"}]}`, 400, "input_extra[0].filename", "a number"},
		{"/infill", `{"input_prefix":"a","input_suffix":"b","input_extra":[{"text":"a","filenam":"b"}]}`, 400, "input_extra[0].filenam", "not known"},
		{"/tokenize", `{"content":1}`, 400, "content", "number"},
		{"/detokenize", `{"tokens":[-1]}`, 400, "tokens", "-1"},
		{"/detokenize", `{"tokens":[4096]}`, 400, "tokens", "4096"},
		{"/v1/embeddings", `{}`, 400, "input", "missing"},
		{"/v1/embeddings", `{"input":"a","dimensions":257}`, 400, "", "it must be from 1 to "},
		{"/v1/embeddings", `{"input":"a","encoding_format":"hex"}`, 400, "encoding_format", "hex"},
		{"/v1/embeddings", `{"input":` + long + `}`, 400, "input", "256"},
		{"/v1/embeddings", `{"input":[]}`, 400, "input", "empty list"},
		{"/v1/embeddings", `{"input":[5000]}`, 400, "input", "5000"},
		{"/v1/embeddings", `{"input":"a","pooling":"max"}`, 400, "", "max"},
		{"/v1/nothing", `{}`, 404, "", "there is no /v1/nothing"},
		{"/v1/v1/chat/completions", `{}`, 404, "", `did you mean "/v1/chat/completions"?`},
		{"/openai/v1/chat/completions", `{}`, 404, "", `did you mean "/v1/chat/completions"?`},
		{"/v1/api/chat", `{}`, 404, "", `did you mean "/api/chat"?`},
		{"/v1/chat/completion", `{}`, 404, "", `did you mean "/v1/chat/completions"`},
		{"/v1/embeddings/", `{}`, 404, "", `did you mean "/v1/embeddings"`},
		{"/v1/models", `{}`, 405, "", "takes GET"},
	} {
		for _, stream := range []bool{false, true} {
			body := tt.body
			if stream {
				if !strings.HasPrefix(tt.path, "/v1/comp") || !strings.HasPrefix(body, `{"prompt":"a",`) || strings.Contains(body, "stream") {
					continue
				}
				body = `{"stream":true,` + body[1:]
			}
			status, text, _ := s.do(t, "POST", tt.path, body)
			message, kind, param, _ := wantError(t, text)
			if status != tt.status || param != tt.param || !strings.Contains(message, tt.wants) || kind != "invalid_request_error" || len(message) > 1000 { // the names of all methods are the longest
				t.Errorf("%s %.120s: %d %s (%s, param %q), want %d %q, param %q", tt.path, body, status, message, kind, param, tt.status, tt.wants, tt.param)
			}
		}
	}
	s.post(t, "/v1/completions", `{"prompt":"a"}`)
}

// TestContextNumbers: a prompt that is too long is refused with both numbers and the code that clients look for.
func TestContextNumbers(t *testing.T) {
	s := serve(t, server.Config{})
	status, text, _ := s.do(t, "POST", "/v1/completions", `{"prompt":`+fmt.Sprintf("%q", strings.Repeat("word ", 400))+`}`)
	message, _, _, code := wantError(t, text)
	if status != 400 || code != "context_length_exceeded" || !strings.Contains(message, "tokens, which exceeds the available context size of 256 tokens") {
		t.Errorf("%d %s", status, text)
	}
	e := parse(t, text)
	if n, _ := e.at("error/n_prompt_tokens").(float64); n < 400 || e.at("error/n_ctx") != 256.0 {
		t.Errorf("no numbers: %s", text)
	}
}

// TestNeutral: fields that ask for nothing are no reason to refuse a request.
func TestNeutral(t *testing.T) {
	s := serve(t, server.Config{})
	s.post(t, "/v1/completions", `{"prompt":"a","user":"me","metadata":{"a":"b"},"store":false,"service_tier":"auto","response_format":{"type":"text"},
		"speculative.n_max":8,"speculative.n_min":1,"speculative.p_min":0.0,
		"mirostat":0,"mirostat_tau":5,"typical_p":1.0,"xtc_probability":0,"dry_multiplier":0,"grammar":"","id_slot":-1,"cache_prompt":true,
		"seed":-1,"top_k":-1,"logit_bias":{},"stop":[],"max_tokens":1}`)
}

func TestKeys(t *testing.T) {
	s := serve(t, server.Config{Access: keyed(t, "one", "two")})
	for _, tt := range []struct {
		path   string
		header []string
		status int
	}{
		{"/health", nil, 200}, {"/v1/models", nil, 401}, {"/metrics", nil, 401}, {"/slots", nil, 401}, {"/props", nil, 401},
		{"/v1/models", []string{"Authorization", "Bearer one"}, 200}, {"/v1/models", []string{"Authorization", "Bearer two"}, 200},
		{"/v1/models", []string{"Authorization", "Bearer three"}, 401}, {"/v1/models", []string{"Authorization", "Bearer "}, 401},
		{"/v1/models", []string{"Authorization", "one"}, 401}, {"/v1/models", []string{"X-Api-Key", "two"}, 200},
		{"/v1/models/gopher", []string{"X-Api-Key", "two"}, 200}, {"/v1/models/other", []string{"X-Api-Key", "two"}, 404},
	} {
		status, text, header := s.do(t, "GET", tt.path, "", tt.header...)
		if status != tt.status {
			t.Errorf("%s %v: %d %s, want %d", tt.path, tt.header, status, text, tt.status)
		}
		if _, _, _, code := wantErrorIf(t, status, text); status == 401 && (code != "invalid_api_key" || header.Get("WWW-Authenticate") != "Bearer") {
			t.Errorf("%s: %s %v", tt.path, text, header)
		}
	}
}

func wantErrorIf(t *testing.T, status int, text string) (message, kind, param, code string) {
	if status == 200 {
		return
	}
	return wantError(t, text)
}

// TestLoading: until the models are there, requests are answered with 503.
func TestLoading(t *testing.T) {
	s := server.New(server.Config{})
	h := httptest.NewServer(s)
	defer h.Close()
	l := &site{s, h.URL}
	for _, path := range []string{"/health", "/v1/models"} {
		status, text, header := l.do(t, "GET", path, "")
		if _, kind, _, _ := wantError(t, text); status != 503 || kind != "unavailable_error" || header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status, text, _ := l.do(t, "GET", "/health", ""); status != 200 || text != `{"status":"ok"}`+"\n" {
		t.Errorf("%d %s", status, text)
	}
	if err := s.Add(server.Entry{}); err == nil {
		t.Error("a model without a name is served")
	}
}

// TestNoRoute: an error of no route has the form of the API that the path belongs to, and names the methods of a path.
func TestNoRoute(t *testing.T) {
	s := serve(t, server.Config{Body: 1 << 10})
	for _, tt := range []struct {
		method, path, body string
		status             int
		allow              string
	}{
		{"GET", "/api/chat", "", 405, "POST, OPTIONS"}, {"POST", "/api/tags", "{}", 405, "GET, OPTIONS"}, {"POST", "/api/delete", "{}", 405, "DELETE, OPTIONS"},
		{"GET", "/api/blobs/sha256:a", "", 405, "HEAD, POST, OPTIONS"}, {"GET", "/api/nothing", "", 404, ""}, {"PUT", "/api/", "{}", 404, ""},
		{"POST", "/api/chat", `"` + strings.Repeat("a", 1<<11) + `"`, 413, ""}, {"POST", "/v1/messages", `"` + strings.Repeat("a", 1<<11) + `"`, 413, ""},
		{"GET", "/v1/messages", "", 405, "POST, OPTIONS"}, {"POST", "/v1/messages/batches", "{}", 404, ""}, {"GET", "/v1/messages/count_tokens", "", 405, "POST, OPTIONS"},
		{"PUT", "/v1/responses/a", "{}", 405, "GET, DELETE, OPTIONS"}, {"POST", "/v1/models/gopher", "{}", 405, "GET, OPTIONS"}, {"GET", "/v1/messagesque", "", 404, ""},
	} {
		status, text, header := s.do(t, tt.method, tt.path, tt.body)
		if status != tt.status || header.Get("Allow") != tt.allow {
			t.Errorf("%s %s: %d %s, allowed are %q; want %d, %q", tt.method, tt.path, status, text, header.Get("Allow"), tt.status, tt.allow)
		}
		wantErrorOf(t, tt.path, text)
	}
	for _, path := range []string{"/api/chat", "/api/nothing", "/v1/messages", "/v1/messages/nothing", "/v1/nothing"} {
		for _, method := range []string{"POST", "OPTIONS"} {
			status, text, _ := s.do(t, method, path, "{}", "Origin", "http://evil.example")
			if status != 403 {
				t.Errorf("%s %s of another origin: %d %s", method, path, status, text)
			}
			wantErrorOf(t, path, text)
		}
	}
}

// FuzzBodies sends bodies to every route that reads one: each is answered as JSON, with no status of 500 and none that
// a fault of the server would have. An error has the form of the route's API.
func FuzzBodies(f *testing.F) {
	paths := []string{
		"/v1/completions", "/completion", "/infill", "/tokenize", "/detokenize", "/v1/embeddings", "/embedding",
		"/v1/chat/completions", "/v1/responses", "/apply-template", "/v1/messages", "/v1/messages/count_tokens",
		"/api/chat", "/api/generate", "/api/embed", "/api/embeddings", "/api/show", "/api/pull", "/models/load",
	}
	for i, body := range []string{
		`{"prompt":"a","max_tokens":1}`, `{"prompt":[1,"b"],"n_predict":1,"n_probs":2}`, `{"input_prefix":"a","input_suffix":"b"}`,
		`{"content":"abc","with_pieces":true}`, `{"tokens":[1,2,3]}`, `{"input":["a",[1,2]]}`, `{"content":"x"}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","tool_calls":[{"id":"b","function":{"name":"f","arguments":"{}"}}]}],"tools":[{"type":"function","function":{"name":"f"}}]}`,
		`{"input":[{"type":"reasoning","content":"a"},{"type":"function_call","name":"f","arguments":"{}"},{"role":"user","content":"b"}],"tools":[{"type":"function","name":"f"}]}`,
		`{"messages":[{"role":"user","content":"a"}],"chat_template_kwargs":{"a":[1]},"continue_final_message":true}`,
		`{"max_tokens":1,"system":[{"type":"text","text":"a"}],"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"c"}]}]}]}`,
		`{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"a"},{"type":"tool_use","id":"b","name":"f","input":{"c":[]}},{"type":"tool_use"}]}],"tools":[{"name":"f","input_schema":{}}]}`,
		`{"messages":[{"role":"user","content":"a","tool_calls":[{"function":{"name":"f","arguments":3}}]}],"options":{"num_predict":1},"stream":false,"tools":[3]}`,
		`{"prompt":"a","context":[1,2],"system":"b","think":"high","keep_alive":"1h","options":{"num_predict":1,"stop":["x"]}}`,
		`{"input":["a","b"],"truncate":true,"dimensions":3,"options":{}}`, `{"prompt":"a","keep_alive":-1}`, `{"name":"gopher","verbose":true}`,
		`{"model":"a/b:c","insecure":true}`, `{"model":"gopher"}`,
		`{"prompt":"a","max_tokens":1,"logit_bias":[["a",false],[5,-3]],"stop":["x"],"n":2,"logprobs":3,"echo":true}`,
		`{"prompt":"\ud83d\ude00","max_tokens":0,"stream":true,"stream_options":{"include_usage":true}}`,
	} {
		f.Add(i%len(paths), body)
	}
	s := serveChat(f)
	f.Fuzz(func(t *testing.T, path int, body string) {
		if strings.Contains(body, `"max_tokens"`) || len(body) > 1<<16 {
			body = strings.ReplaceAll(body, `"max_tokens":`, `"max_tokens":0`) // a number that stays small
		}
		at := paths[(path%len(paths)+len(paths))%len(paths)]
		w := httptest.NewRecorder()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // long answers are cut off
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, "POST", "http://localhost"+at, strings.NewReader(body))
		start := time.Now()
		s.ServeHTTP(w, r)
		if took := time.Since(start); took > 5*time.Second { // of a client that has left
			t.Errorf("%s %s: %v", at, body, took)
		}
		if w.Code >= 500 && ctx.Err() == nil || w.Code == 0 {
			t.Errorf("%s %s: %d %s", at, body, w.Code, w.Body)
		}
		if w.Code != 200 {
			wantErrorOf(t, at, w.Body.String())
		}
	})
}

// wantErrorOf checks that an error has the form of the API that a path belongs to.
func wantErrorOf(t testing.TB, path, text string) {
	t.Helper()
	ok := true
	switch {
	case strings.HasPrefix(path, "/api/"):
		_, ok = parse(t, text)["error"].(string)
	case path == "/v1/messages" || strings.HasPrefix(path, "/v1/messages/"):
		o := parse(t, text)
		kind, _ := o.at("error/type").(string)
		ok = o["type"] == "error" && kind != "" && o.at("error/message") != nil
	default:
		wantError(t, text)
	}
	if !ok {
		t.Errorf("%s: %s", path, text)
	}
}
