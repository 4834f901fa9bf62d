package server_test

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"grove/internal/weights/gguf"
	"grove/server"
)

// TestFormsHeld: 40 different large forms, one after the other, leave no more memory than a model may keep for forms.
func TestFormsHeld(t *testing.T) {
	s := serveModels(t, server.Config{}, source(modelName, edited(t, served(), template), options))
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

// TestNothingToDraw: a form that no token goes on with fails the request, and its error says at which byte, and what was expected there.
func TestNothingToDraw(t *testing.T) {
	file := edited(t, served(), template)
	f, err := gguf.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	tokens, _, err := f.Strings("tokenizer.ggml.tokens")
	if err != nil {
		t.Fatal(err)
	}
	known, _, err := f.Ints("tokenizer.ggml.token_type")
	if err != nil {
		t.Fatal(err)
	}
	types := make([]int32, len(tokens))
	for i, text := range tokens {
		if types[i] = int32(known[i]); text == "\u0100" || text == "\u0101" { // the bytes 0 and 1, as such vocabularies write them
			types[i] = 5 // unused
		}
	}
	s := serveModels(t, server.Config{}, source(modelName, edited(t, file, gguf.KV{Key: "tokenizer.ggml.token_type", Value: gguf.ArrayOf(types)}), options))
	for _, c := range []struct{ fields, code, want string }{
		{`"guided_regex":"ab\\x01c"`, "constraint_failed", "byte 2: no token of the vocabulary may follow; expected byte 0x1"},
		{`"guided_grammar":"root ::= [0-9]{3} \"\\x00\""`, "constraint_failed", "byte 3: no token of the vocabulary may follow; expected byte 0x0"},
		{`"guided_choice":["yes"],"logit_bias":[["y",false],["ye",false],["yes",false]]`, "", `byte 0: expected "yes"`},
		{`"guided_regex":"[0-9]{2}-","logit_bias":[["-",false]]`, "", `byte 2: expected '-'`},
	} {
		for _, path := range []string{"/v1/completions", "/completion"} {
			status, text, _ := s.do(t, "POST", path, `{"prompt":"a","max_tokens":9,`+c.fields+`}`)
			if message, _, _, code := wantError(t, text); status != 400 || code != c.code || !strings.Contains(message, c.want) {
				t.Errorf("%s %s: %d %s", path, c.fields, status, text)
			}
			_, text, _ = s.do(t, "POST", path, `{"prompt":"a","max_tokens":9,"stream":true,`+c.fields+`}`)
			if !strings.Contains(text, strings.ReplaceAll(strings.ReplaceAll(c.want, `\`, `\\`), `"`, `\"`)) || strings.Contains(text, "[DONE]") {
				t.Errorf("%s %s, streamed: %s", path, c.fields, text)
			}
		}
	}
}
