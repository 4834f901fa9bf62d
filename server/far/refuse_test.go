package far_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"grove"
	"grove/internal/gopher"
	"grove/internal/text/token"
	"grove/server"
	"grove/server/access"
	"grove/server/driver"
	"grove/server/far"
	"grove/server/far/remote"
	"grove/server/serving"
)

// code returns the code of an error.
func code(body string) string {
	var e struct{ Error struct{ Code string } }
	_ = json.Unmarshal([]byte(body), &e)
	return e.Error.Code
}

const greedy = `{"prompt":"func main() {","max_tokens":8,"temperature":0}`

// TestRefused names what is wrong with a far server.
func TestRefused(t *testing.T) {
	keys, err := access.New(access.Config{Keys: []access.Key{{Secret: "right"}}})
	if err != nil {
		t.Fatal(err)
	}
	keyed := start(t, server.Config{Verifies: true, Access: keys}, source(gopher.Name))
	plain := start(t, server.Config{}, source(gopher.Name))
	target := farServer(t)
	for _, c := range []struct {
		name   string
		config far.Config
		status int
		code   string
	}{
		{"the key", far.Config{URL: keyed, Key: "right"}, 200, ""},
		{"no key", far.Config{URL: keyed}, 502, "far_key"},
		{"a wrong key", far.Config{URL: keyed, Key: "wrong"}, 502, "far_key"},
		{"a server that verifies nothing", far.Config{URL: plain}, 502, "far_http1"},
		{"nobody", far.Config{URL: "http://127.0.0.1:1"}, 503, "far_unreachable"},
		{"the model", far.Config{URL: target, Model: gopher.Name}, 200, ""},
		{"another model", far.Config{URL: target, Model: "larger"}, 502, "far_model"},
		{"the near model instead", far.Config{URL: "http://127.0.0.1:1", Fallback: true}, 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			near, p := nearServer(t, c.config)
			status, header, body := ask(t, near, "/v1/completions", greedy)
			if status != c.status || code(body) != c.code {
				t.Errorf("%d %s", status, body)
			}
			if f := p.Totals(); c.config.Fallback && (f.Local != 1 || header.Get("Grove-Answered-By") != "fallback" || !strings.Contains(body, `"model":"gopher-draft"`)) {
				t.Errorf("%+v %v %s", f, header, body)
			}
		})
	}
	for _, url := range []string{"", "ftp://a", "http://a/b", "http://u@a", "a:1"} {
		if _, err := far.NewProxy(far.Config{URL: url}); err == nil {
			t.Errorf("%q is an address", url)
		}
	}
}

