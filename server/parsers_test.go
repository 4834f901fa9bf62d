package server_test

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"grove/gopher"
	"grove/server"
)

// TestFormsHeld: 40 different large forms, one after the other, leave no more memory than a model may keep for forms.
func TestFormsHeld(t *testing.T) {
	s := serveModels(t, server.Config{}, source(modelName, edited(t, gopher.Model(), template), options))
	heap := func() int {
		runtime.GC()
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	s.post(t, "/v1/completions", `{"prompt":"a","max_tokens":4,"guided_choice":["a","b"]}`) // what is made once
	idle, words := heap(), strings.TrimSuffix(numbered(25_000, `"word%d",`), ",")
	for i := range 40 {
		o := s.post(t, "/v1/completions", fmt.Sprintf(`{"prompt":"a","max_tokens":4,"guided_json":{"enum":[%s,%d]}}`, words, i))
		if text := textOf("/v1/completions", o); !strings.HasPrefix(text, `"`) && text != fmt.Sprint(i) {
			t.Fatalf("form %d: %q", i, text)
		}
	}
	n := heap()
	t.Logf("%d MiB are held, %d before", n>>20, idle>>20)
	if n > idle+(64+16)<<20 {
		t.Errorf("%d MiB are held behind them, %d before", n>>20, idle>>20)
	}
}
