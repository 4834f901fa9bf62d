package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/gopher"
	"grove/server"
)

// real is a server of the model inside the program. Its streams halt until they may go on, so that what is shown of an
// answer under way can be looked at.
type real struct {
	*server.Server
	model *grove.Model
	halt  gate

	mu     sync.Mutex
	path   string
	stream bytes.Buffer // the last
}

// events are how many events of a stream pass before it halts.
const events = 40

// open starts a server of the model, with a chat template.
func open(t *testing.T, template string) *real {
	t.Helper()
	s := &real{Server: server.New(server.Config{}), halt: make(gate)}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	err := s.Add(server.Entry{Name: gopher.Name, Open: func(context.Context, uint64) (m *grove.Model, err error) {
		s.model, err = grove.OpenBytes(gopher.Model(), grove.Options{Parallel: 1, Eager: true, ChatTemplate: template})
		return s.model, err
	}})
	if err == nil {
		err = s.Load(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ServeHTTP implements [http.Handler].
func (s *real) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		s.mu.Lock()
		s.path = r.URL.Path
		s.stream.Reset()
		s.mu.Unlock()
		w = &halting{ResponseWriter: w, s: s, r: r}
	}
	s.Server.ServeHTTP(w, r)
}

// halting is a stream that halts.
type halting struct {
	http.ResponseWriter
	s      *real
	r      *http.Request
	events int
}

// Unwrap is for [http.ResponseController].
func (h *halting) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// Write implements [http.ResponseWriter]. The server may write several events at once: those before the halt reach the page.
func (h *halting) Write(b []byte) (n int, err error) {
	for i, c := range b {
		if c != '\n' || i == 0 || b[i-1] != '\n' { // no end of an event
			continue
		}
		if h.events++; h.events != events {
			continue
		}
		if n, err = h.pass(b[:i+1]); err != nil {
			return n, err
		}
		if err := http.NewResponseController(h.ResponseWriter).Flush(); err != nil {
			return n, err
		}
		h.s.halt.wait(h.r)
	}
	rest, err := h.pass(b[n:])
	return n + rest, err
}

// pass sends a part of the stream on and notes it.
func (h *halting) pass(b []byte) (int, error) {
	h.s.mu.Lock()
	h.s.stream.Write(b)
	h.s.mu.Unlock()
	return h.ResponseWriter.Write(b)
}

// WriteString implements [io.StringWriter].
func (h *halting) WriteString(text string) (int, error) { return h.Write([]byte(text)) }

// runs returns the texts of the last stream: of those that were not drafted and those that were, in turns.
func (s *real) runs(t *testing.T) (path string, runs []string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	accepted, draft := 0, false
	for line := range strings.Lines(s.stream.String()) {
		data, ok := strings.CutPrefix(line, "data: {")
		if !ok {
			continue
		}
		var e struct {
			Choices []struct {
				Text  string
				Delta struct{ Content string }
			}
			Timings *struct {
				Accepted int `json:"draft_n_accepted"`
			}
		}
		if err := json.Unmarshal([]byte("{"+data), &e); err != nil {
			t.Fatal(err)
		}
		if e.Timings != nil {
			draft = draft || e.Timings.Accepted > accepted
			accepted = e.Timings.Accepted
		}
		for _, c := range e.Choices {
			if text := c.Text + c.Delta.Content; text != "" {
				for len(runs) == 0 || (len(runs)%2 == 0) != draft {
					runs = append(runs, "")
				}
				runs[len(runs)-1] += text
				draft = false
			}
		}
	}
	return s.path, runs
}

// all returns the text of an answer by plain decoding.
func all(t *testing.T, g *grove.Generation, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for token, err := range g.Tokens() {
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString(token.Text)
	}
	return text.String()
}

// TestServer: the page and the real server work together. A base model goes on with texts; with a chat template it is
// talked to, and the page that was told otherwise before sees that.
func TestServer(t *testing.T) {
	const asked, most = "func TestMain(t *testing.T) {\n", 300
	plain := grove.Request{Prompt: asked, Method: grove.MethodOff, MaxTokens: most}
	s := open(t, "")
	f := serve(t, nil)
	var now atomic.Pointer[real]
	now.Store(s)
	f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { now.Load().ServeHTTP(w, r) })
	p := visit(t, f.URL)
	p.says("#greeting", gopher.Name)
	p.until("[...document.querySelector('#method').options].some(o => o.value === 'sam')")
	p.click("#configure")
	for id, v := range map[string]int{"temperature": 0, "most": most} {
		p.run(fmt.Sprintf(`{ const e = document.querySelector('#%s'); e.value = %d; e.dispatchEvent(new Event('input', {bubbles: true})); }`, id, v))
	}
	p.click("#close")
	plain.Penalties = s.model.DefaultPenalties() // which the server takes, too
	g, err := s.model.Generate(t.Context(), plain)
	want := all(t, g, err)
	p.converse(s, asked, "/v1/completions", want)
	if got := value[string](p, "document.querySelector('article.assistant .body').textContent"); got != want {
		t.Errorf("the page shows %q, want %q", got, want)
	}
	p.until("document.querySelector('.rate').getBoundingClientRect().bottom < document.querySelector('footer').getBoundingClientRect().top")
	p.picture("plain")

	s = open(t, "chatml")
	now.Store(s)
	p.reload()
	p.until("document.querySelector('#method').options.length > 2")
	p.click("nav .new")
	p.until("document.querySelector('#text').placeholder === 'Ask something'")
	question := strings.TrimSpace(asked) // as the page sends it
	g, err = s.model.Chat(t.Context(), []grove.Message{{Role: "user", Content: question}}, grove.ChatOptions{}, plain)
	p.converse(s, asked, "/v1/chat/completions", all(t, g, err))
	p.picture("chat")
}

