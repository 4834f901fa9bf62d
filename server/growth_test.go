package server_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"sync"
	"testing"

	"grove/server"
)

// short sends one of short requests of all kinds, each with a text of its own. Methods that keep past answers take no part: what they keep grows up to its bound.
func (s *site) short(t testing.TB, i int) {
	salt := ""
	if i%16 == 0 {
		salt = fmt.Sprintf(`,"cache_salt":"%d"`, i)
	}
	prompt := fmt.Sprintf("func f%d() {", i)
	fields := fmt.Sprintf(`"max_tokens":4,"temperature":1,"seed":%d,"method":"sam,recycle"%s`, i, salt)
	conversation := fmt.Sprintf(`"messages":[{"role":"user","content":%q}]`, prompt)
	switch i % 8 {
	case 0:
		s.post(t, "/v1/completions", fmt.Sprintf(`{"prompt":%q,%s,"logprobs":2,"n":2}`, prompt, fields))
	case 1:
		s.events(t, "/v1/completions", fmt.Sprintf(`{"prompt":%q,%s,"stream":true}`, prompt, fields))
	case 2:
		s.post(t, "/v1/chat/completions", fmt.Sprintf(`{%s,%s}`, conversation, fields))
	case 3:
		s.events(t, "/v1/chat/completions", fmt.Sprintf(`{%s,%s,"stream":true,"timings_per_token":true}`, conversation, fields))
	case 4:
		s.post(t, "/completion", fmt.Sprintf(`{"prompt":%q,"n_predict":4,"seed":%d,"method":"sam,recycle"}`, prompt, i))
	case 5:
		s.post(t, "/v1/embeddings", fmt.Sprintf(`{"input":%q}`, prompt))
	case 6:
		if status, _, _ := s.do(t, "POST", "/v1/completions", fmt.Sprintf(`{"prompt":%q,"model":"none-%d"}`, prompt, i)); status != 404 {
			t.Errorf("a model that is not served: %d", status)
		}
	case 7:
		ctx, leave := context.WithCancel(t.Context())
		_, body := s.begin(t, ctx, fmt.Sprintf(`{"prompt":%q,"max_tokens":200,"ignore_eos":true,"stream":true,"method":"sam,recycle"}`, prompt))
		leave()
		body.Close()
	}
}

// TestShortRequests: however many requests are answered, refused or cancelled, memory and goroutines stay as they are
// after the first half of 1000, or the first 1000 of 6,000.
func TestShortRequests(t *testing.T) {
	first, rounds := 250, 2
	if os.Getenv("GROVE_LONG") != "" {
		first, rounds = 1000, 6
	}
	file, err := os.ReadFile("../internal/suite/modeltest/testdata/llama-gqa.gguf")
	if err != nil {
		t.Fatal(err)
	}
	s := serveModels(t, server.Config{}, source(modelName, edited(t, file, template), options))
	heap, goroutines := 0, 0
	for r := range rounds {
		s.round(t, r*first, first)
		var m runtime.MemStats
		for range 2 { // the first collection does not free what sync.Pools hold
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		if r == 0 {
			heap, goroutines = int(m.HeapAlloc), runtime.NumGoroutine()
			continue
		}
		eventually(t, fmt.Sprintf("there were %d goroutines and now there are more", goroutines), func() bool { return runtime.NumGoroutine() <= goroutines+2 })
		if most := heap + 512<<10; int(m.HeapAlloc) > most {
			t.Errorf("%d bytes after %d requests, and %d after %d", heap, first, m.HeapAlloc, (r+1)*first)
		}
	}
}

// round sends n requests from several clients.
func (s *site) round(t *testing.T, from, n int) {
	var clients sync.WaitGroup
	for c := range 4 {
		clients.Go(func() {
			for i := c; i < n && !t.Failed(); i += 4 {
				s.short(t, from+i)
			}
		})
	}
	clients.Wait()
	if t.Failed() {
		t.FailNow()
	}
	eventually(t, "a slot stays taken", func() bool { return s.busy(t) == 0 })
	http.DefaultClient.CloseIdleConnections()
}
