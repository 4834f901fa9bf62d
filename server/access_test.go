package server_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"grove/server"
	"grove/server/access"
	"grove/server/serving"
)

// TestStrangers: no route but /health answers a request for another host or of a page of elsewhere, and none says that such a page may
// read its answer.
func TestStrangers(t *testing.T) {
	s := serve(t, server.Config{})
	routes := []string{
		"GET /", "GET /v1/models", "GET /v1/models/gopher", "GET /props", "GET /slots", "GET /metrics", "GET /nothing", "POST /v1/chat/completions", "POST /v1/completions", "POST /v1/responses",
		"POST /v1/embeddings", "POST /v1/messages", "POST /completion", "POST /infill", "POST /tokenize", "POST /detokenize", "POST /apply-template", "POST /embedding", "POST /slots/0", "OPTIONS /v1/completions", "OPTIONS /",
	}
	for _, stranger := range []struct {
		name, host string
		headers    []string
		code       string
	}{
		{"rebound", "evil.example:8080", nil, "host_not_allowed"},
		{"rebound, with its own origin", "evil.example", []string{"Origin", "http://evil.example"}, "host_not_allowed"},
		{"page", "", []string{"Origin", "http://evil.example"}, "origin_not_allowed"},
		{"sandboxed page", "", []string{"Origin", "null"}, "origin_not_allowed"},
		{"image", "", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}, "origin_not_allowed"},
	} {
		for _, route := range routes {
			method, path, _ := strings.Cut(route, " ")
			r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			r.Host = stranger.host
			for i := 0; i < len(stranger.headers); i += 2 {
				r.Header.Set(stranger.headers[i], stranger.headers[i+1])
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if err != nil || answer.StatusCode != http.StatusForbidden || answer.Header.Get("Access-Control-Allow-Origin") != "" || answer.Header.Get("Vary") != "Origin" {
				t.Errorf("%s, %s: %d %v %s %v", stranger.name, route, answer.StatusCode, answer.Header, body, err)
			}
			if !strings.Contains(string(body), "--allow-") && stranger.name != "image" || path != "/v1/messages" && parse(t, string(body)).at("error/code") != stranger.code {
				t.Errorf("%s, %s: %s", stranger.name, route, body)
			}
		}
	}
	if status, _, h := s.do(t, "GET", "/health", "", "Origin", "http://evil.example"); status != 200 || h.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("/health: %d %v", status, h)
	}
	link := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	if status, _, _ := s.do(t, "GET", "/", "", link...); status != 200 {
		t.Errorf("a link to the page: %d", status)
	}
}

// TestOwnPages: the page of the server, and pages of this machine and of allowed origins, may send requests and read the answers.
func TestOwnPages(t *testing.T) {
	s := serve(t, server.Config{Access: gate(t, access.Config{Origins: []string{"https://chat.example"}})})
	for _, origin := range []string{s.url, "http://localhost:3000", "https://chat.example"} {
		status, _, h := s.do(t, http.MethodOptions, "/v1/completions", "", "Origin", origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type,x-stainless-lang")
		if status != 204 || h.Get("Access-Control-Allow-Origin") != origin || h.Get("Access-Control-Allow-Headers") != "*, Authorization" || h.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: %d %v", origin, status, h)
		}
		for _, body := range []string{`{"prompt":"a","max_tokens":1}`, `{"prompt":"a","max_tokens":1,"stream":true}`, `{`} {
			if status, text, h := s.do(t, "POST", "/v1/completions", body, "Origin", origin, "Sec-Fetch-Site", "cross-site", "Content-Type", "application/json"); status >= 403 || h.Get("Access-Control-Allow-Origin") != origin || len(h.Values("Vary")) != 1 {
				t.Errorf("%s: %d %v %s", origin, status, h, text)
			}
		}
	}
}

