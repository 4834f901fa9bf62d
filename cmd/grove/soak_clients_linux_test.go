package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// soakCases returns the requests whose answers are compared: every API, streams and whole answers, sessions, several answers, penalties,
// log-probabilities, embeddings.
func soakCases() (all []soakCase) {
	for i := range 6 {
		prompt := fmt.Sprintf("func f%d(a, b int) int {\n\tif a < b {\n\t\treturn a + %d\n\t}\n", i, i)
		long := strings.Repeat(prompt, 2+i/2)
		for j, model := range []string{"gopher", "other"} {
			draw := fmt.Sprintf(`"model":%q,"method":"auto","temperature":%d,"seed":%d`, model, (i+j)%2, i)
			add := func(path string, read func([]byte) (string, error), format string, args ...any) {
				all = append(all, soakCase{path: path, body: "{" + draw + "," + fmt.Sprintf(format, args...) + "}", read: read})
			}
			add("/v1/completions", field("choices"), `"prompt":%q,"max_tokens":%d,"logprobs":3,"n":2`, prompt, 8+2*i)
			add("/v1/completions", streamed("text"), `"prompt":%q,"max_tokens":%d,"stream":true,"frequency_penalty":0.5`, long, 8*(i+1))
			add("/completion", field("content"), `"prompt":%q,"n_predict":%d,"repeat_penalty":1.1,"n_probs":4`, prompt, 4*(i+1))
			add("/v1/completions", field("choices"), `"prompt":%q,"max_tokens":%d,"session":"s-%s-%d","logprobs":1`, long, 16+i, model, i)
			all[len(all)-1].session = true
			all = append(all, soakCase{path: "/api/generate", body: fmt.Sprintf(`{"model":%q,"prompt":%q,"raw":true,"options":{"method":"auto","num_predict":%d,"seed":%d}}`, model, prompt, 4*(i+1), i), read: streamed("response")},
				soakCase{path: "/v1/embeddings", body: fmt.Sprintf(`{"model":%q,"input":[%q,%q]}`, model, prompt, long), read: field("data")},
				soakCase{path: "/tokenize", body: fmt.Sprintf(`{"model":%q,"content":%q,"with_pieces":true}`, model, long), read: field("tokens")})
			if model == "gopher" {
				add("/v1/chat/completions", streamed("content"), `"messages":[{"role":"user","content":"write function %d"}],"max_tokens":24,"stream":true`, i)
				add("/v1/messages", field("content"), `"messages":[{"role":"user","content":"write function %d"}],"max_tokens":16`, i)
			}
		}
	}
	return all
}

// field reads one member of an answer.
func field(name string) func([]byte) (string, error) {
	return func(body []byte) (string, error) {
		var all map[string]json.RawMessage
		err := json.Unmarshal(body, &all)
		if err == nil && len(all[name]) == 0 {
			err = fmt.Errorf("no %s in %s", name, body)
		}
		return string(all[name]), err
	}
}

// streamed puts the texts of a stream together: the values of a name, wherever it stands.
func streamed(name string) func([]byte) (string, error) {
	return func(body []byte) (string, error) {
		var text strings.Builder
		last := ""
		for line := range strings.Lines(string(body)) {
			line = strings.TrimPrefix(strings.TrimSpace(line), "data: ")
			if !strings.HasPrefix(line, "{") && !strings.HasPrefix(line, "[") {
				continue
			}
			last = line
			var event any
			if err := json.Unmarshal([]byte(line), &event); err == nil {
				collect(&text, event, name)
			}
		}
		if last != "[DONE]" && !strings.Contains(last, `"done":true`) {
			return "", fmt.Errorf("the stream ends with %s", last)
		}
		return text.String(), nil
	}
}

// collect appends the texts of a name in a value.
func collect(text *strings.Builder, value any, name string) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if s, ok := inner.(string); ok && key == name {
				text.WriteString(s)
			} else {
				collect(text, inner, name)
			}
		}
	case []any:
		for _, inner := range v {
			collect(text, inner, name)
		}
	}
}

// faulty are the clients that do not behave.
var faulty = []func(*soaked, context.Context, *soakServer){
	(*soaked).leave, (*soaked).leave, (*soaked).stall, (*soaked).stall, (*soaked).lie, (*soaked).lie, (*soaked).hog, (*soaked).unread, (*soaked).unread, (*soaked).idle,
}

// long is a request whose answer fills the context.
func long() string {
	return fmt.Sprintf(`{"model":"gopher","prompt":"func f%d","ignore_eos":true,"max_tokens":200,"stream":true}`, rand.IntN(1000))
}

