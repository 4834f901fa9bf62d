package schema

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"grove/constrain/earley"
	"grove/constrain/vocab"
	"grove/internal/suite/schematest"
	"grove/internal/text/token"
)

// bytesOnly returns the vocabulary of all bytes.
func bytesOnly(t testing.TB) *vocab.Vocabulary {
	t.Helper()
	tokens := make([]vocab.Token, 256)
	for i := range tokens {
		tokens[i] = vocab.Token{ID: token.ID(i), Bytes: []byte{byte(i)}, Kind: vocab.Ordinary}
	}
	v, err := vocab.New(tokens, len(tokens))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// push reads a text with the engine: how many bytes are legal, and whether it may end there.
func push(e *earley.Engine, text string) (n int, ends bool, err error) {
	s, err := e.Start()
	if err != nil {
		return 0, false, err
	}
	s, n, err = e.Push(s, []byte(text))
	if errors.Is(err, earley.ErrIllegal) {
		return n, false, nil
	}
	return n, err == nil && e.Ends(s), err
}

// TestMaskBench reads the instances of the sample of MaskBench: no invalid one is accepted, and no valid one is refused where the
// schema was compiled. Order is free, as it is in the instances.
func TestMaskBench(t *testing.T) {
	all := schematest.ReadSuites(t, schematest.Shared(t, "../..", "data/maskbench_sample.jsonl.gz"))
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
		e, err := earley.New(src, bytesOnly(t), earley.Limits{})
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		for _, x := range s.Tests {
			text := schematest.Spaced(t, x.Data)
			start := time.Now()
			n, ends, err := push(e, text)
			if took := time.Since(start); took > time.Second {
				t.Logf("%s: read %v", s.Name, took)
			}
			if accepted := n == len(text) && ends; accepted != x.Valid || err != nil {
				t.Errorf("%s: valid %v, accepted %v: at %d of %.300q ... %.60q; %v", s.Name, x.Valid, accepted, n, text, text[min(n, len(text)):], err)
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
