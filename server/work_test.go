package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"grove/internal/gopher"
	"grove/internal/weights/gguf"
	"grove/server"
	"grove/server/serving"
)

// TestBodiesInPart: a body that does not come in time is answered with 408, one that is cut off with 400, one that is too long with 413, and
// the log says why.
func TestBodiesInPart(t *testing.T) {
	var log journal
	_, addr := listening(t, server.Config{WriteTimeout: 300 * time.Millisecond, Body: 1 << 20, Config: serving.Config{Log: slog.New(slog.NewJSONHandler(&log, nil))}}, source(modelName, gopher.Model(), options))
	for _, tt := range []struct {
		name, length, body string
		closes             bool
		status             int
		code, wants        string
	}{
		{"stalls", "100", `{"prompt"`, false, 408, "request_timeout", "did not come in time"},
		{"never begins", "100", "", false, 408, "request_timeout", "did not come in time"},
		{"stalls with a large length", "1000000", strings.Repeat(" ", 100_000), false, 408, "request_timeout", "did not come in time"},
		{"is cut off", "100", `{"prompt"`, true, 400, "", "cut off"},
		{"is too long", "1048577", strings.Repeat(" ", 1<<20+1), false, 413, "body_too_large", "more than 1048576 bytes"},
	} {
		log.take(t)
		c := dial(t, addr)
		_, _ = io.WriteString(c, "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "+tt.length+"\r\n\r\n"+tt.body)
		if tt.closes {
			if err := c.CloseWrite(); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		message, _, _, code := wantError(t, string(text))
		if r.StatusCode != tt.status || code != tt.code || !strings.Contains(message, tt.wants) {
			t.Errorf("%s: %d %s", tt.name, r.StatusCode, text)
		}
		lines := log.take(t)
		if len(lines) != 1 || lines[0]["status"] != float64(tt.status) || !strings.Contains(fmt.Sprint(lines[0]["error"]), tt.wants) {
			t.Errorf("%s: logged %v", tt.name, lines)
		}
	}
}

// TestMemoryLimit: many requests at once take no more memory than the limit leaves to them. An eighth is left for garbage: the limit of Go's runtime is soft, and where other programs
// take the processors, its collector may come some MiB late. Without their quota, the bodies of the long run
// alone have 288 MiB.
func TestMemoryLimit(t *testing.T) {
	requests, size := 8, 1<<20
	if os.Getenv("GROVE_LONG") != "" {
		requests, size = 96, 3<<20
	}
	const limit = 192 << 20
	s := serveModels(t, server.Config{Config: serving.Config{Memory: limit}}, source(modelName, gopher.Model(), options))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(int64(taken() + limit - 16<<20)))
	body := `{"with_pieces":true,"content":` + quote(strings.Repeat("word ", size/5)) + `}`
	statuses := make(chan int, requests)
	took := peak(func() {
		var all sync.WaitGroup
		for range requests {
			all.Go(func() {
				w := &sink{header: http.Header{}}
				r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/tokenize", strings.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				s.ServeHTTP(w, r)
				statuses <- w.status
			})
		}
		all.Wait()
	})
	close(statuses)
	counts := map[int]int{}
	for status := range statuses {
		counts[status]++
	}
	if took > limit+limit/8 || counts[200] == 0 || counts[200]+counts[503] != requests {
		t.Errorf("%d MiB of %d, answers %v", took>>20, limit>>20, counts)
	}
	t.Logf("%d MiB of %d, answers %v", took>>20, limit>>20, counts)
}

// TestBodyTooLargeForMemory: a body that the limit has no memory for is refused by name.
func TestBodyTooLargeForMemory(t *testing.T) {
	s := serveModels(t, server.Config{Config: serving.Config{Memory: 64 << 20}}, source(modelName, gopher.Model(), options))
	status, text, _ := s.do(t, "POST", "/tokenize", `{"content":`+quote(strings.Repeat("word ", 3<<20))+`}`)
	if message, _, _, code := wantError(t, text); status != 413 || code != "memory_limit" || !strings.Contains(message, "bytes of memory are needed") {
		t.Errorf("%d %s", status, text)
	}
	if status, text, _ := s.do(t, "POST", "/tokenize", `{"content":"word"}`); status != 200 {
		t.Errorf("%d %s", status, text)
	}
}

// leaver is a body behind whose end its client leaves.
type leaver struct {
	io.Reader
	leave func()
}

func (l *leaver) Read(b []byte) (int, error) {
	n, err := l.Reader.Read(b)
	if err == io.EOF {
		go l.leave()
	}
	return n, err
}

// TestLeavingWork: the work on the texts of a client that has left ends, and the log says that it has left. The texts take seconds.
func TestLeavingWork(t *testing.T) {
	var log journal
	loops := gguf.KV{Key: "tokenizer.chat_template", Value: gguf.Of("{% for m in messages %}{% for c in m.content %}{{ c }}{% endfor %}{% endfor %}")}
	s := serveModels(t, server.Config{Config: serving.Config{Log: slog.New(slog.NewJSONHandler(&log, nil))}}, source(modelName, edited(t, gopher.Model(), loops), options))
	word := quote(strings.Repeat("a", 8<<20))
	for path, body := range map[string]string{
		"/tokenize":            `{"with_pieces":true,"content":` + word + `}`,
		"/v1/completions":      `{"prompt":` + word + `}`,
		"/completion":          `{"prompt":"a","n_predict":1,"prediction":{"type":"content","content":` + word + `}}`,
		"/v1/embeddings":       `{"input":["a",` + word + `]}`,
		"/apply-template":      `{"messages":[{"role":"user","content":` + word + `}]}`,
		"/v1/chat/completions": `{"messages":[{"role":"user","content":` + word + `}]}`,
	} {
		log.take(t)
		ctx, leave := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, "POST", "http://localhost"+path, &leaver{strings.NewReader(body), leave})
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		leave()
		lines := log.take(t)
		if len(lines) != 1 || lines[0]["code"] != "client_closed" || w.Code == 200 {
			t.Errorf("%s: %d %.200s, logged %v", path, w.Code, w.Body, lines)
		}
	}
}
