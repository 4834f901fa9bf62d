package server_test

import (
	"fmt"
	"strings"
	"testing"

	"grove"
	"grove/server"
)

// TestHealField expects the end of a prompt to be healed as the library does it, for each of several answers, and a prompt of tokens to be refused.
func TestHealField(t *testing.T) {
	s, m := serve(t, server.Config{}), openSame(t, served())
	const prompt = "package main\n\nfunc ma"
	for field, r := range map[string]grove.Request{`false`: {}, `true`: {Heal: true}, `"exact"`: {HealExact: true}} {
		seed := uint64(7)
		got := s.post(t, "/v1/completions", fmt.Sprintf(`{"prompt":%q,"max_tokens":8,"seed":7,"n":2,"temperature":1,"top_p":1,"top_k":-1,"min_p":0,"repeat_penalty":1,"heal":%s}`, prompt, field))
		for i := range 2 {
			r.Prompt, r.MaxTokens, r.Seed, r.SampleIndex, r.Sampling = prompt, 8, &seed, i, grove.Sampling{Temperature: 1, TopP: 1, Order: grove.TemperFirst}
			g, err := m.Generate(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if want, err := g.Text(); err != nil || got.at(fmt.Sprintf("choices/%d/text", i)) != want {
				t.Errorf("heal %s, answer %d: %v, want %q (%v)", field, i, got.at(fmt.Sprintf("choices/%d/text", i)), want, err)
			}
		}
	}
	status, text, _ := s.do(t, "POST", "/v1/completions", `{"prompt":[5,6],"heal":"exact"}`)
	if message, _, _, _ := wantError(t, text); status != 400 || !strings.Contains(message, "the prompt is tokens") {
		t.Errorf("%d %s", status, message)
	}
}