// post sends a request of a faulty client and notes the status. A fault of the server's own is an error.
func (s *soaked) post(ctx context.Context, v *soakServer, path, body string, read func(io.Reader)) {
	r, err := http.NewRequestWithContext(ctx, "POST", "http://"+v.addr+path, strings.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := soakClient.Do(r)
	if err != nil {
		return // the server was killed, or cut the client off
	}
	defer answer.Body.Close()
	n, _ := s.byCode.LoadOrStore(answer.StatusCode, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
	if answer.StatusCode == 500 || answer.StatusCode == 502 {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
		s.t.Errorf("%s %.200s: %d %s", path, body, answer.StatusCode, text)
	}
	read(answer.Body)
}

// leave reads a little of a stream and goes.
func (s *soaked) leave(ctx context.Context, v *soakServer) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.post(ctx, v, "/v1/completions", long(), func(r io.Reader) {
		_, _ = io.CopyN(io.Discard, r, int64(rand.IntN(2000))) // the rest is for nobody
	})
	wait(ctx, time.Duration(rand.IntN(100))*time.Millisecond)
}

// dial connects to the server without a client's manners; nil: it cannot.
func dial(ctx context.Context, v *soakServer) *net.TCPConn {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", v.addr)
	if err != nil {
		wait(ctx, 100*time.Millisecond)
		return nil
	}
	return c.(*net.TCPConn)
}

// stall sends a part of a request and then nothing, closes one half of the connection, or resets it.
func (s *soaked) stall(ctx context.Context, v *soakServer) {
	c := dial(ctx, v)
	if c == nil {
		return
	}
	defer c.Close()
	body := long()
	request := fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", v.addr, len(body), body)
	_, _ = c.Write([]byte(request[:rand.IntN(len(request)+1)])) // the server may cut it off
	switch rand.IntN(3) {
	case 0:
		_ = c.CloseWrite()
	case 1:
		_ = c.SetLinger(0)
		return
	}
	wait(ctx, time.Duration(rand.IntN(3000))*time.Millisecond)
}

// lies are requests that are not what they say, or that nobody should send.
var lies = []string{
	`{"prompt":`, `[]`, `{"prompt":"a","prompt":"b"}`, "{\"prompt\":\"\xff\"}", `{"prompt":"a","max_tokens":1e999}`, `{"prompt":[[[[[[[[1]]]]]]]]}`, `{"prompt":[-1]}`,
	`{"prompt":"a","model":"none"}`, `{"prompt":"a","temperature":-1}`, `{"prompt":"a","session":"../../x"}`, `{"prompt":"a","priority":-10}`, `{"prompt":"a","n":1000000}`,
	`{"prompt":"a","logit_bias":{"999999999":1}}`, `{"prompt":"a","stop":[""]}`, `{"prompt":"a","method":"none,auto"}`, `{"prompt":"a","search":"ffs,n=99999"}`,
}

// lie sends what no client should.
func (s *soaked) lie(ctx context.Context, v *soakServer) {
	body := lies[rand.IntN(len(lies))]
	path := []string{"/v1/completions", "/v1/chat/completions", "/completion", "/api/generate", "/v1/messages", "/tokenize", "/v1/embeddings"}[rand.IntN(7)]
	s.post(ctx, v, path, body, func(r io.Reader) { _, _ = io.Copy(io.Discard, io.LimitReader(r, 1<<20)) })
	wait(ctx, time.Duration(rand.IntN(50))*time.Millisecond)
}

// hog sends requests that want much memory or work for their size.
func (s *soaked) hog(ctx context.Context, v *soakServer) {
	many := func(item string, n int) string { return "[" + strings.Repeat(item+",", n-1) + item + "]" }
	var path, body string
	switch rand.IntN(8) {
	case 0:
		path, body = "/tokenize", `{"with_pieces":true,"content":"`+strings.Repeat("a b ", 3<<20)+`"}`
	case 1:
		path, body = "/v1/completions", `{"prompt":`+many(`""`, 4<<20)+`}`
	case 2:
		path, body = "/v1/chat/completions", `{"messages":`+many(`{}`, 4<<20)+`}`
	case 3:
		path, body = "/v1/chat/completions", `{"messages":`+many(`{"role":"user","content":"hello"}`, 16384)+`}`
	case 4:
		path, body = "/v1/completions", `{"prompt":"a","prediction":{"type":"content","content":"`+strings.Repeat("a b ", 3<<20)+`"}}`
	case 5:
		path, body = "/completion", `{"prompt":"a","n_probs":1000,"n_cmpl":32,"n_predict":200,"ignore_eos":true}`
	case 6:
		path, body = "/v1/embeddings", `{"input":`+many(`"some text"`, 2048)+`}`
	case 7:
		path, body = "/v1/completions", `{"prompt":"a","x":`+strings.Repeat("[", 4<<20)+`}`
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	s.post(ctx, v, path, body, func(r io.Reader) { _, _ = io.Copy(io.Discard, r) })
}

// unread asks for a stream and does not read it.
func (s *soaked) unread(ctx context.Context, v *soakServer) {
	c := dial(ctx, v)
	if c == nil {
		return
	}
	defer c.Close()
	_ = c.SetReadBuffer(1 << 10)
	body := long()
	if _, err := fmt.Fprintf(c, "POST /v1/completions HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", v.addr, len(body), body); err != nil {
		return
	}
	wait(ctx, time.Duration(rand.IntN(20))*time.Second)
}

// idle keeps connections open for nothing, some of them behind a request.
func (s *soaked) idle(ctx context.Context, v *soakServer) {
	for i := range 200 {
		c := dial(ctx, v)
		if c == nil {
			return
		}
		defer c.Close()
		if i%2 == 0 {
			_, _ = fmt.Fprintf(c, "GET /health HTTP/1.1\r\nHost: %s\r\n\r\n", v.addr) // it may be cut off
			_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
			_, _ = bufio.NewReader(c).ReadBytes('\n')
		}
	}
	wait(ctx, 20*time.Second)
}