// TestBodiesOfPages: no route takes a body that a page may send without asking, not even of a page that may call.
func TestBodiesOfPages(t *testing.T) {
	s := serve(t, server.Config{Config: serving.Config{OnDemand: true}})
	for _, path := range []string{
		"/v1/chat/completions", "/chat/completions", "/v1/completions", "/completions", "/v1/responses", "/v1/embeddings", "/v1/messages", "/v1/messages/count_tokens", "/completion", "/infill",
		"/tokenize", "/detokenize", "/apply-template", "/embedding", "/slots/0", "/models/load", "/models/unload", "/api/generate", "/api/chat", "/api/embed", "/api/embeddings", "/api/show", "/api/pull",
		"/api/create", "/api/copy", "/api/push",
	} {
		for _, kind := range []string{"text/plain", "text/plain;charset=UTF-8", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"} {
			status, text, _ := s.do(t, "POST", path, `{"prompt":"a","model":"gopher"}`, "Origin", s.url, "Sec-Fetch-Site", "same-origin", "Content-Type", kind)
			if status != http.StatusUnsupportedMediaType || !strings.Contains(text, "application/json") {
				t.Errorf("%s, %s: %d %s", path, kind, status, text)
			}
		}
	}
	if s.status(t, modelName) != "unloaded" {
		t.Error("a page made the server open a model")
	}
	s.do(t, "POST", "/v1/completions", `{"prompt":"a","max_tokens":1}`)
	for _, kind := range []string{"application/json", "application/x-www-form-urlencoded"} { // of a program
		if status, text, _ := s.do(t, "POST", "/v1/completions", `{"prompt":"a","max_tokens":1}`, "Content-Type", kind); status != 200 {
			t.Errorf("%s: %d %s", kind, status, text)
		}
	}
}

