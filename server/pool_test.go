package server_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"grove"
	"grove/internal/gopher"
	"grove/server"
	"grove/server/serving"
)

// counting counts how often a model was opened.
func counting(s server.Entry, n *atomic.Int64) server.Entry {
	open := s.Open
	s.Open = func(ctx context.Context, memory uint64) (*grove.Model, error) {
		n.Add(1)
		return open(ctx, memory)
	}
	return s
}

func (s *site) status(t testing.TB, model string) any {
	_, text, _ := s.do(t, "GET", "/v1/models/"+model, "")
	return parse(t, text).at("status/value")
}

// TestOnDemand: a model is opened once, by the first requests for it, closed after some time without requests, and opened
// again.
func TestOnDemand(t *testing.T) {
	var opened [2]atomic.Int64
	s := serveModels(t, server.Config{Config: serving.Config{OnDemand: true, Idle: 300 * time.Millisecond}},
		counting(source("a", gopher.Model(), options), &opened[0]), counting(source("b", gopher.Model(), options), &opened[1]))
	if n := opened[0].Load() + opened[1].Load(); n != 0 || s.status(t, "b") != "unloaded" {
		t.Errorf("%d models were opened before anybody asked, b is %v", n, s.status(t, "b"))
	}
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() { s.post(t, "/v1/completions", `{"model":"b","prompt":"a","max_tokens":2}`) })
	}
	clients.Wait()
	if opened[0].Load() != 0 || opened[1].Load() != 1 || s.status(t, "b") != "loaded" {
		t.Errorf("opened %d and %d times, b is %v", opened[0].Load(), opened[1].Load(), s.status(t, "b"))
	}
	if _, text, _ := s.do(t, "GET", "/v1/models", ""); strings.Count(text, `"meta":null`) != 1 {
		t.Errorf("models: %s", text)
	}
	eventually(t, "an idle model stays open", func() bool { return s.status(t, "b") == "unloaded" })
	s.post(t, "/v1/completions", `{"model":"b","prompt":"a","max_tokens":2}`)
	if opened[1].Load() != 2 {
		t.Errorf("opened %d times", opened[1].Load())
	}
}

// TestIdleWhileUsed: a model whose answer takes longer than the idle time stays open.
func TestIdleWhileUsed(t *testing.T) {
	s := serveModels(t, server.Config{Config: serving.Config{Idle: time.Millisecond}}, long(t, 2))
	o := s.post(t, "/v1/completions", `{"prompt":"a","max_tokens":300,"ignore_eos":true}`)
	if o.at("usage/completion_tokens") != 300.0 {
		t.Errorf("%v", o)
	}
}

// TestMemoryShared: models that do not fit together take turns.
func TestMemoryShared(t *testing.T) {
	size := func() uint64 {
		m, err := grove.OpenBytes(gopher.Model(), options)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		return uint64(m.Info().WeightBytes + m.Info().CacheBytes)
	}()
	s := serveModels(t, server.Config{Config: serving.Config{OnDemand: true, Memory: size * 3 / 2}},
		source("a", gopher.Model(), options), source("b", gopher.Model(), options))
	for _, name := range []string{"a", "b", "a"} {
		s.post(t, "/v1/completions", fmt.Sprintf(`{"model":%q,"prompt":"a","max_tokens":2}`, name))
		other := map[string]string{"a": "b", "b": "a"}[name]
		if s.status(t, name) != "loaded" || s.status(t, other) != "unloaded" {
			t.Errorf("%s is %v, %s is %v", name, s.status(t, name), other, s.status(t, other))
		}
	}
}

