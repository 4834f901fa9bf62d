package server_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/gopher"
	"grove/server"
	"grove/server/access"
	"grove/server/serving"
)

var update = flag.Bool("update", false, "write testdata/wire.txt anew")

// varies finds the parts that differ between equal requests: ids, clocks and durations.
var varies = []struct {
	find *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`(cmpl-|resp_|msg_|fc_|score-)[0-9a-z]+-[0-9a-z]+`), "${1}ID"},
	{regexp.MustCompile(`("created(?:_at)?"):\d+`), "$1:0"},
	{regexp.MustCompile(`("[a-z_]+(?:_ms|_per_second)"):[0-9.e+-]+`), "$1:0"},
	{regexp.MustCompile(`("(?:draft_n|draft_n_accepted|rounds)"):\d+`), "$1:0"}, // these depend on the machine's speed
	{regexp.MustCompile(`("(?:call_)?id":"(?:toolu_)?)[0-9A-Za-z]{9}"`), `${1}CALL"`},
	{regexp.MustCompile(`"system_fingerprint":"[^"]*"`), `"system_fingerprint":"NUMERICS"`},
	{regexp.MustCompile(`"seed":\d{6,}`), `"seed":"DRAWN"`},
}

// TestWire holds every byte of answers, whole and as streams, and of errors to testdata/wire.txt, but for what differs
// between equal requests.
func TestWire(t *testing.T) {
	const path = "testdata/wire.txt"
	const calls = `"temperature":0,"max_tokens":4,"logit_bias":{"319":100,"318":98},"presence_penalty":2,"frequency_penalty":2`
	const callInput = `"input":"go","temperature":0,"max_output_tokens":4,"logit_bias":{"319":100,"318":98},"presence_penalty":2,"frequency_penalty":2,"tools":[{"type":"function","name":"look","parameters":{"type":"object"}}]`
	const small = `{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"],"additionalProperties":false}`
	const forced = `"temperature":0,"parallel_tool_calls":false,"tool_choice":{"type":"function","function":{"name":"look"}},"tools":[{"type":"function","function":{"name":"look","parameters":` + small + `}}]`
	one := options
	one.Parallel = 1 // answers come in order
	plain := func() *site { return serveModels(t, server.Config{}, source(modelName, gopher.Model(), one)) }
	chat := func() *site {
		return serveModels(t, server.Config{}, source(modelName, edited(t, gopher.Model(), template), one))
	}
	sessions := func() *site {
		return serveModels(t, server.Config{Config: serving.Config{Sessions: access.Sessions{Dir: t.TempDir()}}}, source(modelName, edited(t, gopher.Model(), template), one))
	}
	var b strings.Builder
	for _, group := range []struct {
		name     string
		serve    func() *site
		requests [][2]string
	}{
		{"plain", plain, [][2]string{
			{"/v1/completions", `{"prompt":"func main() {","max_tokens":6,"temperature":0STREAM}`},
			{"/v1/completions", `{"prompt":["func main() {","package"],"n":2,"max_tokens":3,"seed":7,"logprobs":1,"stop":["\n\n"]STREAM}`},
			{"/v1/completions", `{"prompt":"a","max_tokens":2,"seed":7,"stop_token_ids":[5],"timings_per_token":trueUSAGE}`},
			{"/v1/completions", `{"prompt":"func main() {","max_tokens":0,"echo":true,"logprobs":1STREAM}`},
			{"/v1/completions", `{"prompt":"func main() {","max_tokens":0,"n":2,"prediction":{"type":"content","content":"a b"}USAGE}`},
			{"/v1/completions", `{"prompt":"func é","max_tokens":2,"temperature":0,"n":2,"echo":true,"logprobs":0USAGE}`},
			{"/v1/completions", `{"prompt":"func main() {","temperature":0,"max_tokens":12,"method":"guided","prediction":{"type":"content","content":"}\n\nfunc main()"}USAGE}`},
			{"/v1/completions", `{"prompt":"a","max_tokens":0,"n":0STREAM}`},
			{"/v1/completions", `{"prompt":"a","n":129STREAM}`},
			{"/v1/completions", `{"prompt":[]STREAM}`},
			{"/v1/completions", `{"prompt":"a","max_tokens":0,"session":"x"STREAM}`},
			{"/v1/completions", `{"prompt":"a","suffix":"x"STREAM}`},
			{"/v1/completions", `{"prompt":"a","model":"none"STREAM}`},
			{"/v1/completions", `{"prompt":"a","timeout":0.0000001STREAM}`},
			{"/v1/completions", `{"prompt":"a","top_p":2,"min_p":-1STREAM}`},
			{"/v1/completions", `{"prompt":"a","repeat_penalty":0STREAM}`},
			{"/v1/completions", `{"prompt":"a","top_k":-2STREAM}`},
			{"/completion", `{"prompt":"func main() {","n_predict":6,"temperature":0,"return_tokens":true,"seed":9STREAM}`},
			{"/completion", `{"prompt":["a","b"],"n_predict":2,"n_cmpl":2,"n_probs":2,"seed":9STREAM}`},
			{"/completion", `{"prompt":"a","n_predict":2,"n_probs":2,"post_sampling_probs":true,"seed":9,"timings_per_token":trueSTREAM}`},
			{"/completion", `{"prompt":"a","n_predict":1,"seed":9,"response_fields":["content","timings/prompt_n","generation_settings/seed"]STREAM}`},
			{"/completion", `{"prompt":"func main() {","temperature":0,"stop":["main"],"logit_bias":[[" x",false]]STREAM}`},
			{"/completion", `{"prompt":"a","n_predict":0STREAM}`},
			{"/completion", `{"n_predict":1STREAM}`},
			{"/infill", `{"input_prefix":"a","input_suffix":"b"STREAM}`},
			{"/infill", `{"input_suffix":"b"STREAM}`},
			{"/completion", `{"prompt":"func main() {","prefix_lm":true,"n_predict":3,"temperature":0STREAM}`},
			{"/v1/completions", `{"prompt":"func main() {","prefix_lm":true,"max_tokens":3,"temperature":0STREAM}`},
			{"/v1/chat/completions", `{"messages":[{"role":"user","content":"a"}]STREAM}`},
			{"/v1/embeddings", `{"input":"a","dimensions":3}`},
			{"/v1/embeddings", `{}`},
			{"/v1/score", `{"prompt":"func main","continuations":["() {"," x"],"token_logprobs":true}`},
			{"/v1/score", `{"text_1":"a","text_2":"b"}`},
			{"/tokenize", `{"content":"func \u20ac","with_pieces":true}`},
			{"/tokenize", `{"content":"func main","add_special":true}`},
			{"/detokenize", `{"tokens":[1,99999]}`},
			{"/slots/0", `{}`},
			{"/v1/nothing", `{}`},
			{"/v1/models", `{}`},
		}},
		{"chat", chat, [][2]string{
			{"/v1/chat/completions", `{` + hello + `,"max_tokens":4,"temperature":0USAGE}`},
			{"/v1/chat/completions", `{` + hello + `,"max_tokens":3,"seed":3,"n":2,"logprobs":true,"top_logprobs":1STREAM}`},
			{"/v1/chat/completions", `{` + hello + `,"max_tokens":3,"seed":3,"timings_per_token":trueSTREAM}`},
			{"/v1/chat/completions", `{"messages":[{"role":"user","content":"` + strings.Repeat("word ", 400) + `"}]STREAM}`},
			{"/v1/chat/completions", `{` + hello + `,"n":200STREAM}`},
			{"/v1/chat/completions", `{` + hello + `,"session":"x"STREAM}`},
			{"/v1/responses", `{"instructions":"Be brief.","input":[{"role":"user","content":[{"type":"input_text","text":"func main()"}]}],"max_output_tokens":4,"seed":3,"include":["message.output_text.logprobs"],"metadata":{"a":"b"}STREAM}`},
			{"/v1/responses", `{"input":"` + strings.Repeat("word ", 400) + `"STREAM}`},
			{"/v1/responses", `{"input":[]STREAM}`},
			{"/v1/responses", `{"input":"a","session":"x"STREAM}`},
			{"/v1/responses", `{"input":"a","max_output_tokens":0STREAM}`},
			{"/apply-template", `{` + hello + `}`},
		}},
		{"caller", func() *site { return serveCaller(t) }, [][2]string{
			{"/v1/chat/completions", `{"messages":[{"role":"user","content":"go"}],` + calls + `,` + tool + `STREAM}`},
			{"/v1/chat/completions", `{"messages":[{"role":"user","content":"go"}],` + calls + `,` + tool + `,"logprobs":trueSTREAM}`},
			{"/v1/responses", `{` + callInput + `STREAM}`},
		}},
		{"sessions", sessions, [][2]string{
			{"/v1/completions", `{"prompt":"a","session":"../x"STREAM}`},
			{"/v1/chat/completions", `{` + hello + `,"n":2,"session":"x"STREAM}`},
			{"/completion", `{"prompt":"a","n_predict":1,"seed":1,"session":"x","cache_prompt":falseSTREAM}`},
		}},
		{"forms", chat, [][2]string{
			{"/v1/chat/completions", `{` + hello + `,"temperature":0,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":` + small + `}}STREAM}`},
			{"/v1/chat/completions", `{` + hello + `,"temperature":0,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"enum":[]}}}STREAM}`},
			{"/v1/chat/completions", `{` + hello + `,` + forced + `STREAM}`},
			{"/v1/chat/completions", `{` + hello + `,"max_tokens":30,` + forced + `STREAM}`},
			{"/v1/chat/completions", `{` + hello + `,"guided_regex":"(","structured_outputs":{"choice":["a"]}STREAM}`},
			{"/v1/responses", `{"input":"go","temperature":0,"parallel_tool_calls":false,"tool_choice":"required","tools":[{"type":"function","name":"look","strict":true,"parameters":` + small + `}]STREAM}`},
			{"/v1/responses", `{"input":"go","temperature":0,"text":{"format":{"type":"json_schema","name":"x","schema":` + small + `}}STREAM}`},
			{"/v1/messages", `{"messages":[{"role":"user","content":"go"}],"max_tokens":60,"temperature":0,"tool_choice":{"type":"any","disable_parallel_tool_use":true},"tools":[{"name":"look","input_schema":` + small + `}]STREAM}`},
			{"/completion", `{"prompt":"a","n_predict":20,"temperature":0,"grammar":"root ::= \"yes\" | \"no\""STREAM}`},
		}},
	} {
		s := group.serve()
		for _, r := range group.requests {
			forms := []string{"", `,"stream":true`}
			if strings.Contains(r[1], "USAGE") {
				forms[1] += `,"stream_options":{"include_usage":true}`
			} else if !strings.Contains(r[1], "STREAM") {
				forms = forms[:1]
			}
			for _, form := range forms {
				body := strings.NewReplacer("STREAM", form, "USAGE", form).Replace(r[1])
				status, text, header := s.do(t, "POST", r[0], body)
				for _, v := range varies {
					text = v.find.ReplaceAllString(text, v.with)
				}
				if len(body) > 300 {
					body = body[:150] + "..."
				}
				fmt.Fprintf(&b, "%s %s %s\n%d %s\n%s\n", group.name, r[0], body, status, header.Get("Content-Type"), text)
			}
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(b.String(), "\n")); d != "" {
		t.Error(d)
	}
}
