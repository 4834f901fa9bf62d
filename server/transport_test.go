package server_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"grove/internal/gopher"
	"grove/server"
	"grove/server/batches"
	"grove/server/serving"
)

// zipped returns texts compressed by gzip, each as a member of its own.
func zipped(t testing.TB, texts ...string) string {
	t.Helper()
	var b bytes.Buffer
	for _, text := range texts {
		w := gzip.NewWriter(&b)
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// TestEncodings sends bodies that are compressed: by gzip they are read; other forms, and headers that are not true, are refused by name.
func TestEncodings(t *testing.T) {
	s := serve(t, server.Config{Body: 1 << 20})
	const body = `{"prompt":"a","max_tokens":1}`
	packed := zipped(t, body)
	broken := []byte(packed)
	broken[len(broken)-6] ^= 1 // of the checksum
	var deflated bytes.Buffer
	w := zlib.NewWriter(&deflated)
	if _, err := io.WriteString(w, body); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, encoding, body string
		status               int
		wants                string
	}{
		{"gzip", "gzip", packed, 200, ""},
		{"its other name", "X-GZIP", packed, 200, ""},
		{"members", "gzip", zipped(t, body[:5], "", body[5:]), 200, ""},
		{"nothing", "identity", body, 200, ""},
		{"zstd", "zstd", "\x28\xb5\x2f\xfd", 415, `Content-Encoding is "zstd"`},
		{"zstd over plain JSON", "zstd", body, 415, `Content-Encoding is "zstd"`},
		{"br", "br", body, 415, `"br"`},
		{"deflate", "deflate", deflated.String(), 415, `"deflate"`},
		{"a list", "gzip, gzip", zipped(t, packed), 415, `"gzip, gzip"`},
		{"a list with identity", "identity, gzip", packed, 415, `"identity, gzip"`},
		{"gzip that is none", "gzip", body, 400, "is not that of gzip"},
		{"a damaged one", "gzip", string(broken), 400, "is damaged"},
		{"a damaged block", "gzip", packed[:12] + "\xff\xff" + packed[14:], 400, "is damaged"},
		{"a cut one", "gzip", packed[:len(packed)-9], 400, "cut off"},
		{"a cut header", "gzip", packed[:5], 400, "cut off"},
		{"something behind it", "gzip", packed + "something else", 400, "is damaged"},
		{"without the header", "", packed, 400, "compressed by gzip, and the header Content-Encoding does not say so"},
		{"zstd without the header", "", "\x28\xb5\x2f\xfd\x04", 400, "compressed by zstd, and the header Content-Encoding does not say so"},
		{"gzip inside gzip", "gzip", zipped(t, packed), 400, "compressed by gzip"},
		{"a bomb", "gzip", zipped(t, `{"prompt":"`+strings.Repeat("a", 4<<20)+`"}`), 413, "more than 1048576 bytes"},
		{"a large packed body", "gzip", zipped(t, slices.Repeat([]string{""}, 60_000)...), 400, "is damaged"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, path := range []string{"/v1/completions", "/completion"} {
				headers := []string{"Content-Type", "application/json"}
				if tt.encoding != "" {
					headers = append(headers, "Content-Encoding", tt.encoding)
				}
				status, text, header := s.do(t, "POST", path, tt.body, headers...)
				if status != tt.status || (header.Get("Accept-Encoding") == "gzip") != (status == 415) {
					t.Fatalf("%s: %d %v %s", path, status, header, text)
				}
				if status != 200 {
					if message, _, _, _ := wantError(t, text); !strings.Contains(message, tt.wants) {
						t.Errorf("%s: %q", path, message)
					}
				}
			}
		})
	}
	if status, text, _ := s.do(t, "GET", "/v1/models", "", "Content-Encoding", "br"); status != 200 {
		t.Errorf("a request without a body: %d %s", status, text)
	}
	handler := load(t, server.Config{}, source(modelName, gopher.Model(), options))
	bomb, answer := zipped(t, `{"prompt":"`+strings.Repeat("a", 100<<20)+`"}`), &sink{header: http.Header{}}
	r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/completion", strings.NewReader(bomb))
	r.Header.Set("Content-Encoding", "gzip")
	if took := peak(func() { handler.ServeHTTP(answer, r) }); answer.status != 413 || took > most(len(bomb)) {
		t.Errorf("a bomb of 100 MiB: %d, %d MiB of memory", answer.status, took>>20)
	}
}