// converse sends a message and expects figures and text while the answer comes, the tint of just those tokens that were
// drafted, and in the end the answer of plain decoding.
func (p *tab) converse(s *real, message, route, want string) {
	p.Helper()
	t := p.TB.(*testing.T)
	p.send(message)
	p.until("running?.turn.stats?.tokens > %d", events/2)
	p.until("document.querySelector('.busy article.assistant .rate') && document.querySelector('.accepted')")
	rate, accepted := value[string](p, "document.querySelector('.rate').textContent"), value[string](p, "document.querySelector('.accepted').textContent")
	if !regexp.MustCompile(`^[1-9][\d.]* tokens/s$`).MatchString(rate) || !regexp.MustCompile(`^\d+ of \d+ draft tokens? accepted$`).MatchString(accepted) {
		t.Errorf("while the answer comes: %q, %q", rate, accepted)
	}
	if got := value[string](p, "said(running.turn)"); got == "" || len(got) >= len(want) || !strings.HasPrefix(want, got) {
		t.Errorf("while the answer comes the page shows %q of %q", got, want)
	}
	select {
	case s.halt <- struct{}{}:
	case <-time.After(testTimeout):
		t.Fatal("the stream does not halt")
	}
	p.answered()
	path, runs := s.runs(t)
	if path != route || strings.Join(runs, "") != want {
		t.Errorf("%s says %q, the library %q", path, runs, want)
	}
	if diff := cmp.Diff(runs, value[[]string](p, "chat.turns.at(-1).runs")); diff != "" {
		t.Errorf("the page shows other runs (-sent +shown):\n%s", diff)
	}
	var drafts string
	for i := 1; i < len(runs); i += 2 {
		drafts += runs[i]
	}
	tinted := strings.Join(value[[]string](p, drafted), "")
	if strip := regexp.MustCompile(`\s+`); drafts == "" || strip.ReplaceAllString(tinted, "") != strip.ReplaceAllString(drafts, "") {
		t.Errorf("tinted: %q, want %q", tinted, drafts)
	}
}
