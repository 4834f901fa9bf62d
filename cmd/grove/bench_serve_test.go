package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"

	"grove/internal/suite/scripts"
)

// openAI is a server that answers "hello world" in three tokens, for which one of two draft tokens was accepted. It refuses
// every key but "k" and none. Each request waits for a value from permits, unless that is nil.
func openAI(permits <-chan struct{}) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"data":[{"id":"tiny"}]}`)
	})
	var n atomic.Int64
	answer := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case r.Header.Get("Authorization") != "" && r.Header.Get("Authorization") != "Bearer k":
			http.Error(w, `{"error":{"message":"wrong key"}}`, http.StatusUnauthorized)
			return
		case strings.Contains(string(body), "fail") && n.Add(1)%2 == 0:
			http.Error(w, "the queue is full", http.StatusTooManyRequests)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		if permits != nil {
			_ = http.NewResponseController(w).Flush()
			select {
			case <-permits:
			case <-r.Context().Done():
				return
			}
		}
		fmt.Fprint(w, `data: {"choices":[{"text":"hello","delta":{"content":"hello"}}]}

data: {"choices":[{"text":" world","delta":{"content":" world"},"finish_reason":"length"}]}

data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":3},"timings":{"draft_n":2,"draft_n_accepted":1}}

data: [DONE]

`)
	}
	mux.HandleFunc("POST /v1/completions", answer)
	mux.HandleFunc("POST /v1/chat/completions", answer)
	return mux
}

// startOpenAI starts such a server, and sets SERVER to its URL.
func startOpenAI(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: openai")
	}
	s := httptest.NewServer(openAI(nil))
	ts.Defer(s.Close)
	scripts.Setenv(ts, "SERVER", s.URL)
}
