package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"grove/internal/gopher"
	"grove/server"
)

// sink is a client that reads an answer and keeps its beginning.
type sink struct {
	header http.Header
	status int
	n      int
	text   strings.Builder
}

func (s *sink) Header() http.Header { return s.header }

func (s *sink) WriteHeader(status int) { s.status = status }

func (s *sink) Write(b []byte) (int, error) {
	if s.text.Len() < 1000 {
		s.text.Write(b[:min(len(b), 1000)])
	}
	s.n += len(b)
	return len(b), nil
}

// taken returns the memory that the runtime holds, garbage included.
func taken() int {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return int(s[0].Value.Uint64() - s[1].Value.Uint64())
}

// peak returns the most memory that the process takes while f runs, beside what it takes before.
func peak(f func()) int {
	debug.FreeOSMemory()
	idle, most := taken(), 0
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for tick := time.NewTicker(time.Millisecond); ; {
			most = max(most, taken())
			select {
			case <-tick.C:
			case <-stop:
				tick.Stop()
				return
			}
		}
	}()
	f()
	close(stop)
	<-stopped
	return max(most, taken()) - idle
}

// most is the memory that one request may take.
func most(body int) int { return 64<<20 + 8*body }

// TestMemory: no request takes more than 64 MiB and 8 times its body, whatever it asks for.
func TestMemory(t *testing.T) {
	s := serveModels(t, server.Config{}, source(modelName, edited(t, gopher.Model(), template), options))
	biases := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"%0900d!":1`, i)
		}
		return b.String()[1:]
	}
	many := func(element string, bytes int) string {
		return strings.TrimSuffix(strings.Repeat(element+",", bytes/(len(element)+1)), ",")
	}
	const large = 15 << 20
	for _, tt := range []struct {
		name, path string
		body       func() string // made when it is sent: a body that is kept lets garbage grow
		status     int
		wants      string
	}{
		{"empty prompts", "/v1/completions", func() string { return `{"prompt":[` + many(`""`, 12<<20) + `]}` }, 400, "more than 1024 prompts"},
		{"soak empty texts", "/v1/embeddings", func() string { return `{"input":[` + many(`""`, 12<<20) + `]}` }, 400, "more than 2048 prompts"},
		{"token ids", "/v1/completions", func() string { return `{"prompt":[` + many(`1`, large) + `]}` }, 400, "more than 1048576 token ids"},
		{"lists of ids", "/v1/completions", func() string { return `{"prompt":[` + many(`[]`, large) + `]}` }, 400, "more than 1024 prompts"},
		{"biases of texts", "/completion", func() string { return `{"prompt":"a","n_predict":1,"logit_bias":{` + biases(10_000) + `}}` }, 400, "10000 tokens together"},
		{"biases", "/completion", func() string { return `{"prompt":"a","logit_bias":[` + many(`[5,1]`, large) + `]}` }, 400, "more than 10000 elements"},
		{"likely tokens", "/completion", func() string { return `{"prompt":"a","n":32,"n_probs":1000,"n_predict":250,"ignore_eos":true}` }, 400, "n_probs: the answers have more log-probabilities than the 16 MiB"},
		{"soak likely tokens without a bound", "/completion", func() string { return `{"prompt":"a","n":32,"n_probs":1000,"ignore_eos":true}` }, 400, "n_probs: the answers have more log-probabilities than the 16 MiB"},
		{"likely tokens that are kept", "/completion", func() string { return `{"prompt":"a","n":2,"n_probs":1000,"n_predict":125,"ignore_eos":true}` }, 200, "completion_probabilities"},
		{"long chosen", "/completion", func() string {
			return `{"prompt":"a","n":2,"n_probs":1000,"n_predict":125,"ignore_eos":true,"response_fields":["content","completion_probabilities"]}`
		}, 200, "completion_probabilities"},
		{"prompts with their logprobs", "/v1/completions", func() string {
			return `{"prompt":[` + many(quote("a b c d e f "), 150) + `],"n":100,"max_tokens":1,"echo":true,"logprobs":20}`
		}, 200, "choices"},
		{"long a stored answer", "/v1/responses", func() string {
			return `{"input":"a","top_logprobs":20,"max_output_tokens":240,"ignore_eos":true,"include":["message.output_text.logprobs"]}`
		}, 200, "output_text"},
		{"messages", "/v1/chat/completions", func() string { return `{"messages":[` + many(`{}`, large) + `]}` }, 400, "more than 16384 elements"},
		{"messages that a list may have", "/v1/chat/completions", func() string {
			return `{"messages":[` + strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"`+strings.Repeat("word ", 10)+`"},`, 16_384), ",") + `]}`
		}, 400, "context"},
		{"long many long messages", "/v1/chat/completions", func() string {
			return `{"messages":[` + strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"`+strings.Repeat("word ", 165)+`"},`, 16_384), ",") + `]}`
		}, 400, "context"},
		{"parts", "/v1/chat/completions", func() string {
			return `{"messages":[{"role":"user","content":[` + many(`{"type":"text","text":""}`, large) + `]}]}`
		}, 400, "more than 65536 elements"},
		{"blocks", "/v1/messages", func() string {
			return `{"max_tokens":1,"messages":[{"role":"user","content":[` + many(`{}`, large) + `]}]}`
		}, 400, "more than 16384 elements"},
		{"soak items", "/v1/responses", func() string { return `{"input":[` + many(`{}`, large) + `]}` }, 400, "more than 16384 elements"},
		{"soak calls", "/api/chat", func() string { return `{"messages":[{"role":"assistant","tool_calls":[` + many(`{}`, large) + `]}]}` }, 400, "more than 16384 elements"},
		{"values of a schema", "/v1/chat/completions", func() string {
			return `{` + hello + `,"tools":[{"type":"function","function":{"name":"f","parameters":[` + many(`0`, large) + `]}}]}`
		}, 400, "more than 100000 values"},
		{"as many values as there may be", "/v1/chat/completions", func() string {
			return `{` + hello + `,"tools":[{"type":"function","function":{"name":"f","parameters":{"enum":[` + many(`[]`, 97_000*3) + `]}}}]}`
		}, 400, ""},
		{"as many in variables", "/v1/chat/completions", func() string {
			return `{` + hello + `,"max_tokens":1,"chat_template_kwargs":{"a":[` + many(`{}`, 97_000*3) + `]}}`
		}, 200, ""},
		{"long as many objects", "/v1/chat/completions", func() string {
			return `{` + hello + `,"tools":[{"type":"function","function":{"name":"f","parameters":{"enum":[` + many(`{"a":0}`, 32_000*8) + `]}}}]}`
		}, 400, ""},
		{"soak as many texts", "/v1/chat/completions", func() string {
			return `{` + hello + `,"max_tokens":1,"chat_template_kwargs":{"a":[` + many(`"a"`, 97_000*4) + `]}}`
		}, 200, ""},
		{"variables", "/v1/chat/completions", func() string { return `{` + hello + `,"chat_template_kwargs":{"a":[` + many(`{}`, large) + `]}}` }, 400, "more than 100000 values"},
		{"a prediction", "/v1/completions", func() string {
			return `{"prompt":"a","max_tokens":1,"prediction":{"type":"content","content":"` + strings.Repeat("word ", 3<<20) + `"}}`
		}, 0, ""},
		{"depth", "/v1/completions", func() string { return `{"prompt":` + strings.Repeat("[", large) }, 400, "nested deeper than 64"},
		{"soak depth of a schema", "/v1/chat/completions", func() string { return `{` + hello + `,"tools":[` + strings.Repeat(`{"a":`, large/5) }, 400, "nested deeper than 64"},
		{"one field", "/v1/completions", func() string { return `{` + many(`"a":1`, 6<<20) + `}` }, 400, "a: the field is there twice"},
		{"soak one field that is null", "/v1/completions", func() string { return `{` + many(`"a":null`, 9<<20) + `}` }, 400, "a: the field is there twice"},
		{"fields", "/v1/completions", func() string { return `{` + names(1_000_000) + `}` }, 400, "more than 10000 fields"},
		{"soak fields of metadata", "/v1/completions", func() string { return `{"prompt":"a","metadata":{` + names(1_000_000) + `}}` }, 400, "more than 100000 values"},
		{"an exponent", "/v1/completions", func() string { return `{"prompt":"a","temperature":1e999999999,"seed":1e999999999}` }, 400, "temperature"},
		{"digits", "/v1/completions", func() string { return `{"prompt":"a","seed":` + strings.Repeat("9", 10<<20) + `}` }, 400, "more than 1000 characters"},
		{"soak digits in a schema", "/v1/chat/completions", func() string { return `{` + hello + `,"tools":[` + strings.Repeat("9", 10<<20) + `]}` }, 400, "more than 1000 characters"},
		{"an exponent in a variable", "/v1/chat/completions", func() string {
			return `{` + hello + `,"max_tokens":1,"chat_template_kwargs":{"a":1e999999999,"b":-1e-999999999}}`
		}, 0, ""},
		{"a name of a model", "/v1/completions", func() string { return `{"prompt":"a","model":"` + strings.Repeat("a", large) + `"}` }, 400, "at most 1024"},
		{"a name of a field", "/v1/completions", func() string { return `{"` + strings.Repeat("a", large) + `":1}` }, 400, "prompt is missing"},
		{"names of fields", "/v1/completions", func() string { return `{` + strings.ReplaceAll(names(9000), "null", "1") + `}` }, 400, "more than 1000 unknown fields"},
		{"soak stop strings", "/v1/completions", func() string { return `{"prompt":"a","stop":[` + many(`"a"`, large) + `]}` }, 400, "more than 64 elements"},
		{"pieces of a text", "/tokenize", func() string { return `{"with_pieces":true,"content":"` + strings.Repeat("word ", 1<<20) + `"}` }, 200, "piece"},
		{"long word and its pieces", "/tokenize", func() string { return `{"with_pieces":true,"content":"` + strings.Repeat("a", 2<<20) + `"}` }, 200, "piece"},
		{"soak text of other letters", "/tokenize", func() string { return `{"with_pieces":true,"content":"` + strings.Repeat("x0é", 3<<20) + `"}` }, 200, "piece"},
		{"long text of special tokens", "/tokenize", func() string { return `{"content":"` + strings.Repeat("<s><|im_end|>", 1<<20) + `"}` }, 200, "tokens"},
		{"long list of tokens", "/detokenize", func() string { return `{"tokens":[` + many(`300`, large) + `]}` }, 0, ""},
		{"a long text", "/v1/completions", func() string { return `{"prompt":"` + strings.Repeat("word ", 3<<20) + `"}` }, 400, "tokens or more, which exceeds"},
		{"a long text to embed", "/v1/embeddings", func() string { return `{"input":["` + strings.Repeat("word ", 3<<20) + `"]}` }, 400, "tokens or more, which exceeds"},
		{"a long message", "/v1/chat/completions", func() string {
			return `{"messages":[{"role":"user","content":"` + strings.Repeat("word ", 3<<20) + `"}]}`
		}, 400, "tokens or more, which exceeds"},
		{"long message to count", "/v1/messages/count_tokens", func() string {
			return `{"messages":[{"role":"user","content":"` + strings.Repeat("word ", 3<<20) + `"}]}`
		}, 400, "prompt is too long"},
		{"white space", "/v1/completions", func() string { return `{"prompt":"a","max_tokens":1` + strings.Repeat(" ", large) + `}` }, 200, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for prefix, flag := range map[string]string{"long ": "GROVE_LONG", "soak ": "GROVE_SOAK"} {
				if strings.HasPrefix(tt.name, prefix) && os.Getenv(flag) == "" {
					t.Skip(flag + " is not set: it takes long, or is like another")
				}
			}
			w, body := &sink{header: http.Header{}}, tt.body()
			r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost"+tt.path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			took := peak(func() { s.ServeHTTP(w, r) })
			t.Logf("%d of %d MiB, body %.1f MiB, answer %d bytes", took>>20, most(len(body))>>20, float64(len(body))/(1<<20), w.n)
			if tt.status != 0 && w.status != tt.status || !strings.Contains(w.text.String(), tt.wants) {
				t.Errorf("%d %.500s, want %d with %q", w.status, w.text.String(), tt.status, tt.wants)
			}
			if took > most(len(body)) {
				t.Errorf("%d MiB for a body of %d KiB; at most %d", took>>20, len(body)>>10, most(len(body))>>20)
			}
		})
	}
}

// names returns n fields of an object.
func names(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"n%d":null`, i)
	}
	return b.String()[1:]
}
