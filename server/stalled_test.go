package server_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/server"
	"grove/server/serving"
)

// stall sends a request whose answer it does not read, on a connection with small buffers.
func stall(t *testing.T, addr, path, body string) *bufio.Reader {
	t.Helper()
	c := dial(t, addr)
	if err := c.SetReadBuffer(32 << 10); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body); err != nil {
		t.Fatal(err)
	}
	return bufio.NewReader(c)
}

// readStalled reads an answer at last.
func readStalled(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	answer, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != 200 {
		t.Fatalf("%d %v, %d bytes", answer.StatusCode, err, len(text))
	}
	return string(text)
}

// TestStalledReaders: clients that do not read their answers keep neither slots nor places from one that does, whatever the length of
// the queue, and get all of their text when they read at last.
func TestStalledReaders(t *testing.T) {
	// Each of the answers is longer than what may wait for a client.
	const streamed = `{"prompt":"func main() {","max_tokens":450,"temperature":1,"seed":3,"ignore_eos":true,"stream":true,"logprobs":20}`
	const whole = `{"prompt":"func main() {","max_tokens":160,"temperature":1,"seed":3,"ignore_eos":true,"n":6,"logprobs":20}`
	textOf := func(text string) (all string) {
		if strings.HasPrefix(text, "{") {
			choices := parse(t, text)["choices"].([]any)
			for _, c := range choices {
				all += fmt.Sprint(c)
			}
			return all
		}
		events := split(t, text)
		for _, e := range events[:len(events)-1] {
			all += parse(t, e).at("choices/0/text").(string)
		}
		return all + events[len(events)-1]
	}
	for name, c := range map[string]struct {
		body           string
		queue, stalled int
	}{
		"streams, in a queue":       {streamed, 16, 3},
		"streams, without a queue":  {streamed, grove.NoQueue, 2},
		"whole answers, in a queue": {whole, 16, 3},
	} {
		t.Run(name, func(t *testing.T) {
			s, addr := listening(t, server.Config{}, long(t, c.queue))
			_, text, _ := s.do(t, "POST", "/v1/completions", c.body)
			want := textOf(text)
			if len(text) < 300<<10 {
				t.Fatalf("an answer of %d bytes does not fill a stream's buffers", len(text))
			}
			var all []*bufio.Reader
			for i := range c.stalled {
				all = append(all, stall(t, addr, "/v1/completions", c.body))
				if c.queue == grove.NoQueue {
					eventually(t, "nothing is computed", func() bool { return s.busy(t) == i+1 })
				}
			}
			status := 0
			eventually(t, "a client that reads gets no answer", func() bool {
				status, text, _ = s.do(t, "POST", "/v1/completions", `{"prompt":"a","max_tokens":9}`)
				return status != 429
			})
			if status != 200 {
				t.Errorf("%d %s", status, text)
			}
			if _, text, _ := s.do(t, "GET", "/metrics", ""); !strings.Contains(text, "grove_answers_failed_total 0\n") {
				t.Errorf("a reader that was waited for has failed: %s", text)
			}
			for i, r := range all {
				if got := textOf(readStalled(t, r)); got != want {
					t.Errorf("reader %d: %d bytes of text, want %d", i, len(got), len(want))
				}
			}
			eventually(t, "slots stay taken", func() bool { return s.busy(t) == 0 })
		})
	}
}

// TestStalledLog: a client that takes nothing for the patience of the server is given up, and the log says why.
func TestStalledLog(t *testing.T) {
	var log journal
	s, addr := listening(t, server.Config{WriteTimeout: 500 * time.Millisecond, Config: serving.Config{Log: slog.New(slog.NewJSONHandler(&log, nil))}}, long(t, 2))
	stall(t, addr, "/v1/completions", endless)
	var codes []any
	eventually(t, "the reader is not given up", func() bool {
		for _, line := range log.take(t) {
			if line["code"] != nil {
				codes = append(codes, line["code"])
			}
		}
		return len(codes) > 0
	})
	if diff := cmp.Diff([]any{"client_stalled"}, codes); diff != "" {
		t.Error(diff)
	}
	eventually(t, "a slot stays taken", func() bool { return s.busy(t) == 0 })
}
