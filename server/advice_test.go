package server_test

import (
	"math"
	"testing"

	"grove"
	"grove/internal/weights/gguf"
	"grove/server"
)

// TestAdvice: fields that a request leaves out are as the model's file recommends, on all routes; fields that it has are its own.
func TestAdvice(t *testing.T) {
	s := serveModels(t, server.Config{}, advising(modelName, served(), options))
	props := func(s *site) object {
		status, text, _ := s.do(t, "GET", "/props", "")
		if status != 200 {
			t.Fatalf("/props: %d %s", status, text)
		}
		return parse(t, text)
	}
	params := func(name string) any { return props(s).at("default_generation_settings/params/" + name) }
	for name, want := range map[string]float64{"temperature": 0.4, "top_k": 0, "top_p": 0.9, "min_p": 0, "repeat_penalty": 1.1, "repeat_last_n": 64} {
		if got := params(name); got != want {
			t.Errorf("/props: %s is %v, want %v", name, got, want)
		}
	}
	m := openSame(t, served())
	seed := uint64(7)
	text := func(sampling grove.Sampling, p grove.Penalties) string {
		g, err := m.Generate(t.Context(), grove.Request{Prompt: "func main()", MaxTokens: 24, Sampling: sampling, Penalties: p, Seed: &seed})
		if err != nil {
			t.Fatal(err)
		}
		text, err := g.Text()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	own := text(m.DefaultSampling(), m.DefaultPenalties())
	usual := text(grove.DefaultSampling(), grove.Penalties{})
	tempered := m.DefaultSampling()
	tempered.Order = grove.TemperFirst
	penalized := m.DefaultPenalties()
	penalized.Repeat, penalized.RepeatWindow = 1.5, -1
	const openAI, native = `{"prompt":"func main()","max_tokens":24,"seed":7`, `{"prompt":"func main()","n_predict":24,"seed":7`
	for _, c := range []struct{ name, route, body, at, want string }{
		{"llama.cpp", "/completion", native + "}", "content", own},
		{"llama.cpp, all fields", "/completion", native + `,"temperature":0.8,"top_k":40,"top_p":0.95,"min_p":0.05,"repeat_penalty":1}`, "content", usual},
		{"OpenAI", "/v1/completions", openAI + "}", "choices/0/text", text(tempered, m.DefaultPenalties())},
		{"OpenAI, greedy", "/v1/completions", openAI + `,"temperature":0,"repetition_penalty":1}`, "choices/0/text", text(grove.Sampling{}, grove.Penalties{})},
		{"OpenAI, a penalty of its own", "/v1/completions", openAI + `,"repetition_penalty":1.5}`, "choices/0/text", text(tempered, penalized)},
		{"ollama", "/api/generate", `{"model":"gopher","prompt":"func main()","raw":true,"stream":false,"options":{"seed":7,"num_predict":24}}`, "response", own},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := s.post(t, c.route, c.body).at(c.at); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	bad := serveModels(t, server.Config{}, advising(modelName, edited(t, served(),
		gguf.KV{Key: "general.sampling.temp", Value: gguf.Of(float32(math.NaN()))}), options))
	if got := props(bad).at("default_generation_settings/params/temperature"); math.Abs(got.(float64)-0.8) > 1e-6 {
		t.Errorf("a temperature of NaN gives %v", got)
	}
}
