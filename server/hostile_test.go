package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"grove/internal/weights/gguf"
	"grove/server"
	"grove/server/serving"
)

// TestHostileTemplates: a template that does not end, grows without bound or reaches for what it may not is the
// error of requests that use it, soon, and the server goes on.
func TestHostileTemplates(t *testing.T) {
	for _, template := range []string{
		`{% for i in range(10**9) %}x{% endfor %}`,
		`{% for i in range(99999) %}{% for j in range(99999) %}{% for k in range(99999) %}{% endfor %}{% endfor %}{% endfor %}`,
		`{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}`,
		`{{ 'x' * 10**9 }}`,
		`{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(64) %}{% set ns.s = ns.s + ns.s %}{% endfor %}{{ ns.s }}`,
		`{% include '/etc/passwd' %}`,
		`{{ ''.__class__.__mro__ }}{{ messages.__init__.__globals__ }}`,
		`{{ raise_exception('not like this') }}`,
		`{% if %}`,
		`{{ ' ' * 999999 }}{{ ' ' * 999999 }}`,
	} {
		file := edited(t, served(), gguf.KV{Key: "tokenizer.chat_template", Value: gguf.Of(template)})
		s := serveModels(t, server.Config{}, source(modelName, file, options))
		start := time.Now()
		status, text, _ := s.do(t, "POST", "/v1/chat/completions", "{"+hello+"}")
		if message, _, param, _ := wantError(t, text); status != 400 || param != "messages" || len(message) > 500 {
			t.Errorf("%s: %d %s", template, status, text)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s: took %v", template, took)
		}
		s.post(t, "/v1/completions", `{"prompt":"a","max_tokens":1}`)
	}
}

