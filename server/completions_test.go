package server_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/server"
)

// TestCompletion checks the fields of an answer that OpenAI's clients read.
func TestCompletion(t *testing.T) {
	s := serveTarget(t, server.Config{})
	o := s.post(t, "/v1/completions", `{"model":"gopher","prompt":"func main() {","max_tokens":6,"temperature":0}`)
	for path, want := range map[string]any{
		"object": "text_completion", "model": "gopher", "choices/0/index": 0.0, "choices/0/text": "}\n\nfunc main() {}\n\n",
		"choices/0/finish_reason": "length", "choices/0/logprobs": nil, "choices/1": nil,
		"usage/prompt_tokens": 5.0, "usage/completion_tokens": 6.0, "usage/total_tokens": 11.0, "usage/prompt_tokens_details/cached_tokens": 0.0,
		"timings/predicted_n": 6.0,
	} {
		if got := o.at(path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	if id, _ := o["id"].(string); !strings.HasPrefix(id, "cmpl-") || o["created"] == 0.0 {
		t.Errorf("id %v, created %v", o["id"], o["created"])
	}
	if o := s.post(t, "/v1/completions", `{"prompt":"a","max_tokens":null,"temperature":null,"seed":3,"stop":null,"logit_bias":null}`); o.at("usage/completion_tokens").(float64) > 16 {
		t.Errorf("without max_tokens: %v", o)
	}
}

// TestCompletionStream: the parts of a stream make the whole; a reason to end is null until the last part of each
// answer, whose text is empty; the usage comes once, behind the answers, where the request asks for it.
func TestCompletionStream(t *testing.T) {
	s := serve(t, server.Config{})
	const fields = `"prompt":["func main() {","package"],"n":2,"max_tokens":30,"seed":7,"logprobs":2,"stop":["\n\n"]`
	whole := s.post(t, "/v1/completions", "{"+fields+"}")
	for _, usage := range []bool{false, true} {
		body := "{" + fields + `,"stream":true}`
		if usage {
			body = "{" + fields + `,"stream":true,"stream_options":{"include_usage":true}}`
		}
		events := s.events(t, "/v1/completions", body)
		if usage {
			last := events[len(events)-1]
			events = events[:len(events)-1]
			if n := len(last["choices"].([]any)); n != 0 || last.at("usage/total_tokens") != whole.at("usage/total_tokens") {
				t.Errorf("the usage of a stream: %v", last)
			}
		}
		var texts [4]string
		var tokens [4][]any
		var ends [4]any
		for _, e := range events {
			if v, has := e["usage"]; has != usage || v != nil {
				t.Errorf("usage in a part: %v", e)
			}
			i := int(e.at("choices/0/index").(float64))
			text, end := e.at("choices/0/text").(string), e.at("choices/0/finish_reason")
			if ends[i] != nil {
				t.Errorf("answer %d goes on behind its end", i)
			}
			if _, has := e.at("choices/0").(map[string]any)["finish_reason"]; !has {
				t.Error("no reason to end in a part: it must be null")
			}
			if texts[i], ends[i] = texts[i]+text, end; end != nil && text != "" {
				t.Errorf("text %q in the last part", text)
			}
			if l, ok := e.at("choices/0/logprobs/tokens").([]any); ok {
				tokens[i] = append(tokens[i], l...)
			}
		}
		for i := range texts {
			at := fmt.Sprintf("choices/%d/", i)
			if texts[i] != whole.at(at+"text") || ends[i] != whole.at(at+"finish_reason") {
				t.Errorf("answer %d: %q, %v; at once it is %q, %v", i, texts[i], ends[i], whole.at(at+"text"), whole.at(at+"finish_reason"))
			}
			if d := cmp.Diff(whole.at(at+"logprobs/tokens"), any(tokens[i])); d != "" {
				t.Errorf("answer %d, tokens:\n%s", i, d)
			}
		}
	}
}

// TestChoices: each of several answers is the one that its number and the seed stand for; drafting, the other answers
// and the other prompts change nothing.
func TestChoices(t *testing.T) {
	s := serve(t, server.Config{})
	get := func(fields string) (texts []string) {
		o := s.post(t, "/v1/completions", `{"max_tokens":20,"seed":11,"temperature":1.2,`+fields+"}")
		for _, c := range o["choices"].([]any) {
			texts = append(texts, c.(map[string]any)["text"].(string))
		}
		return texts
	}
	want := get(`"prompt":"func main() {","n":5,"method":"off"`)
	if slices.Sort(want); len(slices.Compact(slices.Clone(want))) != 5 {
		t.Fatalf("answers are the same: %q", want)
	}
	for _, fields := range []string{`"prompt":"func main() {","n":5`, `"prompt":"func main() {","n":5,"method":"recycle"`, `"prompt":"func main() {","n":5,"best_of":5`} {
		got := get(fields)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", fields, got, want)
		}
	}
	two := get(`"prompt":["package main","func main() {"],"n":5`)[5:]
	if slices.Sort(two); !slices.Equal(two, want) {
		t.Errorf("behind another prompt: %q, want %q", two, want)
	}
	other := s.post(t, "/v1/completions", `{"max_tokens":20,"seed":12,"temperature":1.2,"prompt":"func main() {"}`)
	if slices.Contains(want, other.at("choices/0/text").(string)) {
		t.Error("another seed gives the same text")
	}
}

// TestPrompts sends one prompt in all its forms.
func TestPrompts(t *testing.T) {
	s := serve(t, server.Config{})
	ids := s.post(t, "/tokenize", `{"content":"func main() {","add_special":true}`)["tokens"].([]any)
	list := strings.ReplaceAll(strings.Trim(fmt.Sprint(ids), "[]"), " ", ",")
	want := s.post(t, "/v1/completions", `{"prompt":"func main() {","temperature":0}`).at("choices/0/text")
	for _, prompt := range []string{`["func main() {"]`, "[" + list + "]", "[[" + list + "]]", `["x",[` + list + `]]`} {
		o := s.post(t, "/v1/completions", `{"temperature":0,"prompt":`+prompt+"}")
		choices := o["choices"].([]any)
		if got := choices[len(choices)-1].(map[string]any)["text"]; got != want {
			t.Errorf("%s: %q, want %q", prompt, got, want)
		}
	}
	two := s.post(t, "/v1/completions", `{"temperature":0,"prompt":["x",["a","b"]]}`)
	if n := len(two["choices"].([]any)); n != 2 {
		t.Errorf("a text and a list of texts are %d prompts", n)
	}
	mixed := s.post(t, "/completion", `{"temperature":0,"n_predict":16,"prompt":[`+fmt.Sprint(ids[0])+`,"func main() {"]}`)
	if mixed["content"] != want {
		t.Errorf("an id and a text: %q, want %q", mixed["content"], want)
	}
}

// TestEcho checks the log-probabilities of a prompt, which evaluations ask for.
func TestEcho(t *testing.T) {
	s := serve(t, server.Config{})
	const prompt = "func main() { é return"
	o := s.post(t, "/v1/completions", `{"prompt":"`+prompt+`","max_tokens":0,"echo":true,"logprobs":2}`)
	l := o.at("choices/0/logprobs").(map[string]any)
	tokens, probs, top, offsets := l["tokens"].([]any), l["token_logprobs"].([]any), l["top_logprobs"].([]any), l["text_offset"].([]any)
	if o.at("choices/0/text") != prompt || o.at("choices/0/finish_reason") != "length" || len(tokens) != len(probs) || len(tokens) != len(top) || len(tokens) != len(offsets) {
		t.Fatalf("%v", o)
	}
	if probs[0] != nil || top[0] != nil || o.at("usage/completion_tokens") != 0.0 || o.at("usage/prompt_tokens") != float64(len(tokens)) {
		t.Errorf("%v", o)
	}
	for i, p := range probs[1:] {
		all := top[i+1].(map[string]any)
		if p.(float64) > 0 || len(all) < 2 || len(all) > 3 || all[tokens[i+1].(string)] != p {
			t.Errorf("token %d: %v, %v", i+1, p, all)
		}
	}
	// The same numbers come of generating the tokens one by one.
	gen := s.post(t, "/v1/completions", `{"prompt":"func main() {","temperature":0,"max_tokens":4,"logprobs":1}`)
	again := s.post(t, "/v1/completions", `{"prompt":"func main() {","temperature":0,"max_tokens":4,"logprobs":1,"echo":true}`)
	text := gen.at("choices/0/text").(string)
	if again.at("choices/0/text") != "func main() {"+text {
		t.Errorf("echo: %q", again.at("choices/0/text"))
	}
	echoed := again.at("choices/0/logprobs/token_logprobs").([]any)
	own := gen.at("choices/0/logprobs/token_logprobs").([]any)
	if d := cmp.Diff(own, echoed[len(echoed)-len(own):]); d != "" {
		t.Errorf("echo changes the answer's log-probabilities:\n%s", d)
	}
	both := s.post(t, "/v1/completions", fmt.Sprintf(`{"prompt":%q,"max_tokens":0,"logprobs":1,"echo":true}`, "func main() {"+text))
	all := both.at("choices/0/logprobs/token_logprobs").([]any)
	if d := cmp.Diff(echoed, all); d != "" {
		t.Errorf("as a prompt, the text has other log-probabilities:\n%s", d)
	}
}

// TestStops: a stop string ends the text before it, whether it begins in the middle of a token or is made of several.
func TestStops(t *testing.T) {
	s := serve(t, server.Config{})
	whole := s.post(t, "/v1/completions", `{"prompt":"func main() {","temperature":0,"max_tokens":40}`).at("choices/0/text").(string)
	for from := 1; from < 30; from += 3 {
		stop := whole[from : from+4]
		if at := strings.Index(whole, stop); at != from {
			continue
		}
		for _, stream := range []bool{false, true} {
			body := fmt.Sprintf(`{"prompt":"func main() {","temperature":0,"max_tokens":40,"stop":["never",%q],"stream":%v}`, stop, stream)
			var text string
			var last object
			if !stream {
				last = s.post(t, "/v1/completions", body)
				text = last.at("choices/0/text").(string)
			} else {
				for _, e := range s.events(t, "/v1/completions", body) {
					text += e.at("choices/0/text").(string)
					last = e
				}
			}
			if text != whole[:from] || last.at("choices/0/finish_reason") != "stop" || last.at("choices/0/stop_reason") != stop {
				t.Errorf("stop %q: %q, %v", stop, text, last)
			}
		}
	}
}

// TestPenalties checks the fields that change logits, with drafts and without.
func TestPenalties(t *testing.T) {
	s := serveTarget(t, server.Config{})
	id := func(text string) float64 {
		return s.post(t, "/tokenize", fmt.Sprintf(`{"content":%q}`, text))["tokens"].([]any)[0].(float64)
	}
	get := func(fields string) string {
		var texts []string
		for _, method := range []string{"off", "auto"} {
			o := s.post(t, "/v1/completions", `{"prompt":"if err != nil {","temperature":0,"max_tokens":30,"method":"`+method+`",`+fields+"}")
			texts = append(texts, o.at("choices/0/text").(string))
		}
		if texts[0] != texts[1] {
			t.Errorf("%s: %q, and with drafts %q", fields, texts[0], texts[1])
		}
		return texts[0]
	}
	plain := get(`"seed":1`)
	slashes := id(" //")
	if got := get(fmt.Sprintf(`"logit_bias":{"%v":-100}`, slashes)); strings.HasPrefix(got, " //") {
		t.Errorf("a token that is banned: %q", got)
	}
	if got := get(fmt.Sprintf(`"logit_bias":{"%v":100}`, slashes)); got != strings.Repeat(" //", 30) {
		t.Errorf("a token that is forced: %q", got)
	}
	if got := get(fmt.Sprintf(`"stop_token_ids":[%v]`, slashes)); got != "" {
		t.Errorf("a token that ends the text: %q", got)
	}
	if got := get(fmt.Sprintf(`"stop_token_ids":[%v],"min_tokens":5`, slashes)); got == "" || strings.HasPrefix(got, " //") {
		t.Errorf("a token that ends the text too early: %q", got)
	}
	for _, fields := range []string{
		`"presence_penalty":2`, `"frequency_penalty":1.5`, `"repetition_penalty":1.8`, `"repeat_penalty":1.8,"repeat_last_n":8`,
		`"presence_penalty":1,"repeat_last_n":-1`,
	} {
		if got := get(fields); got == plain {
			t.Errorf("%s changes nothing", fields)
		}
	}
	if got := get(`"repeat_penalty":1.8,"repeat_last_n":0`); got != plain {
		t.Errorf("penalties that look at nothing: %q", got)
	}
	ended := s.post(t, "/v1/completions", `{"prompt":"func main() {","seed":5,"temperature":2,"max_tokens":200,"ignore_eos":true}`)
	if ended.at("usage/completion_tokens") != 200.0 {
		t.Errorf("ignore_eos: %v", ended["usage"])
	}
}

// TestLogprobs: the model's own, whatever the sampling; those of the draw where they are asked for.
func TestLogprobs(t *testing.T) {
	s := serve(t, server.Config{})
	a := s.post(t, "/completion", `{"prompt":"func main() {","n_predict":1,"n_probs":5,"temperature":0}`)
	b := s.post(t, "/completion", `{"prompt":"func main() {","n_predict":1,"n_probs":5,"temperature":0.3,"top_k":2,"logit_bias":[[" run",2]],"seed":2}`)
	if d := cmp.Diff(a.at("completion_probabilities/0/top_logprobs"), b.at("completion_probabilities/0/top_logprobs")); d != "" {
		t.Errorf("sampling changes the model's log-probabilities:\n%s", d)
	}
	c := s.post(t, "/completion", `{"prompt":"func main() {","n_predict":8,"n_probs":5,"temperature":0.9,"top_k":2,"min_p":0,"top_p":1,"seed":2,"post_sampling_probs":true}`)
	for i, p := range c["completion_probabilities"].([]any) {
		sum, top := 0.0, p.(map[string]any)["top_probs"].([]any)
		for _, x := range top {
			sum += x.(map[string]any)["prob"].(float64)
		}
		if len(top) != 2 || math.Abs(sum-1) > 1e-5 || p.(map[string]any)["logprob"] != nil {
			t.Errorf("token %d: %v", i, p)
		}
	}
}

// TestPrefixLM: the tokens of a prompt see each other, on each route, where the field asks for that.
func TestPrefixLM(t *testing.T) {
	s := serveTarget(t, server.Config{})
	const fields = `"prompt":"func main() { fmt.Println(1) }","temperature":1.5,"seed":3,"max_tokens":20`
	texts := map[string]string{}
	for _, prefix := range []string{"", `,"prefix_lm":false`, `,"prefix_lm":true`} {
		native := s.post(t, "/completion", `{`+fields+`,"top_k":0,"top_p":1,"min_p":0,"repeat_penalty":1`+prefix+`}`)["content"].(string)
		texts[prefix] = native
		if got := s.post(t, "/v1/completions", `{`+fields+prefix+`}`).at("choices/0/text"); got != native {
			t.Errorf("%s: %q on /completion, %q on /v1/completions", prefix, native, got)
		}
	}
	if texts[""] != texts[`,"prefix_lm":false`] || texts[""] == texts[`,"prefix_lm":true`] {
		t.Errorf("answers %q", texts)
	}
}

// TestUsage: the usage counts cached tokens, and a salt keeps others out of them.
func TestUsage(t *testing.T) {
	s := serve(t, server.Config{})
	prompt := strings.Repeat("a b c d e f ", 20)
	cached := func(fields string) float64 {
		return s.post(t, "/v1/completions", fmt.Sprintf(`{"prompt":%q,"max_tokens":1%s}`, prompt, fields)).at("usage/prompt_tokens_details/cached_tokens").(float64)
	}
	if n := cached(""); n != 0 {
		t.Errorf("%v tokens were cached at first", n)
	}
	if n := cached(""); n < 64 {
		t.Errorf("%v tokens were cached", n)
	}
	if n := cached(`,"cache_salt":"ours","n":3`); n != 0 {
		t.Errorf("%v tokens were cached at first, of several answers, which find what one of them computes", n)
	}
	if n := cached(`,"cache_salt":"mine"`); n != 0 {
		t.Errorf("%v tokens of others were found", n)
	}
	if n := cached(`,"cache_salt":"mine"`); n < 64 {
		t.Errorf("%v tokens of one's own were found", n)
	}
	if n := cached(`,"cache_prompt":false`); n != 0 {
		t.Errorf("%v tokens were found although the cache is not to be used", n)
	}
}

// TestPrediction: a prediction changes the speed alone, and the usage counts it.
func TestPrediction(t *testing.T) {
	s := serve(t, server.Config{})
	const fields = `"prompt":"func main() {","temperature":0,"max_tokens":60`
	plain := s.post(t, "/v1/completions", "{"+fields+`,"method":"off"}`)
	text := plain.at("choices/0/text").(string)
	got := s.post(t, "/v1/completions", fmt.Sprintf(`{%s,"method":"guided","prediction":{"type":"content","content":%q}}`, fields, text))
	if got.at("choices/0/text") != text {
		t.Errorf("%q, want %q", got.at("choices/0/text"), text)
	}
	accepted, rejected := got.at("usage/completion_tokens_details/accepted_prediction_tokens").(float64), got.at("usage/completion_tokens_details/rejected_prediction_tokens").(float64)
	if accepted < 55 || rejected > 5 || got.at("timings/rounds").(float64) > 10 {
		t.Errorf("%v accepted, %v rejected, %v rounds", accepted, rejected, got.at("timings/rounds"))
	}
	wrong := s.post(t, "/v1/completions", `{`+fields+`,"prediction":{"type":"content","content":[{"type":"text","text":"zzz QQQ"}]}}`)
	if wrong.at("choices/0/text") != text || wrong.at("usage/completion_tokens_details/rejected_prediction_tokens") == 0.0 {
		t.Errorf("a wrong prediction: %v", wrong)
	}
}

// TestUnderLoad sends many requests at a time, of several priorities, while other clients come and leave, and expects each answer,
// its log-probabilities too, to be the one that the request gets alone.
func TestUnderLoad(t *testing.T) {
	s := serve(t, server.Config{})
	requests, turns := 12, 4
	if os.Getenv("GROVE_LONG") != "" {
		requests, turns = 48, 32
	}
	var bodies []string
	for i := range requests {
		bodies = append(bodies, fmt.Sprintf(
			`{"prompt":%q,"max_tokens":%d,"seed":%d,"temperature":%v,"logprobs":3,"n":%d,"presence_penalty":%v,"stop":["}\n\n"],"method":%q}`,
			strings.Repeat("func f(x int) int { return x }\n", 1+i%4), 8+i*3%40, i, float64(i%3)*0.6, 1+i%3, float64(i%2)/2,
			[]string{"auto", "off", "sam"}[i%3]))
	}
	want := make([]any, len(bodies))
	for i, b := range bodies {
		want[i] = s.post(t, "/v1/completions", b)["choices"]
	}
	var clients, leavers sync.WaitGroup
	over := make(chan struct{})
	leavers.Go(func() {
		for k := 0; ; k++ {
			select {
			case <-over:
				return
			default:
			}
			ctx, leave := context.WithCancel(t.Context())
			lines, body := s.begin(t, ctx, `{"prompt":"func f(x int) int { return x }\nfunc f(","max_tokens":200,"ignore_eos":true,"stream":true}`)
			for range k % 7 {
				if _, err := lines.ReadString('\n'); err != nil {
					break
				}
			}
			leave()
			body.Close()
		}
	})
	for c := range 8 {
		clients.Go(func() {
			for k := range turns {
				i := (k*5 + c*3) % len(bodies)
				body := strings.Replace(bodies[i], "{", fmt.Sprintf(`{"priority":%d,`, (k+c)%5-2), 1)
				if got := s.post(t, "/v1/completions", body)["choices"]; !cmp.Equal(want[i], got) {
					t.Errorf("request %d under load (-alone +load):\n%s", i, cmp.Diff(want[i], got))
				}
			}
		})
	}
	clients.Wait()
	close(over)
	leavers.Wait()
	eventually(t, "a place stays taken", func() bool { return s.busy(t) == 0 })
}