// TestErrorsPassed passes the far server's own refusals on as they are.
func TestErrorsPassed(t *testing.T) {
	near, _ := nearServer(t, far.Config{URL: farServer(t)})
	status, _, body := ask(t, near, "/v1/completions", `{"prompt":"a","temperature":-1}`)
	if status != http.StatusBadRequest || !strings.Contains(body, "temperature") {
		t.Errorf("%d %s", status, body)
	}
	a, err := http.Get(near + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	if b, err := io.ReadAll(a.Body); err != nil || !bytes.Contains(b, []byte(gopher.Name)) {
		t.Errorf("%s %v", b, err)
	}
	r := httptest.NewRequest(http.MethodPut, "/far/"+strings.Repeat("a", 32), nil)
	w := httptest.NewRecorder()
	s := server.New(server.Config{})
	r.Host = "localhost"
	if s.ServeHTTP(w, r); w.Code != http.StatusNotFound {
		t.Errorf("a server that verifies nothing: %d", w.Code)
	}
}

// TestVanishes loses the far server in the middle of an answer: the client has what came, and an error with a name.
func TestVanishes(t *testing.T) {
	l := &link{address: farServer(t), delay: 20 * time.Millisecond}
	near, p := nearServer(t, far.Config{URL: l.listen(t), Reconnect: 200 * time.Millisecond, Wait: time.Second, Fallback: true})
	body := `{"prompt":"func main() {","max_tokens":200,"temperature":0,"stream":true,"ignore_eos":true}`
	_, _, whole := ask(t, l.address, "/v1/completions", body)
	time.AfterFunc(250*time.Millisecond, func() { l.cut(true) })
	_, _, got := ask(t, near, "/v1/completions", body)
	events := strings.Split(strings.TrimSpace(got), "\n\n")
	last := strings.TrimPrefix(events[len(events)-1], "data: ")
	if code(last) != "far_lost" {
		t.Fatalf("the last event is %s", last)
	}
	said := func(events []string) (text string) {
		for _, e := range events {
			var a struct{ Choices []struct{ Text string } }
			if json.Unmarshal([]byte(strings.TrimPrefix(e, "data: ")), &a) == nil && len(a.Choices) > 0 {
				text += a.Choices[0].Text
			}
		}
		return text
	}
	text := said(events[:len(events)-1])
	if all := said(strings.Split(whole, "\n\n")); text == "" || !strings.HasPrefix(all, text) || text == all {
		t.Errorf("%q of %q", text, all)
	}
	if f := p.Totals(); f.Failed != 1 || f.Local != 0 {
		t.Errorf("%+v", f)
	}
	if status, header, body := ask(t, near, "/v1/completions", greedy); status != http.StatusOK || header.Get("Grove-Answered-By") != "fallback" {
		t.Errorf("a new request: %d %v %s", status, header, body)
	}
	l.cut(false)
	if _, header, _ := ask(t, near, "/v1/completions", greedy); header.Get("Grove-Answered-By") != "verifier" {
		t.Errorf("the far server is back: %v", header)
	}
}

// liar is a far server that sends what it is told to.
func liar(t *testing.T, header http.Header, frames func(l *remote.Link)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Protocols: new(http.Protocols), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name := range header {
			w.Header().Set(name, header.Get(name))
		}
		received, _ := strconv.ParseUint(r.Header.Get("Grove-Far-Received"), 10, 64)
		if received > 0 {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		control := http.NewResponseController(w)
		w.WriteHeader(http.StatusOK)
		_ = control.Flush()
		link := remote.NewLink(remote.Config{Request: 1 << 20})
		go func() {
			if _, err := link.Next(r.Context()); err == nil {
				frames(link)
			}
		}()
		_ = link.Carry(r.Body, &flusher{w, control}, func() { _ = control.SetReadDeadline(time.Now()) }, 0)
	})}
	s.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return "http://" + l.Addr().String()
}

type flusher struct {
	io.Writer
	*http.ResponseController
}

func (f *flusher) Flush() error { return f.ResponseController.Flush() }

