package wire

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOver: absent fields are those of the other, and no two names of one field come together.
func TestOver(t *testing.T) {
	read := func(body string) (f Sampling) {
		t.Helper()
		if err := Decode([]byte(body), &f); err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, tt := range []struct{ of, others, want string }{
		{`{}`, `{"temperature":0.5,"stop":["a"],"mirostat":2,"seed":3}`, `{"temperature":0.5,"stop":["a"],"mirostat":2,"seed":3}`},
		{`{"temperature":0,"stop":[],"top_k":0}`, `{"temperature":0.5,"stop":["a"],"top_k":7,"min_p":0.1}`, `{"temperature":0,"stop":[],"top_k":0,"min_p":0.1}`},
		{`{"repetition_penalty":1.1}`, `{"repeat_penalty":1.5}`, `{"repetition_penalty":1.1}`},
		{`{"thinking_token_budget":5}`, `{"reasoning_budget":9,"typical_p":0.5}`, `{"thinking_token_budget":5,"typical_p":0.5}`},
	} {
		others := read(tt.others)
		if d := cmp.Diff(read(tt.want), read(tt.of).Over(others), cmp.AllowUnexported(seed{}, bias{})); d != "" {
			t.Errorf("%s over %s:\n%s", tt.of, tt.others, d)
		}
		if d := cmp.Diff(read(tt.others), others, cmp.AllowUnexported(seed{}, bias{})); d != "" {
			t.Errorf("%s over %s changes the others:\n%s", tt.of, tt.others, d)
		}
	}
}