// TestHostileHosts sends requests whose host is given in ways that Go's client does not send.
func TestHostileHosts(t *testing.T) {
	_, addr := listening(t, server.Config{}, source(modelName, served(), options))
	for _, tt := range []struct {
		name, head string
		status     int
	}{
		{"fine", "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n", 200},
		{"a port", "GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1:1\r\n", 200},
		{"a trailing dot", "GET /v1/models HTTP/1.1\r\nHost: localhost.\r\n", 200},
		{"no host", "GET /v1/models HTTP/1.1\r\n", 400},
		{"an empty host", "GET /v1/models HTTP/1.1\r\nHost:\r\n", 403},
		{"HTTP/1.0 without a host", "GET /v1/models HTTP/1.0\r\n", 403},
		{"two hosts", "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n", 400},
		{"an absolute form", "GET http://evil.example/v1/models HTTP/1.1\r\nHost: localhost\r\n", 403},
		{"an absolute form of this machine", "GET http://localhost/v1/models HTTP/1.1\r\nHost: evil.example\r\n", 200},
		{"a user", "GET /v1/models HTTP/1.1\r\nHost: localhost@evil.example\r\n", 400},
		{"a user in an absolute form", "GET http://localhost@evil.example/v1/models HTTP/1.1\r\nHost: localhost\r\n", 403},
		{"letters beyond ASCII", "GET /v1/models HTTP/1.1\r\nHost: löcalhost\r\n", 400},
		{"port 0", "GET /v1/models HTTP/1.1\r\nHost: localhost:0\r\n", 403},
		{"a huge port", "GET /v1/models HTTP/1.1\r\nHost: localhost:99999999999999999999\r\n", 403},
		{"a huge host", "GET /v1/models HTTP/1.1\r\nHost: " + strings.Repeat("a", 1<<15) + "\r\n", 403},
		{"headers without end", "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nOrigin: " + strings.Repeat("a", 1<<20) + "\r\n", 431},
		{"as many lines as may be", "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("a: b\r\n", 256), 200},
		{"a line more", "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("a: b\r\n", 257), 431},
		{"thousands of lines for a route without a key", "GET /health HTTP/1.1\r\nHost: localhost\r\n" + manyLines(9000), 431},
		{"two origins", "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nOrigin: http://evil.example\r\n", 403},
		{"a forwarded host", "GET /v1/models HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: localhost\r\nForwarded: host=localhost\r\nX-Forwarded-For: 127.0.0.1\r\n", 403},
		{"an address in one number", "GET /v1/models HTTP/1.1\r\nHost: 2130706433\r\n", 403},
		{"an address of IPv6 that contains one", "GET /v1/models HTTP/1.1\r\nHost: [::ffff:7f00:1]\r\n", 200},
		{"a web socket", "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n", 403},
		{"a web socket that is asked for", "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n", 200}, // no upgrade
		{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n", 400},
		{"HTTP/0.9", "GET /v1/models\r\n", 400},
		{"a folded line", "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nOrigin:\r\n http://evil.example\r\n", 403},
		{"two lengths", "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n", 400},
		{"another encoding", "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n", 501},
		{"CONNECT", "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n", 405},
		{"an asterisk", "OPTIONS * HTTP/1.1\r\nHost: evil.example\r\n", 200}, // package net/http answers it
	} {
		c := dial(t, addr)
		_, _ = io.WriteString(c, tt.head+"\r\n") // the server may refuse before it has read all
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if body, _ := io.ReadAll(io.LimitReader(r.Body, 300)); r.StatusCode != tt.status {
			t.Errorf("%s: %d %s, want %d", tt.name, r.StatusCode, body, tt.status)
		}
	}
}

// manyLines returns lines of a header with different names.
func manyLines(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strconv.FormatInt(int64(i), 36) + ":\r\n")
	}
	return b.String()
}

// TestLimits: a key's limits hold on all routes that compute, are told in headers, and count the tokens of clients that have gone.
func TestLimits(t *testing.T) {
	var log journal
	s := serve(t, server.Config{
		Access: gate(t, access.Config{Keys: []access.Key{{Name: "ann", Secret: "a", Requests: 3}, {Secret: "b", Tokens: 100}, {Secret: "c", Tokens: 100}, {Secret: "d", Tokens: 100}, {Name: "eve", Secret: "e", Tokens: 100}, {Secret: "free"}}}),
		Config: serving.Config{Log: slog.New(slog.NewJSONHandler(&log, nil))},
	})
	post := func(key, path, body string) (int, string, http.Header) {
		return s.do(t, "POST", path, body, "Authorization", "Bearer "+key)
	}
	for i, path := range []string{"/v1/completions", "/tokenize", "/v1/completions"} {
		if status, text, h := post("a", path, `{"prompt":"a"`+map[bool]string{true: `,"max_tokens":1`}[path != "/tokenize"]+`}`); status != 200 || h.Get("X-Ratelimit-Limit-Requests") != "3" || h.Get("X-Ratelimit-Remaining-Requests") != fmt.Sprint(2-i) {
			t.Errorf("%s: %d %s %v", path, status, text, h)
		}
	}
	log.take(t)
	status, text, h := post("a", "/v1/embeddings", `{"input":"a"}`)
	if _, kind, _, code := wantError(t, text); status != 429 || kind != "rate_limit_error" || code != "rate_limit_exceeded" || h.Get("Retry-After") == "" {
		t.Errorf("%d %s %v", status, text, h)
	}
	if lines := log.take(t); len(lines) != 1 || lines[0]["key"] != "ann" || lines[0]["code"] != "rate_limit_exceeded" || lines[0]["status"] != 429.0 {
		t.Errorf("logged %v", lines)
	}
	if status, _, _ := s.do(t, "GET", "/v1/models", "", "X-Api-Key", "a"); status != 200 {
		t.Errorf("the list of models is limited: %d", status)
	}

	long := strings.Repeat("word ", 40) // some 100 tokens
	for key, request := range map[string][2]string{
		"b": {"/v1/completions", `{"prompt":"a","max_tokens":98,"ignore_eos":true}`}, "c": {"/v1/embeddings", `{"input":["` + long + `","a"]}`},
		"d": {"/v1/completions", `{"prompt":"` + long + `","max_tokens":0,"echo":true}`},
	} {
		status, text, h := post(key, request[0], request[1])
		if status != 200 || h.Get("X-Ratelimit-Remaining-Tokens") != "100" {
			t.Errorf("%s: %d %s %v", request, status, text, h)
		}
		_, _, h = post(key, "/tokenize", `{"content":"a"}`)
		if n, err := strconv.Atoi(h.Get("X-Ratelimit-Remaining-Tokens")); err != nil || n > 80 { // a few come back in the meantime
			t.Errorf("%s: %d tokens are left, %v", request, n, err)
		}
	}
	if status, text, h := post("free", "/v1/completions", `{"prompt":"a","max_tokens":1}`); status != 200 || h.Get("X-Ratelimit-Limit-Tokens") != "" {
		t.Errorf("%d %s %v", status, text, h)
	}

	body := strings.NewReader(`{"prompt":"a","stream":true,"max_tokens":254,"ignore_eos":true}`)
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/v1/completions", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Api-Key", "e")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(answer.Body, make([]byte, 2000)); err != nil { // some tokens
		t.Fatal(err)
	}
	answer.Body.Close()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		_, _, h := post("e", "/tokenize", `{"content":"a"}`)
		if n := h.Get("X-Ratelimit-Remaining-Tokens"); n != "100" {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the tokens of a client that has gone are not counted")
		}
	}
}

