package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"grove/server/page"
)

// fake is a server whose answers a test decides.
type fake struct {
	*httptest.Server
	t testing.TB

	mu       sync.Mutex
	answer   http.HandlerFunc // of chats; nil: 404
	complete http.HandlerFunc // of completions; nil: 404
	models   http.HandlerFunc // before the list, which it may refuse by a status
	props    string           // the answer to /props
	requests []map[string]any
	stray    []string // paths that no page asks for
}

// strays returns the paths of requests that a page should not have sent.
func (f *fake) strays() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stray
}

// props is what a model says of itself.
const props = `{"methods":[
	{"name":"lookup","grade":"exact","available":true,"paper":"Prompt lookup decoding, 2023"},
	{"name":"guided","grade":"exact","available":true,"needs":"a prediction, or a source"},
	{"name":"draft","grade":"exact","available":false,"needs":"a draft model","paper":"A paper","reason":"it needs a draft model: none is given"},
	{"name":"sjd","grade":"same-distribution","available":true,"paper":"Speculative Jacobi Decoding, 2024"},
	{"name":"sam","grade":"exact","available":true,"paper":"SAM decoding, 2024"}],
	"n_ctx_train":6000,"default_generation_settings":{"n_ctx":4096,"params":{"temperature":0.8,"top_k":40,"top_p":0.95,"min_p":0.05,"seed":-1}}}`

const modelName = "willow-2b-instruct-q4_k_m"

// serve starts a server that answers chats.
func serve(t testing.TB, answer http.HandlerFunc) *fake {
	f := &fake{t: t, answer: answer, props: props}
	m := http.NewServeMux()
	m.HandleFunc("GET /{$}", page.ServeHTTP)
	m.HandleFunc("GET /v1/models", f.list)
	m.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.stray = append(f.stray, r.URL.Path)
		http.NotFound(w, r)
	})
	m.HandleFunc("GET /props", func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		fmt.Fprint(w, f.props)
	})
	m.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { f.serve(w, r, &f.answer) })
	m.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) { f.serve(w, r, &f.complete) })
	f.Server = httptest.NewServer(m)
	t.Cleanup(func() { f.CloseClientConnections(); f.Close() })
	return f
}

func (f *fake) list(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	before := f.models
	f.mu.Unlock()
	if before != nil {
		n := &noted{ResponseWriter: w}
		if before(n, r); n.sent {
			return
		}
	}
	fmt.Fprintf(w, `{"data":[{"id":%q,"status":{"value":"loaded"}},{"id":"other","status":{"value":"unloaded"},"capabilities":["completion","tools"]},{"id":"encoder","capabilities":["embedding"]}]}`, modelName)
}

// noted tells whether an answer was begun.
type noted struct {
	http.ResponseWriter
	sent bool
}

func (n *noted) WriteHeader(status int) { n.sent = true; n.ResponseWriter.WriteHeader(status) }

func (f *fake) serve(w http.ResponseWriter, r *http.Request, handler *http.HandlerFunc) {
	body, err := io.ReadAll(r.Body)
	var request map[string]any
	if err != nil || json.Unmarshal(body, &request) != nil {
		f.t.Errorf("a request that is no JSON: %q, %v", body, err)
	}
	f.mu.Lock()
	f.requests = append(f.requests, request)
	h := *handler
	f.mu.Unlock()
	if h == nil {
		refuse(w, http.StatusNotFound, "there is no "+r.URL.Path, "", "not_found")
		return
	}
	h(w, r)
}

// request returns the last request.
func (f *fake) request() map[string]any {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.requests) == 0 {
		f.t.Fatal("there was no request")
	}
	return f.requests[len(f.requests)-1]
}

// now changes how requests are answered.
func (f *fake) now(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// refuse answers with an error, as the server writes them.
func refuse(w http.ResponseWriter, status int, message, param, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	body, _ := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": "invalid_request_error", "param": param, "code": code}})
	_, _ = w.Write(body)
}

// piece is a token of an answer; draft: it was an accepted draft.
type piece struct {
	text  string
	draft bool
}

// teller sends an answer piece by piece.
type teller struct {
	w                        http.ResponseWriter
	plain                    bool
	tokens, accepted, rounds int
}

func (s *teller) timings() map[string]any {
	return map[string]any{
		"prompt_n": 5, "cache_n": 64, "prompt_per_second": 210.4, "prompt_ms": 24, "predicted_n": s.tokens, "predicted_per_second": 41.27, "draft_n": s.accepted + s.accepted/2, "draft_n_accepted": s.accepted, "rounds": s.rounds,
	}
}

func (s *teller) event(v any) {
	body, _ := json.Marshal(v)
	fmt.Fprintf(s.w, "data: %s\n\n", body)
	_ = http.NewResponseController(s.w).Flush() // a client that has gone is what some tests are about
}

func (s *teller) choice(text string, finish any) map[string]any {
	if s.plain {
		return map[string]any{"index": 0, "text": text, "finish_reason": finish}
	}
	return map[string]any{"index": 0, "delta": map[string]any{"content": text}, "finish_reason": finish}
}

func (s *teller) tell(all ...piece) {
	for _, p := range all {
		s.tokens++
		if p.draft {
			s.accepted++
		} else {
			s.rounds++
		}
		s.event(map[string]any{"choices": []any{s.choice(p.text, nil)}, "usage": nil, "timings": s.timings()})
	}
}

// think sends thoughts.
func (s *teller) think(all ...string) {
	for _, text := range all {
		s.tokens++
		s.rounds++
		s.event(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{"reasoning_content": text}}}, "usage": nil, "timings": s.timings()})
	}
}

func (s *teller) end() { s.endWith("stop") }

// endWith ends an answer; why: its finish_reason.
func (s *teller) endWith(why string) {
	s.event(map[string]any{"choices": []any{s.choice("", why)}, "usage": nil, "timings": s.timings()})
	s.event(map[string]any{"choices": []any{}, "usage": map[string]int{"prompt_tokens": 69, "completion_tokens": s.tokens}, "timings": s.timings()})
	fmt.Fprint(s.w, "data: [DONE]\n\n")
}

// begin begins a stream: a sign of life, and the role.
func begin(w http.ResponseWriter) *teller {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, ": computing\n\n")
	s := &teller{w: w}
	s.event(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{"role": "assistant", "content": ""}}}})
	return s
}

// tells answers with pieces, every time.
func tells(all ...piece) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		s := begin(w)
		s.tell(all...)
		s.end()
	}
}

// gate lets a test decide when an answer goes on.
type gate chan struct{}

func (g gate) wait(r *http.Request) bool {
	select {
	case <-g:
		return true
	case <-r.Context().Done():
		return false
	case <-time.After(testTimeout):
		return false
	}
}
