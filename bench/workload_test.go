package bench

import (
	"bytes"
	"testing"
)

// FuzzWorkload reads hostile files of tasks: those that are taken have a prompt and a bound that makes sense.
func FuzzWorkload(f *testing.F) {
	f.Add([]byte("{\"prompt\":\"a\"}\n\n{\"question_id\":7,\"category\":\"c\",\"turns\":[\"b\",\"c\"]}\n"))
	f.Add([]byte("{\"prompt\":\"a\",\"max_tokens\":-1}"))
	f.Add([]byte("{\"turns\":[]}\r\n\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		prompts, err := ReadWorkload(bytes.NewReader(text))
		if err != nil {
			return
		}
		for _, p := range prompts {
			if p.Prompt == "" || p.ID == "" || p.Category == "" || p.MaxTokens < 0 {
				t.Errorf("%q: %+v", text, p)
			}
		}
	})
}