// TestManyMessages: conversations of more messages than any context holds are refused before a template sees them.
func TestManyMessages(t *testing.T) {
	s := serveChat(t)
	for n, wants := range map[int]string{16_384: "exceeds the available context size of 256", 16_385: "messages: more than 16384 elements", 400_000: "messages: more than 16384 elements"} {
		body := `{"messages":[` + strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"a"},`, n), ",") + `]}`
		status, text, _ := s.do(t, "POST", "/v1/chat/completions", body)
		if message, _, param, _ := wantError(t, text); status != 400 || param != "messages" || !strings.Contains(message, wants) {
			t.Errorf("%d messages: %d %s", n, status, text)
		}
	}
}

// listening serves on a listener of its own, with small buffers for data that clients do not read.
func listening(t *testing.T, c server.Config, models ...server.Entry) (*site, string) {
	t.Helper()
	s := load(t, c, models...)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, narrow{l}, 0) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return &site{s, "http://" + l.Addr().String()}, l.Addr().String()
}

// narrow is a listener whose connections have small write buffers.
type narrow struct{ net.Listener }

// Accept implements [net.Listener].
func (n narrow) Accept() (net.Conn, error) {
	c, err := n.Listener.Accept()
	if err == nil {
		err = c.(*net.TCPConn).SetWriteBuffer(4 << 10)
	}
	return c, err
}

func dial(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // the server may have closed it
	return c.(*net.TCPConn)
}

// TestSlowClients: a client that sends a request too slowly is cut off, and one that does not read a stream frees its slot.
func TestSlowClients(t *testing.T) {
	s, addr := listening(t, server.Config{WriteTimeout: 300 * time.Millisecond}, long(t, 2))
	for _, begun := range []string{"", "POST /v1/comple", "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"prompt\""} {
		c := dial(t, addr)
		if _, err := io.WriteString(c, begun); err != nil {
			t.Fatal(err)
		}
		if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(c); err != nil {
			t.Errorf("behind %q the connection stays open: %q, %v", begun, text, err)
		}
	}
	c := dial(t, addr)
	if err := c.SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(c, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(endless), endless); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nothing is computed", func() bool { return s.busy(t) == 1 })
	eventually(t, "a client that does not read keeps its place", func() bool { return s.busy(t) == 0 })
	if _, text, _ := s.do(t, "GET", "/metrics", ""); !strings.Contains(text, "grove_answers_failed_total 1\n") {
		t.Errorf("the answer ended before it should have: %s", text)
	}
}

// TestPipelined: requests that come before the answers to those before them are answered in order.
func TestPipelined(t *testing.T) {
	_, addr := listening(t, server.Config{}, source(modelName, served(), options))
	c := dial(t, addr)
	for i := range 5 {
		body := fmt.Sprintf(`{"prompt":"a","max_tokens":%d,"ignore_eos":true}`, i+1)
		if _, err := fmt.Fprintf(c, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
			t.Fatal(err)
		}
	}
	answers := bufio.NewReader(c)
	for i := range 5 {
		r, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || parse(t, string(body)).at("usage/completion_tokens") != float64(i+1) {
			t.Errorf("answer %d: %d %s %v", i, r.StatusCode, body, err)
		}
	}
}

// TestIdleConnections: connections on which nothing comes do not keep others from being answered.
func TestIdleConnections(t *testing.T) {
	s, addr := listening(t, server.Config{}, source(modelName, served(), options))
	for range 1500 {
		dial(t, addr)
	}
	if status, text, _ := s.do(t, "GET", "/health", ""); status != 200 {
		t.Errorf("%d %s", status, text)
	}
}

// TestKeptConnections: connections that stay open behind their answers are closed for new ones, the longest idle first, and one address
// cannot take all with requests either.
func TestKeptConnections(t *testing.T) {
	var log journal
	_, addr := listening(t, server.Config{Connections: 8, Config: serving.Config{KeepAlive: 5 * time.Millisecond, Log: slog.New(slog.NewJSONHandler(&log, nil))}}, long(t, 256))
	const ask = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
	send := func(c net.Conn, text string) (*http.Response, error) {
		if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, text); err != nil {
			return nil, err
		}
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err == nil && r.StatusCode != 200 {
			t.Errorf("status %d", r.StatusCode)
		}
		return r, err
	}
	oldest := func() error { // of 20 connections
		first := dial(t, addr)
		for i := range 20 {
			c := first
			if i > 0 {
				c = dial(t, addr)
			}
			if _, err := send(c, ask); err != nil {
				t.Fatalf("connection %d: %v", i, err)
			}
		}
		_, err := send(first, ask)
		return err
	}
	closed := false
	for range 5 { // a server that is held up notices late that a connection rests
		closed = closed || oldest() != nil
	}
	if !closed {
		t.Error("the oldest of 20 connections is still open")
	}
	for range 6 { // three quarters of 8
		if _, err := send(dial(t, addr), fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(endless), endless)); err != nil {
			t.Fatal(err)
		}
	}
	log.take(t)
	if _, err := send(dial(t, addr), ask); err == nil {
		t.Error("one address has more than three quarters of the connections")
	}
	if lines := log.take(t); len(lines) != 1 || lines[0]["level"] != "WARN" || lines[0]["max"] != 8.0 {
		t.Errorf("logged %v", lines)
	}
	other, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).Dial("tcp", addr)
	if err != nil {
		t.Skipf("there is no second address of loopback: %v", err)
	}
	defer other.Close()
	if _, err := send(other, ask); err != nil {
		t.Errorf("another address: %v", err)
	}
}

// FuzzHeaders sends hostile headers: no request fails for a reason of the server's, and errors are JSON.
func FuzzHeaders(f *testing.F) {
	f.Add("Authorization", "bearer \xff", "text/plain")
	f.Add("X-Request-Id", "a\x00b", "application/json; charset=latin1")
	f.Add("Origin", "null", "")
	f.Add("Content-Length", "-1", "application/json")
	f.Add("Sec-Fetch-Site", "cross-site", "multipart/form-data")
	s := serve(f, server.Config{})
	f.Fuzz(func(t *testing.T, name, value, kind string) {
		for _, path := range []string{"/v1/completions", "/tokenize", "/api/generate"} {
			r := httptest.NewRequest("POST", "http://localhost"+path, strings.NewReader(`{"prompt":"a","content":"b","max_tokens":0,"stream":false,"options":{"num_predict":1}}`))
			r.Header[http.CanonicalHeaderKey(name)] = []string{value}
			r.Header["Content-Type"] = []string{kind}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code >= 500 || w.Code == 0 || !json.Valid(w.Body.Bytes()) {
				t.Errorf("%s, %q: %q, %q: %d %s", path, name, value, kind, w.Code, w.Body)
			}
		}
	})
}
