package benchmarks

import (
	"strings"
	"testing"

	"grove/bench"
)

// TestChoices compares automatic mode with the best exact method by itself, and with plain decoding where that is faster.
func TestChoices(t *testing.T) {
	figures := []bench.MethodFigures{
		{Method: "sam", Category: "a", SpeedUp: 2}, {Method: "kseq", Category: "a", SpeedUp: 9}, {Method: "sam,recycle", Category: "a", SpeedUp: 9},
		{Method: "auto", Category: "a", SpeedUp: 1.9}, {Method: "sam", Category: "b", SpeedUp: 0.9}, {Method: "auto", Category: "b", SpeedUp: 0.98},
		{Method: "auto", Category: bench.Overall, SpeedUp: 0.5},
	}
	var b strings.Builder
	if err := writeChoices(&b, choices(figures)); err != nil {
		t.Fatal(err)
	}
	want := "auto over plain decoding, at least: 0.980 (b)\nauto over the best method alone, at least: 0.950 (a: sam has 2.00)\n"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	if c := choices(figures[3:4]); len(c) != 0 {
		t.Errorf("auto alone is compared with %v", c)
	}
}
