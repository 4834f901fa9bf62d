package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"grove/server"
	"grove/server/access"
)

// TestResume loses the connections of streams, and reads the rest of each: not a byte is missing or there twice.
func TestResume(t *testing.T) {
	keys := []access.Key{{Name: "ann", Secret: "a"}, {Name: "bob", Secret: "b"}}
	s := serveModels(t, server.Config{Access: gate(t, access.Config{Keys: keys})}, long(t, 2))
	get := func(key, query string) (int, string) {
		status, text, _ := s.do(t, "GET", "/v1/stream?"+query, "", "X-Api-Key", key)
		return status, text
	}
	for i, tt := range []struct{ path, body, end string }{
		{"/v1/completions", `{"prompt":"a","max_tokens":300,"stream":true,"ignore_eos":true}`, "data: [DONE]\n\n"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"a"}],"max_tokens":300,"stream":true,"ignore_eos":true}`, "data: [DONE]\n\n"},
		{"/v1/responses", `{"input":"a","max_output_tokens":300,"stream":true,"ignore_eos":true}`, "\n\n"},
		{"/v1/messages", `{"messages":[{"role":"user","content":"a"}],"max_tokens":300,"stream":true,"ignore_eos":true}`, "\n\n"},
		{"/api/generate", `{"prompt":"a","options":{"num_predict":300}}`, "}\n"},
	} {
		name := fmt.Sprintf("talk-%d", i)
		ctx, lose := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, "POST", s.url+tt.path, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Api-Key", "a")
		r.Header.Set("X-Conversation-Id", name)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		begin := make([]byte, 700)
		if _, err := io.ReadFull(answer.Body, begin); err != nil || answer.StatusCode != 200 {
			t.Fatalf("%s: %d %s %v", tt.path, answer.StatusCode, begin, err)
		}
		lose()
		answer.Body.Close()
		status, rest := get("a", fmt.Sprintf("conv_id=%s&from=%d", name, len(begin)))
		if status != 200 || !strings.HasSuffix(rest, tt.end) {
			t.Errorf("%s: %d, the rest is %q", tt.path, status, rest)
		}
		status, whole := get("a", "conv_id="+name)
		if status != 200 || whole != string(begin)+rest {
			t.Errorf("%s: %d, from the beginning it is %q, in two parts %q and %q", tt.path, status, whole, begin, rest)
		}
		if status, text := get("b", "conv_id="+name); status != 404 || !strings.Contains(text, "stream_not_found") {
			t.Errorf("another key gets %d %s", status, text)
		}
		if status, text := get("a", fmt.Sprintf("conv_id=%s&from=%d", name, len(whole)+1)); status != 400 || !strings.Contains(text, "the stream has") {
			t.Errorf("%d %s", status, text)
		}
	}
	for _, query := range []string{"", "conv_id=", "conv_id=talk-0&from=-1", "conv_id=talk-0&from=a"} {
		if status, text := get("a", query); status != 400 {
			t.Errorf("%q: %d %s", query, status, text)
		}
	}
	status, text, _ := s.do(t, "POST", "/v1/streams/lookup", `{"conversation_ids":["talk-1","talk-9","talk-2"]}`, "X-Api-Key", "a")
	if all := parse(t, `{"all":`+text+`}`); status != 200 || all.at("all/0/conversation_id") != "talk-1" || all.at("all/0/is_done") != true || all.at("all/1/conversation_id") != "talk-2" || all.at("all/2") != nil {
		t.Errorf("%d %s", status, text)
	}
	if status, text, _ := s.do(t, "POST", "/v1/completions", `{"prompt":5,"stream":true}`, "X-Api-Key", "a", "X-Conversation-Id", "bad"); status != 400 {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := get("a", "conv_id=bad"); status != 404 {
		t.Errorf("a request that failed is kept: %d", status)
	}
}

// TestResumeStop: a stream whose client has left goes on until it is stopped by its name, or another one takes that.
func TestResumeStop(t *testing.T) {
	s := serveModels(t, server.Config{}, long(t, 2))
	begin := func(name string) {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		r, err := http.NewRequestWithContext(ctx, "POST", s.url+"/v1/completions", strings.NewReader(endless))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Conversation-Id", name)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(answer.Body, make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		leave()
		answer.Body.Close()
	}
	begin("a")
	begin("b")
	if n := s.busy(t); n != 2 {
		t.Errorf("%d streams go on, want 2", n)
	}
	begin("a")
	eventually(t, "the stream whose name is taken goes on", func() bool { return s.busy(t) == 2 })
	for _, name := range []string{"a", "b", "b"} {
		if status, text, _ := s.do(t, "DELETE", "/v1/stream?conv_id="+name, ""); status != 204 {
			t.Errorf("%d %s", status, text)
		}
	}
	eventually(t, "a stream that was stopped goes on", func() bool { return s.busy(t) == 0 })
	if status, _, _ := s.do(t, "GET", "/v1/stream?conv_id=a", ""); status != 404 {
		t.Errorf("a stream that was stopped: %d", status)
	}
	if status, text, _ := s.do(t, "POST", "/completion", `{"prompt":"a","stream":true}`, "X-Conversation-Id", strings.Repeat("a", 257)); status != 400 || !strings.Contains(text, "X-Conversation-Id has 257 bytes") {
		t.Errorf("%d %s", status, text)
	}
}