// TestEncodedFile uploads a file whose form is compressed.
func TestEncodedFile(t *testing.T) {
	files, err := batches.Open(batches.Config{Dir: t.TempDir(), Upload: 1 << 20, Bytes: 1 << 24, Open: 1, Flight: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, server.Config{Batches: files})
	form := func(content string) string {
		return "--x\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f.jsonl\"\r\n\r\n" + content + "\r\n--x--\r\n"
	}
	for content, want := range map[string]int{`{"custom_id":"a"}`: 200, strings.Repeat("a", 2<<20): 413} {
		status, text, _ := s.do(t, "POST", "/v1/files", zipped(t, form(content)), "Content-Type", "multipart/form-data; boundary=x", "Content-Encoding", "gzip")
		if status != want || status == 200 && parse(t, text).at("bytes") != float64(len(content)) {
			t.Errorf("%d bytes: %d %s", len(content), status, text)
		}
	}
	if status, text, _ := s.do(t, "POST", "/v1/files", form("a"), "Content-Type", "multipart/form-data; boundary=x", "Content-Encoding", "br"); status != 415 {
		t.Errorf("br: %d %s", status, text)
	}
}

// TestBaseAddress: the error for a base address says once how clients use it.
func TestBaseAddress(t *testing.T) {
	s := serve(t, server.Config{})
	for path, want := range map[string]string{
		"/v1":           "there is no /v1; clients add the name of a route to it. The base address of clients is http://HOST:PORT/v1 for OpenAI's API, http://HOST:PORT for others",
		"/v1/chat/":     "there is no /v1/chat/; clients add the name of a route to it. The base address of clients is http://HOST:PORT/v1 for OpenAI's API, http://HOST:PORT for others",
		"/v1/v1/models": `there is no /v1/v1/models; did you mean "/v1/models"? The base address of clients is http://HOST:PORT/v1 for OpenAI's API, http://HOST:PORT for others`,
		"/v1/file":      `there is no /v1/file; did you mean "/v1/files"?`,
	} {
		status, text, _ := s.do(t, "GET", path, "")
		if message, _, _, code := wantError(t, text); status != 404 || code != "not_found" || message != want {
			t.Errorf("%s: %d %q", path, status, message)
		}
	}
	if _, text, _ := s.do(t, "GET", "/api", ""); !strings.Contains(text, "clients add the name of a route") {
		t.Errorf("/api: %s", text)
	}
}

// TestPathPrefix serves all routes below a prefix.
func TestPathPrefix(t *testing.T) {
	s := serve(t, server.Config{PathPrefix: "/llm"})
	for _, tt := range []struct {
		method, path, body string
		status             int
		wants              string
	}{
		{"GET", "/llm/health", "", 200, "ok"},
		{"GET", "/llm/", "", 200, "<!doctype html>"},
		{"GET", "/llm", "", 200, "<!doctype html>"}, // by way of /llm/
		{"POST", "/llm/v1/completions", `{"prompt":"a","max_tokens":1}`, 200, "choices"},
		{"POST", "/llm/api/generate", `{"prompt":"a","stream":false,"options":{"num_predict":1}}`, 200, "response"},
		{"POST", "/llm/v1/completion", `{}`, 404, `there is no /llm/v1/completion; did you mean \"/llm/v1/completions\" or`},
		{"GET", "/llm/v1", "", 404, "http://HOST:PORT/llm/v1 for OpenAI's API, http://HOST:PORT/llm for others"},
		{"GET", "/llm/v1/completions", "", 405, "/llm/v1/completions takes POST"},
		{"GET", "/health", "", 404, "there is no /health; the routes of this server begin with /llm/"},
		{"GET", "/", "", 404, "begin with /llm/"},
		{"GET", "/llmx/health", "", 404, "begin with /llm/"},
		{"POST", "/llm", `{}`, 404, "begin with /llm/"},
	} {
		status, text, _ := s.do(t, tt.method, tt.path, tt.body)
		if status != tt.status || !strings.Contains(text, tt.wants) {
			t.Errorf("%s %s: %d %.300s", tt.method, tt.path, status, text)
		}
	}
	status, _, header := s.do(t, "OPTIONS", "/llm/v1/completions", "", "Origin", "http://localhost:3000")
	if status != 204 || header.Get("Access-Control-Allow-Methods") == "" {
		t.Errorf("OPTIONS: %d %v", status, header)
	}
}

// TestPing: a stream that waits tells that it goes on, each API in its own form.
func TestPing(t *testing.T) {
	s := serveModels(t, server.Config{Config: serving.Config{KeepAlive: 5 * time.Millisecond}}, long(t, 1))
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	for range 2 {
		r, body := s.begin(t, ctx, endless)
		defer body.Close()
		go func() { _, _ = io.Copy(io.Discard, r) }()
	}
	r, body := s.beginAt(t, ctx, "/v1/messages", `{"stream":true,"max_tokens":1,"messages":[{"role":"user","content":"a"}]}`)
	defer body.Close()
	text := ""
	for !strings.Contains(text, "event: ping\ndata: {\"type\":\"ping\"}\n\n") {
		line, err := r.ReadString('\n')
		if text += line; err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	}
	if !strings.Contains(text, `"type":"message_start"}`) || strings.Contains(text, "\n: ") {
		t.Errorf("the stream begins with %q", text)
	}
}

// TestMixedLengths sends bodies in chunks. Where the header has a length too, the connection ends with the answer, and what follows is no request.
func TestMixedLengths(t *testing.T) {
	_, addr := listening(t, server.Config{}, source(modelName, gopher.Model(), options))
	const body = `{"prompt":"a","n_predict":1}`
	chunks := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	plain := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
	for _, tt := range []struct {
		name, rest string
		answers    int
	}{
		{"chunks alone", "Transfer-Encoding: chunked\r\n\r\n" + chunks, 2},
		{"a length alone", plain, 2},
		{"both", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks, 1},
		{"both, the other way", "Transfer-Encoding: chunked\r\nX-A: b\r\ncontent-length: 5\r\n\r\n" + chunks, 1},
		{"both, with bare line ends", "Transfer-Encoding: chunked\ncontent-length: 5\n\n" + chunks, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(30 * time.Second))
			const begin = "POST /completion HTTP/1.1\r\nHost: localhost\r\n"
			if _, err := io.WriteString(c, begin+tt.rest+begin+plain); err != nil {
				t.Fatal(err)
			}
			from, answers := bufio.NewReader(c), 0
			for answers < tt.answers {
				answer, err := http.ReadResponse(from, nil)
				if err != nil {
					t.Fatalf("%d answers: %v", answers, err)
				}
				if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != 200 {
					t.Fatalf("%d %s %v", answer.StatusCode, text, err)
				}
				if answers++; answer.Close != (tt.answers == 1) {
					t.Errorf("answer %d: the connection ends: %v", answers, answer.Close)
				}
			}
			if tt.answers == 1 {
				if rest, _ := io.ReadAll(from); len(rest) > 0 {
					t.Errorf("the connection goes on: %q", rest)
				}
			}
		})
	}
}