// shared serves two models, a and b, of which the memory holds one, and more.
func shared(t *testing.T, c serving.Config, more ...server.Entry) *site {
	t.Helper()
	a, b := long(t, 256), long(t, 256)
	a.Name, b.Name = "a", "b"
	m, err := a.Open(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	c.OnDemand, c.Memory = true, uint64(m.Info().WeightBytes+m.Info().CacheBytes)*3/2
	return serveModels(t, server.Config{Config: c}, append([]server.Entry{a, b}, more...)...)
}

// TestMemoryWaits: a request for a model that does not fit beside one in use waits until that is unused. Requests for the model in use do
// not keep it open without end: those that come behind wait for their turn.
func TestMemoryWaits(t *testing.T) {
	var log journal
	s := shared(t, serving.Config{Log: slog.New(slog.NewJSONHandler(&log, nil))})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	_, body := s.begin(t, ctx, strings.Replace(endless, "{", `{"model":"a",`, 1))
	defer body.Close()
	var clients sync.WaitGroup
	order := make(chan string, 2)
	ask := func(model string) {
		clients.Go(func() {
			if status, text, _ := s.do(t, "POST", "/v1/completions", fmt.Sprintf(`{"model":%q,"prompt":"a","max_tokens":2}`, model)); status != 200 {
				t.Errorf("%s: %d %s", model, status, text)
			}
			order <- model
		})
	}
	ask("b")
	eventually(t, "b does not wait", func() bool {
		return slices.ContainsFunc(log.take(t), func(l map[string]any) bool {
			return l["msg"] == "a model waits for memory that others use" && l["model"] == "b"
		})
	})
	if s.status(t, "a") != "loaded" || s.status(t, "b") != "loading" || s.busy(t) != 1 {
		t.Errorf("a is %v, b is %v", s.status(t, "a"), s.status(t, "b"))
	}
	ask("a")
	time.Sleep(20 * time.Millisecond) // in which it could be answered
	if len(order) > 0 {
		t.Errorf("%s was answered before the stream left", <-order)
	}
	leave()
	clients.Wait()
	if first := <-order; first != "b" {
		t.Errorf("%s was answered first", first)
	}
}

// TestMemoryTurns: clients that ask for two models without end, which do not fit together, all go on, also where the requests for one of
// them overlap.
func TestMemoryTurns(t *testing.T) {
	s := shared(t, serving.Config{})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var others, client sync.WaitGroup
	var answered atomic.Int64
	for range 3 {
		others.Go(func() {
			for ctx.Err() == nil {
				s.post(t, "/v1/completions", `{"model":"a","prompt":"a","max_tokens":30,"ignore_eos":true}`)
				answered.Add(1)
			}
		})
	}
	client.Go(func() {
		for i := range 10 {
			before := answered.Load()
			s.post(t, "/v1/completions", `{"model":"b","prompt":"a","max_tokens":2}`)
			eventually(t, fmt.Sprintf("a is not answered behind request %d for b", i), func() bool { return answered.Load() > before })
		}
	})
	client.Wait()
	leave()
	others.Wait()
}

// TestMemoryLate: a request that has waited for memory in vain gets 503, one whose client leaves waits no more, and the model in use
// goes on.
func TestMemoryLate(t *testing.T) {
	s := shared(t, serving.Config{Wait: 50 * time.Millisecond})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	_, body := s.begin(t, ctx, strings.Replace(endless, "{", `{"model":"a",`, 1))
	defer body.Close()
	status, text, h := s.do(t, "POST", "/v1/completions", `{"model":"b","prompt":"a"}`)
	if message, _, param, code := wantError(t, text); status != 503 || code != "memory_full" || param != "model" || h.Get("Retry-After") != "5" || !strings.Contains(message, `"b" does not fit`) {
		t.Errorf("%d %s %v", status, text, h)
	}
	if s.status(t, "b") != "unloaded" || s.busy(t) != 1 {
		t.Errorf("b is %v, %d texts are computed", s.status(t, "b"), s.busy(t))
	}
}

// TestMemoryLeft: a client that leaves while its model waits for memory ends the waiting.
func TestMemoryLeft(t *testing.T) {
	s := shared(t, serving.Config{Wait: time.Hour})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	_, body := s.begin(t, ctx, strings.Replace(endless, "{", `{"model":"a",`, 1))
	defer body.Close()
	for range 3 {
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() {
			r, err := http.NewRequestWithContext(ctx, "POST", s.url+"/v1/completions", strings.NewReader(`{"model":"b","prompt":"a"}`))
			if err == nil {
				_, err = http.DefaultClient.Do(r)
			}
			gone <- err
		}()
		eventually(t, "b does not wait", func() bool { return s.status(t, "b") == "loading" })
		leave()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		eventually(t, "b still waits", func() bool { return s.status(t, "b") == "unloaded" })
		s.post(t, "/v1/completions", `{"model":"a","prompt":"a","max_tokens":1}`)
	}
}

// TestMemoryRefused: a model that cannot be opened for another reason than memory closes no other, and one that does not fit alone is
// refused at once.
func TestMemoryRefused(t *testing.T) {
	broken := server.Entry{Name: "broken", Open: func(context.Context, uint64) (*grove.Model, error) { return nil, errors.New("broken") }}
	huge := server.Entry{Name: "huge", Open: func(context.Context, uint64) (*grove.Model, error) {
		return nil, fmt.Errorf("huge: %w", grove.ErrMemory)
	}}
	s := shared(t, serving.Config{Wait: time.Hour}, broken, huge)
	s.post(t, "/v1/completions", `{"model":"a","prompt":"a","max_tokens":1}`)
	for _, tt := range []struct {
		model string
		then  any // the status of a
	}{{"broken", "loaded"}, {"huge", "unloaded"}} {
		status, text, _ := s.do(t, "POST", "/v1/completions", fmt.Sprintf(`{"model":%q,"prompt":"a"}`, tt.model))
		if _, _, _, code := wantError(t, text); status != 503 || code != "model_failed" || s.status(t, "a") != tt.then {
			t.Errorf("%s: %d %s, a is %v", tt.model, status, text, s.status(t, "a"))
		}
	}
}

// TestUnopened: the error for a model that cannot be opened does not have the cause's message, and the next request tries again.
func TestUnopened(t *testing.T) {
	var n atomic.Int64
	bad := counting(server.Entry{Name: "bad", Open: func(context.Context, uint64) (*grove.Model, error) {
		return nil, errors.New("open /secret/path: no")
	}}, &n)
	s := serveModels(t, server.Config{Config: serving.Config{OnDemand: true}}, bad)
	for range 2 {
		status, text, _ := s.do(t, "POST", "/v1/completions", `{"prompt":"a"}`)
		if _, kind, _, code := wantError(t, text); status != 503 || kind != "unavailable_error" || code != "model_failed" || strings.Contains(text, "secret") {
			t.Errorf("%d %s", status, text)
		}
	}
	if n.Load() != 2 {
		t.Errorf("tried %d times", n.Load())
	}
}

// TestTimingsPerToken: each part of a stream has one token and what the answer took so far; accepted drafts are
// counted where they come.
func TestTimingsPerToken(t *testing.T) {
	s := serveChat(t)
	whole := s.post(t, "/v1/chat/completions", "{"+hello+`,"max_tokens":40,"temperature":0}`)
	for _, path := range []string{"/v1/chat/completions", "/v1/completions", "/completion"} {
		body := "{" + hello + `,"max_tokens":40,"temperature":0,"stream":true,"timings_per_token":true}`
		if path != "/v1/chat/completions" {
			body = `{"prompt":"system: Be brief.\nuser: func main()\nassistant:","max_tokens":40,"temperature":0,"stream":true,"timings_per_token":true}`
		}
		_, text, _ := s.do(t, "POST", path, body)
		var content string
		n, accepted := 0.0, 0.0
		for _, data := range split(t, text) {
			if data == "[DONE]" {
				break
			}
			e := parse(t, data)
			if e.at("choices/0/delta/role") != nil && e["timings"] != nil {
				t.Errorf("%s: no token, and yet timings: %s", path, data)
			}
			for _, at := range []string{"choices/0/delta/content", "choices/0/text", "content"} {
				if piece, ok := e.at(at).(string); ok {
					content += piece
				}
			}
			if e["timings"] == nil || e["stop"] == true {
				continue
			}
			more := e.at("timings/draft_n_accepted").(float64) - accepted
			switch k := e.at("timings/predicted_n").(float64); {
			case k == n && more != 0 || k != n && k != n+1 || more != 0 && more != 1:
				t.Errorf("%s: behind %v tokens, %v of them drafted, comes %s", path, n, accepted, data)
			default:
				n, accepted = k, accepted+more
			}
		}
		if want := whole.at("choices/0/message/content"); content != want || n != 40 || accepted == 0 || accepted >= n {
			t.Errorf("%s: %v tokens, %v of them drafted, text %q, want %q", path, n, accepted, content, want)
		}
	}
}

// TestTimeout: an answer that takes longer than its request allows ends with an error that says so.
func TestTimeout(t *testing.T) {
	s := serveModels(t, server.Config{}, long(t, 2))
	status, text, _ := s.do(t, "POST", "/v1/completions", `{"prompt":"a","max_tokens":90000,"ignore_eos":true,"method":"off","timeout":0.05}`)
	if _, _, _, code := wantError(t, text); status != 504 || code != "timeout" {
		t.Errorf("%d %s", status, text)
	}
	eventually(t, "an answer goes on", func() bool { return s.busy(t) == 0 })
	for _, body := range []string{`{"prompt":"a","timeout":0}`, `{"prompt":"a","timeout":-1}`, `{"prompt":"a","priority":11}`, `{"prompt":"a","priority":-11}`} {
		if status, text, _ := s.do(t, "POST", "/v1/completions", body); status != 400 {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	s.post(t, "/v1/completions", `{"prompt":"a","max_tokens":2,"priority":-3,"timeout":60}`)
}
