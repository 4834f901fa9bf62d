package schema

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMaskBench reads the instances of the sample of MaskBench: no invalid one is accepted, and no valid one is refused where the
// schema was compiled. Order is free, as it is in the instances.
func TestMaskBench(t *testing.T) {
	all := readSuites(t, shared(t, "data/maskbench_sample.jsonl.gz"))
	every := 20
	if os.Getenv("GROVE_LONG") != "" {
		every = 1
	}
	passed, tried := 0, 0
	var times []time.Duration
	reasons := map[string]int{}
	for i, s := range all {
		if only := os.Getenv("GROVE_ONLY"); only != "" && !strings.Contains(s.Name, only) || only == "" && i%every != 0 {
			continue
		}
		tried++
		start := time.Now()
		src, err := Compile(s.Schema, Options{Order: Free})
		took := time.Since(start)
		times = append(times, took)
		if took > 200*time.Millisecond {
			t.Logf("%s: compile %v", s.Name, took)
		}
		if err != nil {
			t.Logf("%s: %v", s.Name, err)
			_, reason, _ := strings.Cut(err.Error(), ": #")
			_, reason, _ = strings.Cut(reason, ": ")
			reasons[reason[:min(len(reason), 40)]]++
			continue
		}
		good := true
		w := newWalker(src)
		for _, x := range s.Tests {
			text := spaced(t, x.Data)
			start := time.Now()
			n, ends := w.read(text)
			if took := time.Since(start); took > time.Second {
				t.Logf("%s: read %v", s.Name, took)
			}
			if accepted := n == len(text) && ends; accepted != x.Valid || w.err != nil {
				t.Errorf("%s: valid %v, accepted %v: at %d of %.300q ... %.60q; %v", s.Name, x.Valid, accepted, n, text, text[min(n, len(text)):], w.err)
				good = false
				break
			}
		}
		if good {
			passed++
		}
	}
	slices.Sort(times)
	if len(times) > 0 {
		t.Logf("%d of %d pass (%.1f %%); compile p50 %v, p90 %v, p99 %v, max %v", passed, tried, 100*float64(passed)/float64(tried),
			times[len(times)/2], times[len(times)*9/10], times[len(times)*99/100], times[len(times)-1])
	}
	t.Log(reasons)
}
