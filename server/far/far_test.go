package far_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"grove"
	"grove/internal/fileio"
	"grove/internal/gopher"
	"grove/server"
	"grove/server/far"
	"grove/server/serving"
)

// TestMain keeps the tests out of the user's cache directory.
func TestMain(m *testing.M) { os.Exit(fileio.RunApart(m)) }

// options are those of the tests' models. Methods are eager, so that drafts are verified wherever there are any.
var options = grove.Options{Parallel: 4, Queue: 64, Threads: 1, Eager: true, Forget: true, ChatTemplate: "chatml"}

// source is a model inside the program.
func source(name string) server.Entry {
	return server.Entry{Name: name, Open: func(context.Context, uint64) (*grove.Model, error) {
		return grove.OpenBytes(gopher.Named(name), options)
	}}
}

// start starts a server, and returns its address.
func start(t testing.TB, c server.Config, models ...server.Entry) string {
	t.Helper()
	s := server.New(c)
	for _, m := range models {
		if err := s.Add(m); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l, 0) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

// farServer starts a server that verifies.
func farServer(t testing.TB) string {
	t.Helper()
	return start(t, server.Config{Verifies: true}, source(gopher.Name))
}

// nearServer starts a server that drafts for another.
func nearServer(t testing.TB, c far.Config) (string, *far.Proxy) {
	t.Helper()
	p, err := far.NewProxy(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return start(t, server.Config{Verifier: p, Config: serving.Config{AnyModel: c.Fallback}}, source(gopher.DraftName)), p
}

// ask sends a request and returns the answer.
func ask(t testing.TB, url, path, body string, header ...string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		t.Logf("the body ends by %v", err)
	}
	return a.StatusCode, a.Header, string(b)
}

// texts returns what answers say, of a body or a stream, with the tokens' log-probabilities.
func texts(t testing.TB, answer string) string {
	t.Helper()
	all := map[int]string{}
	for line := range strings.Lines(answer) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "data: ")
		if line == "" || line == "[DONE]" {
			continue
		}
		var a struct {
			Error   any
			Choices []struct {
				Index    int
				Text     string
				Message  struct{ Content string }
				Delta    struct{ Content string }
				Logprobs any
				Finish   string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal([]byte(line), &a); err != nil || a.Error != nil {
			t.Fatalf("%s: %v", line, err)
		}
		for _, c := range a.Choices {
			part, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			all[c.Index] += string(part) + "\n"
		}
	}
	return fmt.Sprint(all)
}

// link passes bytes between two servers on, late, and breaks connections.
type link struct {
	address string // of the far server
	delay   time.Duration
	most    int  // bytes in a direction until a connection breaks, at random; 0: none does
	stalls  bool // or gives nothing from then on

	mu     sync.Mutex
	random *rand.Rand
	open   []net.Conn
	down   bool // nothing passes
	breaks int
}

// listen starts the link, and returns its address.
func (l *link) listen(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.random = rand.New(rand.NewPCG(1, 2))
	t.Cleanup(func() { _ = listener.Close(); l.cut(true) })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", strings.TrimPrefix(l.address, "http://"))
			l.mu.Lock()
			if err != nil || l.down {
				l.mu.Unlock()
				_ = near.Close()
				if err == nil {
					_ = far.Close()
				}
				continue
			}
			l.open = append(l.open, near, far)
			l.mu.Unlock()
			go l.pass(near, far)
			go l.pass(far, near)
		}
	}()
	return "http://" + listener.Addr().String()
}

// cut breaks all connections, and leaves the link down or not.
func (l *link) cut(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.open {
		_ = c.Close()
	}
	l.open, l.down = nil, down
}

