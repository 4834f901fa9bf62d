package bench

import (
	"strings"
	"testing"
)

// TestSpecBench: of a question the first turn and the first reference count, in each form that the file has.
func TestSpecBench(t *testing.T) {
	for _, c := range [][2]string{
		{`"reference":["a","b"]`, "a"}, {`"reference":[["c"]]`, "c"}, {`"reference":"d"`, "d"}, {`"reference":[]`, ""}, {`"reference":null`, ""},
	} {
		prompts, err := ReadWorkload(strings.NewReader(`{"question_id":1,"category":"qa","turns":["x","y"],` + c[0] + `}`))
		if err != nil || prompts[0].Prompt != "x" || prompts[0].Output != c[1] {
			t.Errorf("%s: %+v, %v", c[0], prompts, err)
		}
	}
	if a, b := halves("aäb"); a != "aä" || b != "b" {
		t.Errorf("halves of a text: %q, %q", a, b)
	}
}