// TestLoggedReasons: the line of a refused request says why.
func TestLoggedReasons(t *testing.T) {
	var log journal
	s := serve(t, server.Config{Access: keyed(t, "secret"), Config: serving.Config{Log: slog.New(slog.NewJSONHandler(&log, nil))}})
	log.take(t)
	for _, tt := range []struct {
		body, key          string
		status             float64
		param, code, wants string
	}{
		{`{"prompt":"a","max_tokens":1}`, "secret", 200, "", "", ""},
		{`{"prompt":"a","streams":1}`, "secret", 400, "streams", "unknown_parameter", "streams: the field is not known; did you mean \"stream\"?"},
		{`{"prompt":"a","model":"gofer"}`, "secret", 404, "model", "model_not_found", `the model "gofer" is not served; served is gopher; did you mean "gopher"?`},
		{`{"prompt":"a"}`, "guessed", 401, "", "invalid_api_key", "the API key is missing or wrong"},
	} {
		s.do(t, "POST", "/v1/completions", tt.body, "Authorization", "Bearer "+tt.key)
		lines := log.take(t)
		if len(lines) != 1 {
			t.Fatalf("%s: %v", tt.body, lines)
		}
		l := lines[0]
		get := func(name string) string { v, _ := l[name].(string); return v }
		if l["status"] != tt.status || get("param") != tt.param || get("code") != tt.code || get("error") != tt.wants || (get("key") == "#1") != (tt.key == "secret") || strings.Contains(fmt.Sprint(l), tt.key) {
			t.Errorf("%s: %v", tt.body, l)
		}
	}
}

// TestResponsesOfKeys: each key goes on from its own answers alone, shows and deletes them.
func TestResponsesOfKeys(t *testing.T) {
	s := serveModels(t, server.Config{Access: keyed(t, "a", "b")}, source(modelName, edited(t, served(), template), options))
	status, text, _ := s.do(t, "POST", "/v1/responses", `{"input":"a","max_output_tokens":2}`, "X-Api-Key", "a")
	if status != 200 {
		t.Fatal(text)
	}
	id := parse(t, text)["id"].(string)
	for _, tt := range []struct{ method, path, body string }{
		{"POST", "/v1/responses", fmt.Sprintf(`{"input":"b","max_output_tokens":2,"previous_response_id":%q}`, id)},
		{"GET", "/v1/responses/" + id, ""}, {"GET", "/v1/responses/" + id + "/input_items", ""}, {"DELETE", "/v1/responses/" + id, ""},
	} {
		for key, want := range map[string]int{"b": 404, "c": 401} {
			if status, text, _ := s.do(t, tt.method, tt.path, tt.body, "X-Api-Key", key); status != want {
				t.Errorf("%s %s with the key %s: %d %s, want %d", tt.method, tt.path, key, status, text, want)
			}
		}
		if status, text, _ := s.do(t, tt.method, tt.path, tt.body, "X-Api-Key", "a"); status != 200 {
			t.Errorf("%s %s with its own key: %d %s", tt.method, tt.path, status, text)
		}
	}
}

// TestSessionsOfKeys: each key has sessions of its own, in a folder that no other key's requests reach.
func TestSessionsOfKeys(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, server.Config{
		Access: gate(t, access.Config{Keys: []access.Key{{Name: "Ann", Secret: "a"}, {Name: "bob", Secret: "b"}, {Secret: "c"}}}),
		Config: serving.Config{Sessions: access.Sessions{Dir: dir}},
	})
	const body = `{"prompt":"func main() { func main() { func main() { func main() { func main() { func main() { func main() { func main() {","max_tokens":70,"temperature":0,"ignore_eos":true,"cache_salt":"%s","session":"%s"}`
	ask := func(key, salt, session string) (int, string) {
		status, text, _ := s.do(t, "POST", "/v1/completions", fmt.Sprintf(body, salt, session), "X-Api-Key", key)
		return status, text
	}
	for _, key := range []string{"a", "b", "c"} {
		if status, text := ask(key, key, "tea"); status != 200 {
			t.Errorf("%s: %d %s", key, status, text)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "tea"))
	if err != nil || len(files) != 3 {
		t.Fatalf("%v %v", files, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "@ann", "tea")); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "@bob")); err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("%v %v", info.Mode(), err)
	}
	for _, name := range []string{"@ann/tea", "../@ann/tea", "@ann", "..", `@ann\\tea`} {
		if status, text := ask("b", "b", name); status != 400 {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "plain"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "@bob")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "@bob"), nil, 0o600); err != nil { // no folder can be made
		t.Fatal(err)
	}
	if status, text := ask("b", "b", "tea"); status != 500 || !strings.Contains(text, "session_failed") || strings.Contains(text, dir) {
		t.Errorf("%d %s", status, text)
	}
}