// TestLies names the lies of a far server, and answers nothing by them.
func TestLies(t *testing.T) {
	header := func(changes ...string) http.Header {
		h := http.Header{"Grove-Far": {remote.Version}, "Grove-Far-Numerics": {grove.Numerics}, "Grove-Far-Received": {"0"}}
		for i := 0; i < len(changes); i += 2 {
			h.Set(changes[i], changes[i+1])
		}
		return h
	}
	send := func(l *remote.Link, kind remote.Kind, p remote.Payload) {
		l.TrySend(kind, remote.Append(nil, p))
	}
	start := remote.Start{Text: []token.ID{1, 2}, Sampling: "{}"}
	digest := remote.Digest(0, start.Text)
	for _, c := range []struct {
		name   string
		header http.Header
		code   string
		frames func(l *remote.Link)
	}{
		{"another version", header("Grove-Far", "grove-far-0"), "far_version", func(*remote.Link) {}},
		{"other numerics", header("Grove-Far-Numerics", "grove-0"), "far_numerics", func(*remote.Link) {}},
		{"a model of other numerics", header(), "far_numerics", func(l *remote.Link) {
			send(l, remote.KindModel, &remote.Model{Name: "m", Numerics: "grove-0"})
		}},
		{"another vocabulary", header(), "far_vocabulary", func(l *remote.Link) {
			send(l, remote.KindModel, &remote.Model{Name: "m", Weights: "00", Vocabulary: "00", Numerics: grove.Numerics})
		}},
		{"tokens of no text", header(), "far_lied", func(l *remote.Link) { send(l, remote.KindTokens, &remote.Tokens{At: 0, IDs: []token.ID{1}}) }},
		{"tokens at another place", header(), "far_lied", func(l *remote.Link) {
			send(l, remote.KindStart, &start)
			send(l, remote.KindTokens, &remote.Tokens{At: 3, IDs: []token.ID{1}, Digest: remote.Digest(digest, []token.ID{1})})
		}},
		{"tokens of another text", header(), "far_lied", func(l *remote.Link) {
			send(l, remote.KindStart, &start)
			send(l, remote.KindTokens, &remote.Tokens{At: 2, IDs: []token.ID{1}, Digest: remote.Digest(digest, []token.ID{2})})
		}},
		{"no tokens", header(), "far_lied", func(l *remote.Link) {
			send(l, remote.KindStart, &start)
			send(l, remote.KindTokens, &remote.Tokens{At: 2, Digest: digest})
		}},
		{"a payload that makes no sense", header(), "far_lied", func(l *remote.Link) { l.TrySend(remote.KindHead, []byte{1}) }},
		{"a body without a head", header(), "far_lied", func(l *remote.Link) { l.TrySend(remote.KindBody, []byte("text")) }},
		{"what the near side sends", header(), "far_lied", func(l *remote.Link) { l.TrySend(remote.KindDrafts, nil) }},
		{"an answer that is cut off", header(), "far_cut", func(l *remote.Link) { send(l, remote.KindEnd, &remote.End{}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			near, _ := nearServer(t, far.Config{URL: liar(t, c.header, c.frames), Fallback: true, Reconnect: time.Second, Ping: 20 * time.Millisecond})
			if status, _, body := ask(t, near, "/v1/completions", greedy); status != http.StatusBadGateway || code(body) != c.code {
				t.Errorf("%d %s, want %s", status, body, c.code)
			}
		})
	}
}

// TestPanicFailsOne expects that a panic of the far server, outside of the guards of its routes, fails the answer that it is in, by name, and
// that the server goes on.
func TestPanicFailsOne(t *testing.T) {
	part := func(w http.ResponseWriter, kind string) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, "data: {}\n\n")
	}
	for _, c := range []struct {
		name   string
		handle http.HandlerFunc
		status int
		code   string
	}{
		{"before the answer", func(http.ResponseWriter, *http.Request) { panic("a fault") }, http.StatusInternalServerError, "internal_error"},
		{"in a stream", func(w http.ResponseWriter, _ *http.Request) { part(w, "text/event-stream"); panic("a fault") }, http.StatusOK, "far_cut"},
		{"which cuts off", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, http.StatusBadGateway, "far_cut"},
		{"none", func(w http.ResponseWriter, _ *http.Request) { part(w, "text/event-stream") }, http.StatusOK, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := &far.Verifier{Handler: c.handle, Body: 1 << 20}
			t.Cleanup(v.Close)
			d := &driver.Server{Pool: serving.NewPool(serving.Config{}), Log: slog.New(slog.DiscardHandler)}
			routes := http.NewServeMux()
			for _, r := range v.Routes() {
				routes.HandleFunc(r.Patterns[0], func(w http.ResponseWriter, h *http.Request) {
					d.Answer(w, h, r, func(*driver.Request) error { return nil })
				})
			}
			h := httptest.NewUnstartedServer(routes)
			h.Config.Protocols = new(http.Protocols)
			h.Config.Protocols.SetUnencryptedHTTP2(true)
			h.Start()
			t.Cleanup(h.Close)
			near, _ := nearServer(t, far.Config{URL: h.URL, Ping: 20 * time.Millisecond})
			status, _, body := ask(t, near, "/v1/completions", greedy)
			events := strings.Split(strings.TrimSpace(body), "\n\n")
			if last := strings.TrimPrefix(events[len(events)-1], "data: "); status != c.status || code(last) != c.code {
				t.Errorf("%d %s", status, body)
			}
		})
	}
}
