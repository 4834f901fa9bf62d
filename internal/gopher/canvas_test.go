package gopher_test

import (
	"testing"

	"grove"
	"grove/internal/gopher"
)

// canvas returns what gopher-diffusion writes behind a prompt, and the passes that it takes.
func canvas(t *testing.T, m *grove.Model, prompt string, d grove.Diffusion) (text string, passes int) {
	t.Helper()
	d.Block = 32
	g, err := m.Generate(t.Context(), grove.Request{Prompt: prompt, MaxTokens: 64, Diffusion: &d})
	if err != nil {
		t.Fatal(err)
	}
	if text, err = g.Text(); err != nil {
		t.Fatal(err)
	}
	return text, g.Stats().Passes
}

// TestCanvas: gopher-diffusion writes Go, in fewer passes than tokens by the policies that fix several places, and FreeDave changes nothing.
func TestCanvas(t *testing.T) {
	m, err := grove.Open(gopher.DiffusionName, grove.Options{Parallel: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	const prompt = "func (s *Server) Close() error {\n"
	want, passes := canvas(t, m, prompt, grove.Diffusion{Policy: "static"})
	if passes != 64 {
		t.Errorf("static: %d passes for 64 tokens", passes)
	}
	for policy, most := range map[string]int{"threshold:p=0.5": 48, "learned": 63} {
		if _, passes := canvas(t, m, prompt, grove.Diffusion{Policy: policy}); passes > most {
			t.Errorf("%s: %d passes for 64 tokens, want at most %d", policy, passes, most)
		}
	}
	if got, _ := canvas(t, m, prompt, grove.Diffusion{Policy: "static", Drafts: 4}); got != want {
		t.Errorf("with drafts\n%s\nwant\n%s", got, want)
	}
	checkParses(t, prompt, want)
}