// pass passes bytes on half the delay later.
func (l *link) pass(from, to net.Conn) {
	type part struct {
		at time.Time
		b  []byte
	}
	parts := make(chan part, 1<<12)
	go func() {
		defer close(parts)
		for {
			b := make([]byte, 4<<10)
			n, err := from.Read(b)
			if n > 0 {
				parts <- part{time.Now().Add(l.delay / 2), b[:n]}
			}
			if err != nil {
				return
			}
		}
	}()
	left := -1
	if l.most > 0 {
		l.mu.Lock()
		left = 100 + l.random.IntN(l.most)
		l.mu.Unlock()
	}
	stalled := false
	for p := range parts {
		time.Sleep(time.Until(p.at))
		if left >= 0 && len(p.b) > left {
			if !stalled {
				_, _ = to.Write(p.b[:left])
				l.mu.Lock()
				l.breaks++
				l.mu.Unlock()
			}
			if stalled = l.stalls; stalled {
				left = 0
				continue
			}
			break
		}
		left -= min(left, len(p.b)) * min(1, left+1)
		if _, err := to.Write(p.b); err != nil {
			break
		}
	}
	_, _ = from.Close(), to.Close()
	for range parts {
	}
}

// requests are those of the tests: greedy and drawn, whole and streamed, several answers, a conversation, a constraint.
func requests(n int) (all []struct{ path, body string }) {
	for i, body := range []string{
		`"prompt":"func main() {","temperature":0`,
		`"prompt":"func main() {","temperature":1,"seed":1,"logprobs":2`,
		`"prompt":"package server","temperature":1,"seed":2,"stream":true`,
		`"prompt":"// Read reads","temperature":0.8,"seed":3,"top_p":0.9,"stream":true,"n":2`,
		`"messages":[{"role":"user","content":"if err"}],"temperature":1,"seed":4,"stream":true`,
		`"prompt":["func (s *Server)","type"],"temperature":1,"seed":5,"presence_penalty":0.5`,
		`"prompt":"x := ","temperature":1,"seed":6,"guided_regex":"[a-z]+( [a-z]+)*"`,
	} {
		path := "/v1/completions"
		if i == 4 {
			path = "/v1/chat/completions"
		}
		all = append(all, struct{ path, body string }{path, fmt.Sprintf(`{%s,"max_tokens":%d}`, body, n)})
	}
	return all
}

// TestExact expects the texts of the far model alone, over links of all kinds.
func TestExact(t *testing.T) {
	target := farServer(t)
	const tokens = 14
	want := map[string]string{}
	for _, r := range requests(tokens) {
		status, _, body := ask(t, target, r.path, r.body)
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", r.body, status, body)
		}
		want[r.body] = texts(t, body)
	}
	for _, c := range []struct {
		name   string
		link   *link
		config far.Config
	}{
		{"no delay", &link{}, far.Config{}},
		{"no delay, steps wait", &link{}, far.Config{Wait: time.Second}},
		{"no delay, none waits", &link{}, far.Config{Wait: -1}},
		{"20 ms", &link{delay: 20 * time.Millisecond}, far.Config{Wait: time.Second}},
		{"100 ms", &link{delay: 100 * time.Millisecond}, far.Config{}},
		{"connections break", &link{most: 6000}, far.Config{Wait: 50 * time.Millisecond}},
		{"connections stall", &link{most: 6000, stalls: true}, far.Config{Wait: 20 * time.Millisecond, Silence: 60 * time.Millisecond, Ping: 10 * time.Millisecond}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := c.link
			l.address = target
			c.config.URL = l.listen(t)
			near, p := nearServer(t, c.config)
			for _, r := range requests(tokens) {
				status, header, body := ask(t, near, r.path, r.body)
				if status != http.StatusOK || header.Get("Grove-Answered-By") != "verifier" {
					t.Fatalf("%s: %d %v %s", r.body, status, header, body)
				}
				if got := texts(t, body); got != want[r.body] {
					t.Errorf("%s:\n%s, want\n%s", r.body, got, want[r.body])
				}
			}
			f := p.Totals()
			if f.Tokens == 0 || f.Drafted == 0 || f.Sent == 0 || f.Received == 0 || f.Answers != len(requests(0)) || f.RoundTrip < l.delay {
				t.Errorf("%+v", f)
			}
			if c.config.Wait > 50*time.Millisecond && f.Accepted == 0 {
				t.Error("no draft was accepted")
			}
			if (l.most > 0) != (f.Reconnections > 0) {
				t.Errorf("%d reconnections, %d breaks", f.Reconnections, l.breaks)
			}
		})
	}
}