// TestTLS answers over TLS, by HTTP/1.1 and HTTP/2, and bounds connections there too.
func TestTLS(t *testing.T) {
	shown := httptest.NewUnstartedServer(nil)
	shown.StartTLS()
	defer shown.Close()
	_, addr := listening(t, server.Config{TLS: &tls.Config{Certificates: shown.TLS.Certificates, MinVersion: tls.VersionTLS12}}, source(modelName, gopher.Model(), options))
	roots := x509.NewCertPool()
	roots.AddCert(shown.Certificate())
	for _, two := range []bool{false, true} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: two}
		client := http.Client{Transport: transport}
		for range 2 {
			r, err := http.NewRequestWithContext(t.Context(), "POST", "https://"+addr+"/v1/completions", strings.NewReader(`{"prompt":"a","max_tokens":3,"stream":true}`))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if err != nil || answer.StatusCode != 200 || (answer.ProtoMajor == 2) != two || !strings.HasSuffix(string(text), "data: [DONE]\n\n") {
				t.Errorf("HTTP/2 %v: %s %d %q %v", two, answer.Proto, answer.StatusCode, text, err)
			}
		}
		transport.CloseIdleConnections()
	}
	c, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: roots})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(c, "GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if answer, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || answer.StatusCode != 200 || !answer.Close {
		t.Errorf("a body in chunks: %v %v", answer, err)
	}
}
