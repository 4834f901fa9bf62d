package server_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"

	"strings"
	"testing"
	"time"

	"grove"
	"grove/server"
	"grove/server/serving"
)

// ways are the ways in which a client leaves: it ends its side of the connection, both, or resets the connection.
var ways = []struct {
	name  string
	leave func(*net.TCPConn) error
}{
	{"half", (*net.TCPConn).CloseWrite},
	{"close", (*net.TCPConn).Close},
	{"reset", func(c *net.TCPConn) error {
		if err := c.SetLinger(0); err != nil {
			return err
		}
		return c.Close()
	}},
}

// TestLeaving: a client that leaves is noticed in every state of its request. Its place is free then, nothing is computed for it, and
// the log says that it has left.
func TestLeaving(t *testing.T) {
	const (
		answer = `{"prompt":"func main() {","max_tokens":90000,"ignore_eos":true,"method":"off"}`
		head   = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
	)
	prompt := `{"max_tokens":1,"prompt":"` + strings.Repeat("word ", 18_000) + `"}`
	whole := func(head, body string) string {
		return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body), body)
	}
	for _, tt := range []struct {
		name   string
		others int    // requests that take slots
		send   string // by the client
		state  func(t *testing.T, s *site) bool
		code   string
	}{
		{"body", 0, head + "Content-Length: 100\r\n\r\n{\"prompt\":", nil, ""},
		{"chunks", 0, head + "Transfer-Encoding: chunked\r\n\r\n9\r\n{\"prompt\"\r\n", nil, ""},
		{"no body yet", 0, head + "Content-Length: 100\r\nExpect: 100-continue\r\n\r\n", nil, ""},
		{"opening the model", 0, whole(head, `{"model":"slow","prompt":"a"}`), func(t *testing.T, s *site) bool { return s.status(t, "slow") == "loading" }, "client_closed"},
		{"tokens", 0, whole(strings.Replace(head, "/v1/completions", "/tokenize", 1), `{"content":"`+strings.Repeat("word and ", 500_000)+`","with_pieces":true}`), nil, ""},
		{"queue", 2, whole(head, answer), func(t *testing.T, s *site) bool { return s.count(t, "grove_requests_waiting") == 1 }, "client_closed"},
		{"queue, as a stream", 2, whole(head, endless), func(t *testing.T, s *site) bool { return s.count(t, "grove_requests_waiting") == 1 }, "client_closed"},
		{"queue of embeddings", 2, whole(strings.Replace(head, "completions", "embeddings", 1), `{"input":["a","b"]}`), func(t *testing.T, s *site) bool { return s.count(t, "grove_requests_waiting") == 1 }, "client_closed"},
		{"prompt", 0, whole(head, prompt), one, "client_closed"},
		{"answer", 0, whole(head, answer), one, "client_closed"},
		{"stream", 0, whole(head, endless), one, "client_closed"},
		{"answer with a form", 0, whole(head, `{"prompt":"a","max_tokens":90000,"method":"off","guided_regex":"[a-z]{90000,}"}`), one, "client_closed"},
		{"HTTP/1.0", 0, whole(strings.Replace(head, "1.1", "1.0", 1), answer), one, "client_closed"},
		{"bytes behind the body", 0, whole(head, answer) + "\r\n", one, "client_closed"},
		{"another request behind", 0, whole(head, answer) + whole(head, answer), one, "client_closed"},
		{"many requests behind", 0, whole(head, answer) + strings.Repeat(whole(head, answer), 200), one, "client_closed"},
	} {
		for _, way := range ways {
			t.Run(tt.name+"/"+way.name, func(t *testing.T) {
				var log journal
				opens := make(chan struct{})
				defer close(opens)
				slow := server.Entry{Name: "slow", Open: func(ctx context.Context, _ uint64) (*grove.Model, error) {
					<-opens
					return nil, context.Canceled
				}}
				s, addr := listening(t, server.Config{Config: serving.Config{OnDemand: true, Log: slog.New(slog.NewJSONHandler(&log, nil))}}, long(t, 256), slow)
				s.post(t, "/v1/completions", `{"prompt":"a","max_tokens":1}`) // the first model is open
				for range tt.others {
					_, body := s.begin(t, t.Context(), endless)
					defer body.Close()
				}
				c := dial(t, addr)
				if _, err := io.WriteString(c, tt.send); err != nil {
					t.Fatal(err)
				}
				if tt.state != nil {
					eventually(t, "the request does not come so far", func() bool { return tt.state(t, s) })
				}
				log.take(t)
				if err := way.leave(c); err != nil {
					t.Fatal(err)
				}
				var line map[string]any
				eventually(t, "the client's leaving is not noticed", func() bool {
					for _, l := range log.take(t) {
						if l["msg"] == "request" && l["from"] == c.LocalAddr().String() {
							line = l
							return true
						}
					}
					return false
				})
				begun := tt.name == "stream" || tt.name == "queue, as a stream"
				if code, _ := line["code"].(string); tt.code != "" && code != tt.code || line["error"] == nil || line["status"] == 200.0 && !begun {
					t.Errorf("logged: %v", line)
				}
				if n := s.busy(t) + s.count(t, "grove_requests_waiting"); n != tt.others {
					t.Errorf("%d texts are computed or wait behind %d others", n, tt.others)
				}
				if way.name != "half" || begun {
					return
				}
				if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
					t.Fatal(err)
				}
				if text, err := io.ReadAll(c); err != nil || strings.Contains(string(text), " 200 ") || !strings.Contains(string(text), `"message"`) {
					t.Errorf("answered %q, %v", text, err)
				}
			})
		}
	}
}

// one reports whether a text is computed.
func one(t *testing.T, s *site) bool { return s.busy(t) == 1 }

// count returns the value of a metric without labels.
func (s *site) count(t testing.TB, metric string) (n int) {
	t.Helper()
	_, text, _ := s.do(t, "GET", "/metrics", "")
	_, rest, found := strings.Cut(text, "\n"+metric+" ")
	if _, err := fmt.Sscan(rest, &n); !found || err != nil {
		t.Fatalf("no %s: %v", metric, err)
	}
	return n
}
