package server_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/gopher"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/server"
	"grove/server/serving"
)

// openSame opens the model of a server's source in the test.
func openSame(t *testing.T, file []byte) *grove.Model {
	t.Helper()
	m, err := grove.OpenBytes(file, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// drawn returns the tokens of an answer.
func drawn(t *testing.T, m *grove.Model, r grove.Request) (ids []any, stats grove.Stats) {
	t.Helper()
	g, err := m.Generate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for tok, err := range g.Tokens() {
		if err != nil {
			t.Fatal(err)
		}
		if tok.ID != token.None {
			ids = append(ids, float64(tok.ID))
		}
	}
	return ids, g.Stats()
}

const (
	stagesPrompt = "return err\n\treturn err\n\treturn err\n\treturn"
	stagesBody   = `"prompt":"return err\n\treturn err\n\treturn err\n\treturn","n_predict":24,"seed":5`
	stagesHot    = stagesBody + `,"temperature":0.6,"top_k":0,"top_p":1,"min_p":0`
)

// TestStages expects each field to do what the setting of the library does, and to do something, unless it has the value that changes nothing.
func TestStages(t *testing.T) {
	type params = grove.Sampling
	type penalties = grove.Penalties
	s, m := serveTarget(t, server.Config{}), openSame(t, gopher.Model())
	seed := uint64(5)
	base := grove.Request{Prompt: stagesPrompt, MaxTokens: 24, Seed: &seed}
	base.Sampling = params{Temperature: 0.6}
	base.Penalties.RepeatWindow, base.Penalties.Window = 64, 64
	plain, _ := drawn(t, m, base)
	breakers := func(texts ...string) [][]token.ID {
		all, err := m.Breakers(texts)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	tests := []struct {
		name, fields string
		change       func(s *params, p *penalties) // nil: the fields change nothing
	}{
		{"typical-p", `"typical_p":0.5`, func(s *params, _ *penalties) { s.TypicalP = 0.5 }},
		{"typical-p of at least 3", `"typical_p":0.5,"min_keep":3`, func(s *params, _ *penalties) { s.TypicalP, s.MinKeep = 0.5, 3 }},
		{"top-n-sigma", `"top_n_sigma":1`, func(s *params, _ *penalties) { s.TopNSigma = 1 }},
		{"XTC", `"xtc_probability":0.5`, func(s *params, _ *penalties) { s.XTC = grove.XTC{Probability: 0.5, Threshold: 0.1} }},
		{"XTC by a threshold", `"xtc_probability":1,"xtc_threshold":0.02`, func(s *params, _ *penalties) { s.XTC = grove.XTC{Probability: 1, Threshold: 0.02} }},
		{"a dynamic temperature", `"dynatemp_range":1`, func(s *params, _ *penalties) { s.DynamicTemperature.Range = 1 }},
		{"a dynamic temperature by an exponent", `"dynatemp_range":1,"dynatemp_exponent":0.3`, func(s *params, _ *penalties) {
			s.DynamicTemperature = grove.DynamicTemperature{Range: 1, Exponent: 0.3}
		}},
		{"mirostat 1", `"mirostat":1,"mirostat_tau":0.5`, func(s *params, _ *penalties) { s.Mirostat = grove.Mirostat{Version: 1, Tau: 0.5, Eta: 0.1} }},
		{"mirostat 2", `"mirostat":2,"mirostat_tau":2,"mirostat_eta":0.4`, func(s *params, _ *penalties) { s.Mirostat = grove.Mirostat{Version: 2, Tau: 2, Eta: 0.4} }},
		{"DRY", `"dry_multiplier":5`, func(_ *params, p *penalties) {
			p.DRY = grove.DRY{Multiplier: 5, Base: 1.75, AllowedLength: 2, Window: -1, Breakers: breakers(grove.DefaultBreakers()...)}
		}},
		{"DRY with all its fields", `"dry_multiplier":5,"dry_base":3,"dry_allowed_length":1,"dry_penalty_last_n":20,"dry_sequence_breakers":["fmt","; "]`, func(_ *params, p *penalties) {
			p.DRY = grove.DRY{Multiplier: 5, Base: 3, AllowedLength: 1, Window: 20, Breakers: breakers("fmt", "; ")}
		}},
		{"samplers by names", `"typical_p":0.5,"samplers":["typical_p","temperature"]`, func(s *params, _ *penalties) { s.TypicalP = 0.5 }},
		{"samplers by letters", `"typical_p":0.5,"samplers":"ty"`, func(s *params, _ *penalties) { s.TypicalP, s.Order = 0.5, grove.TemperFirst }},

		{"stages that are off", `"typical_p":1,"top_n_sigma":-1,"xtc_probability":0,"xtc_threshold":0.1,"dynatemp_range":0,"dynatemp_exponent":1,"mirostat":0,"mirostat_tau":5,"mirostat_eta":0.1,"min_keep":0`, nil},
		{"DRY that is off", `"dry_multiplier":0,"dry_base":1.75,"dry_allowed_length":2,"dry_penalty_last_n":-1,"dry_sequence_breakers":["\n",":","\"","*"]`, nil},
		{"DRY of no tokens", `"dry_multiplier":5,"dry_penalty_last_n":0`, nil},
		{"all letters of samplers", `"samplers":"edskypmxt"`, nil},
		{"all names of samplers", `"samplers":["penalties","dry","top_n_sigma","top_k","typ_p","top_p","min_p","xtc","temperature"]`, nil},
		{"the temperature alone", `"samplers":["temperature"]`, nil},
		{"no thinking budget", `"thinking_budget_tokens":-1`, nil},
		{"the exact rule", `"accept":"exact"`, nil},
		{"no search", `"search":""`, nil},
	}
	for _, tt := range tests {
		want := base
		if tt.change != nil {
			tt.change(&want.Sampling, &want.Penalties)
		}
		ids, _ := drawn(t, m, want)
		if d := cmp.Diff(any(ids), s.post(t, "/completion", `{`+stagesHot+`,"return_tokens":true,`+tt.fields+`}`).at("tokens")); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
		if changes := !cmp.Equal(ids, plain); changes != (tt.change != nil) {
			t.Errorf("%s: the text changes: %v, want %v", tt.name, changes, !changes)
		}
		if tt.change == nil {
			continue
		}
		if !strings.Contains(tt.fields, "samplers") { // which say the order
			want.Sampling.Order = grove.TemperFirst
		}
		want.Penalties.RepeatWindow, want.Penalties.Window = -1, 0
		g, err := m.Generate(t.Context(), want)
		if err != nil {
			t.Fatal(err)
		}
		text, err := g.Text()
		if got := s.post(t, "/v1/completions", `{`+stagesHot+`,`+tt.fields+`}`).at("choices/0/text"); err != nil || got != text {
			t.Errorf("%s: /v1/completions answers %v, want %q, %v", tt.name, got, text, err)
		}
	}
}

// TestSamplersLeftOut expects a list of samplers to turn off the defaults of those that it lacks.
func TestSamplersLeftOut(t *testing.T) {
	seed := uint64(5)
	want := grove.Request{Prompt: stagesPrompt, MaxTokens: 24, Seed: &seed, Sampling: grove.Sampling{Temperature: 0.8, TopK: 40}}
	want.Penalties.RepeatWindow, want.Penalties.Window = 64, 64
	ids, _ := drawn(t, openSame(t, served()), want)
	o := serve(t, server.Config{}).post(t, "/completion", `{`+stagesBody+`,"return_tokens":true,"samplers":["top_k","temperature"]}`)
	if d := cmp.Diff(any(ids), o.at("tokens")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestStagesRefused expects the field at fault to be named.
func TestStagesRefused(t *testing.T) {
	s := serve(t, server.Config{})
	long := strings.Repeat("x", 41)
	for _, tt := range []struct{ fields, param, wants string }{
		{`"typical_p":1.5`, "typical_p", "from 0 to 1"},
		{`"top_n_sigma":-2`, "top_n_sigma", "-1 (off)"},
		{`"xtc_probability":2`, "xtc_probability", "from 0 to 1"},
		{`"xtc_threshold":-0.5`, "xtc_threshold", "from 0 to 1"},
		{`"dynatemp_range":-1`, "dynatemp_range", "from 0 to 100"},
		{`"dynatemp_exponent":0`, "dynatemp_exponent", "0.01"},
		{`"mirostat":3`, "mirostat", "from 0 (off) to 2"},
		{`"mirostat_tau":0`, "mirostat_tau", "0.01"},
		{`"mirostat_eta":2`, "mirostat_eta", "from 0 to 1"},
		{`"min_keep":-1`, "min_keep", "0 or more"},
		{`"dry_multiplier":-1`, "dry_multiplier", "-1"},
		{`"dry_base":0.5`, "dry_base", "from 1 to 100"},
		{`"dry_allowed_length":0`, "dry_allowed_length", "from 1 to 65536"},
		{`"dry_penalty_last_n":-2`, "dry_penalty_last_n", "-1 (the context)"},
		{`"dry_multiplier":1,"dry_sequence_breakers":[""]`, "dry_sequence_breakers", "it must have 1 to 40"},
		{`"dry_multiplier":1,"dry_sequence_breakers":["` + long + `"]`, "dry_sequence_breakers[0]", "41 bytes"},
		{`"dry_multiplier":1,"dry_sequence_breakers":[` + strings.Repeat(`"a",`, 16) + `"a"]`, "dry_sequence_breakers", "more than 16 elements"},
		{`"mirostat":2,"typical_p":0.5`, "", "mirostat replaces truncation and cannot go with typical-p"},
		{`"samplers":["top_k","magic"]`, "samplers", `"magic" is not known`},
		{`"samplers":"kz"`, "samplers", `letter "z"`},
		{`"samplers":3`, "samplers", "a list of names"},
		{`"samplers":["temperature","penalties"]`, "samplers", "the order temperature, penalties is not supported"},
		{`"samplers":["top_k","top_k"]`, "samplers", "the order top_k, top_k"},
		{`"samplers":["temperature"],"top_k":5`, "samplers", "top_k is left out"},
		{`"samplers":["top_k"],"dry_multiplier":1`, "samplers", "dry is left out"},
		{`"samplers":["top_k"],"mirostat":1`, "samplers", "mirostat replaces"},
		{`"thinking_budget_tokens":-2`, "thinking_budget_tokens", "-1 (no bound)"},
		{`"thinking_least_tokens":5,"thinking_budget_tokens":4`, "thinking_least_tokens", "it must not be less"},
		{`"thinking_extensions":5`, "thinking_least_tokens", "needs the tokens that they have at least"},
		{`"thinking_budget_tokens":5,"thinking_token_budget":6`, "thinking_token_budget", "another name of the field, is 5"},
		{`"reasoning_budget":5`, "", "the model has no markers of thinking"},
		{`"accept":"magic"`, "accept", "magic"},
		{`"accept":"typical","method":"off"`, "accept", "drafting is off"},
		{`"accept":"reject","method":"sam"`, "", "reject"},
		{`"skip_layers":"from=2"`, "", "to=N is missing"},
		{`"skip_layers":"to=99"`, "", "to=99: it must be 1 to"},
		{`"skip_layers":"to=1,first=0","method":"sam"`, "", "leave the method to auto or off"},
		{`"skip_layers":"to=1,first=0","search":"ffs,n=2"`, "", "beside a method or a search"},
		{`"heal":"well"`, "heal", "must be true, false or"},
		{`"heal":1`, "heal", "is not a value of this field"},
		{`"search":"magic"`, "search", `"magic" is not known`},
		{`"search":"ffs,m=2"`, "search", `option "m" is not known`},
		{`"search":"ffs,n=1"`, "search", "from 2 to 64"},
		{`"search":"ffs,n=3"`, "", "n is 3; it must be from 2 to 2, the slots of the model"},
		{`"search":"ffs,n=2","temperature":0`, "", "the temperature is 0"},
	} {
		for _, path := range []string{"/completion", "/v1/completions"} {
			for _, stream := range []string{"", `"stream":true,`} {
				status, text, _ := s.do(t, "POST", path, `{`+stream+`"prompt":"a",`+tt.fields+`}`)
				message, _, param, _ := wantError(t, text)
				if status != 400 || param != tt.param || !strings.Contains(message, tt.wants) || len(message) > 500 {
					t.Errorf("%s %s: %d %s (param %q), want %q, param %q", path, tt.fields, status, message, param, tt.wants, tt.param)
				}
			}
		}
	}
	status, text, _ := s.do(t, "POST", "/v1/completions", `{"prompt":"a","max_tokens":0,"search":"ffs,n=2"}`)
	if _, _, param, _ := wantError(t, text); status != 400 || param != "search" {
		t.Errorf("%d %s", status, text)
	}
}

// TestSearchField expects answers of the library's search, also where its slots are taken, and the list of its samples.
func TestSearchField(t *testing.T) {
	s, m := serve(t, server.Config{}), openSame(t, served())
	seed := uint64(7)
	r := grove.Request{Prompt: "func", MaxTokens: 60, Seed: &seed, Sampling: grove.Sampling{Temperature: 1, TopP: 1, Order: grove.TemperFirst}, Stop: []string{"\n"}, Search: "ffs,n=2"}
	r.Penalties.RepeatWindow = -1
	var texts, attempts []any
	tokens := 0
	for i := range 2 {
		r.SampleIndex = i
		g, err := m.Generate(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := g.Text()
		if err != nil {
			t.Fatal(err)
		}
		texts, tokens = append(texts, text), tokens+g.Stats().Tokens
		for _, a := range g.Stats().Attempts {
			attempts = append(attempts, map[string]any{"index": float64(a.Index), "tokens": float64(a.Tokens), "ended": a.Ended})
		}
	}
	if len(attempts) != 4 || object(attempts[3].(map[string]any))["index"] != 3.0 {
		t.Fatalf("attempts: %v", attempts)
	}
	const fields = `"prompt":"func","max_tokens":60,"seed":7,"stop":"\n","search":"ffs,n=2"`
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			if i%2 == 1 {
				s.post(t, "/completion", `{"prompt":"package","n_predict":30,"temperature":0}`)
			}
			o := s.post(t, "/v1/completions", `{`+fields+`,"n":2}`)
			got := []any{o.at("choices/0/text"), o.at("choices/1/text")}
			if d := cmp.Diff(texts, got) + cmp.Diff(any(attempts), o.at("timings/search")); d != "" || o.at("timings/grade") != "lossy" || o.at("usage/completion_tokens") != float64(tokens) {
				t.Errorf("grade %v, %v tokens, want %d (-want +got):\n%s", o.at("timings/grade"), o.at("usage/completion_tokens"), tokens, d)
			}
		})
	}
	all.Wait()
	events := s.events(t, "/v1/completions", `{`+fields+`,"stream":true,"stream_options":{"include_usage":true}}`)
	text := ""
	for _, e := range events[:len(events)-1] {
		text += e.at("choices/0/text").(string)
	}
	if last := events[len(events)-1]; text != texts[0] || cmp.Diff(any(attempts[:2]), last.at("timings/search")) != "" {
		t.Errorf("a stream: %q, want %q; %v", text, texts[0], last)
	}
	native := s.post(t, "/completion", `{"prompt":"func","n_predict":60,"seed":7,"stop":["\n"],"search":"ffs,n=2"}`)
	if list, _ := native.at("timings/search").([]any); len(list) != 2 || native.at("generation_settings/search") != "ffs,n=2" {
		t.Errorf("/completion: %v", native)
	}
	slow := serve(t, server.Config{Config: serving.Config{KeepAlive: time.Millisecond}})
	if _, text, _ := slow.do(t, "POST", "/v1/completions", `{`+fields+`,"stream":true}`); !strings.HasPrefix(text, ": ") {
		t.Errorf("no comment before the answer is chosen: %q", text)
	}
	chat := serveModels(t, server.Config{}, source(modelName, edited(t, served(), template), options))
	o := chat.post(t, "/v1/responses", `{"input":"a","max_output_tokens":5,"search":"ffs,n=2"}`)
	if list, _ := o.at("search").([]any); len(list) != 2 || o.at("grade") != "lossy" {
		t.Errorf("/v1/responses: %v", o)
	}
}

// TestAcceptField expects a lossy rule to be labelled, and no label without one.
func TestAcceptField(t *testing.T) {
	s := serve(t, server.Config{})
	for accept, grade := range map[string]any{"": nil, "exact": nil, "typical": "lossy"} {
		o := s.post(t, "/v1/completions", fmt.Sprintf(`{"prompt":"func main() {","max_tokens":5,"seed":1,"accept":%q}`, accept))
		if o.at("timings/grade") != grade {
			t.Errorf("accept %q: grade %v, want %v", accept, o.at("timings/grade"), grade)
		}
	}
}

// TestSkipLayersField expects an answer whose tokens skip layers to be another one, and labelled.
func TestSkipLayersField(t *testing.T) {
	s := serveTarget(t, server.Config{})
	texts := map[string]any{}
	for _, skips := range []string{"", "to=1,first=0,over=2"} {
		o := s.post(t, "/v1/completions", fmt.Sprintf(`{"prompt":"func main() {","max_tokens":16,"temperature":0,"skip_layers":%q}`, skips))
		if texts[skips] = o.at("choices/0/text"); (o.at("timings/grade") == "lossy") != (skips != "") {
			t.Errorf("skip_layers %q: grade %v", skips, o.at("timings/grade"))
		}
	}
	if len(texts) != 2 || texts[""] == texts["to=1,first=0,over=2"] {
		t.Errorf("skipping layers changes nothing: %q", texts)
	}
}

// TestReasoning expects the tokens between the markers to be bounded and counted.
func TestReasoning(t *testing.T) {
	const think, thought = 300, 301
	file := served()
	f, err := gguf.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	tokens, _, err := f.Strings("tokenizer.ggml.tokens")
	if err != nil {
		t.Fatal(err)
	}
	types, _, err := f.Ints("tokenizer.ggml.token_type")
	if err != nil {
		t.Fatal(err)
	}
	kinds := make([]int32, len(types))
	for i, k := range types {
		kinds[i] = int32(k)
	}
	tokens[think], tokens[thought], kinds[think], kinds[thought] = "<think>", "</think>", 3, 3
	s := serveModels(t, server.Config{}, source(modelName, edited(t, file, template,
		gguf.KV{Key: "tokenizer.ggml.tokens", Value: gguf.ArrayOf(tokens)}, gguf.KV{Key: "tokenizer.ggml.token_type", Value: gguf.ArrayOf(kinds)}), options))
	// The model never ends its thoughts by itself.
	const fields = `,"max_tokens":20,"temperature":0,"logit_bias":[[301,false]]`
	for _, tt := range []struct {
		path, body string
		at         string
		want       float64
	}{
		{"/v1/completions", `{"prompt":"a<think>b"` + fields + `}`, "usage/completion_tokens_details/reasoning_tokens", 20},
		{"/v1/completions", `{"prompt":"a","max_tokens":3}`, "usage/completion_tokens_details/reasoning_tokens", 0},
		{"/v1/completions", `{"prompt":"a<think>b","max_tokens":20,"temperature":0,"thinking_token_budget":4}`, "usage/completion_tokens_details/reasoning_tokens", 4},
		{"/v1/completions", `{"prompt":"a<think>b","max_tokens":20,"temperature":0,"reasoning_budget":0}`, "usage/completion_tokens_details/reasoning_tokens", 0},
		{"/v1/completions", `{"prompt":"a<think>b","max_tokens":20,"temperature":0,"reasoning_budget":2,"reasoning_budget_message":"so","timings_per_token":false}`, "timings/thinking_forced", 1},
		{"/v1/completions", `{"prompt":"a<think>b","max_tokens":8,"temperature":0,"thinking_least_tokens":200,"thinking_wait":"x","thinking_extensions":1,"logit_bias":{"301":100}}`, "timings/thinking_extensions", 1},
		{"/v1/chat/completions", `{` + hello + `,"max_tokens":20,"temperature":0,"thinking_budget_tokens":5,"logit_bias":{"300":100},"frequency_penalty":2}`, "usage/completion_tokens_details/reasoning_tokens", 5},
		{"/v1/responses", `{"input":"a","max_output_tokens":20,"temperature":0,"reasoning_budget_tokens":5,"logit_bias":{"300":100},"frequency_penalty":2}`, "usage/output_tokens_details/reasoning_tokens", 5},
	} {
		o := s.post(t, tt.path, tt.body)
		if got := o.at(tt.at); got != tt.want {
			t.Errorf("%s %s: %v tokens of thoughts, want %v", tt.path, tt.body, got, tt.want)
		}
	}
}
