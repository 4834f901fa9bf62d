// Package server serves models over HTTP, by OpenAI's API and by llama.cpp's own. What a request asks for is done or
// refused by the name of its field; an answer is the same under load as alone.
package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"grove/server/serving"
	"grove/server/wire"
)

// Config says how models are served. The zero value is the usual case.
type Config struct {
	serving.Config
	Keys []string // requests must show one of these; none: they need not
	Body int64    // bytes of a request; 0: 16 MiB

	// Patience is how long a client may take for what a stream sends at a time, a third of it for the header of a request, and
	// twice as long for all of a request; 0: 30 s.
	Patience time.Duration

	Metrics []serving.MetricNames // none: grove's
}

// Source is a model to serve.
type Source = serving.Source

// Server serves models. It is an [http.Handler], safe for concurrent use.
type Server struct {
	config  Config
	keys    [][sha256.Size]byte
	routes  *http.ServeMux
	pool    *serving.Pool
	metrics http.Handler
	began   time.Time
	ready   atomic.Bool
	last    atomic.Uint64 // number of the last request
}

// New makes a server without models; see [Server.Add] and [Server.Load].
func New(c Config) *Server {
	c.Body, c.Patience = cmp.Or(c.Body, 16<<20), cmp.Or(c.Patience, writeTime)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if len(c.Metrics) == 0 {
		c.Metrics = []serving.MetricNames{serving.MetricsGrove}
	}
	s := &Server{config: c, began: time.Now(), pool: serving.NewPool(c.Config)}
	for _, k := range c.Keys {
		s.keys = append(s.keys, sha256.Sum256([]byte(k)))
	}
	s.metrics = promhttp.HandlerFor(s.pool.Metrics().Register(c.Metrics...), promhttp.HandlerOpts{})
	s.route()
	return s
}

// Add adds a model under its name. The first one answers requests that name none. It is called before [Server.Load].
func (s *Server) Add(m Source) error { return s.pool.Add(m) }

// Load opens the models, unless they are opened on demand. Until it returns, requests are answered with 503.
func (s *Server) Load(ctx context.Context) error {
	if err := s.pool.Load(ctx); err != nil {
		return err
	}
	s.ready.Store(true)
	return nil
}

// Stop ends what is computed: its clients get an error that says so. New requests are refused.
func (s *Server) Stop() { s.pool.Stop() }

// Close stops, and closes the models.
func (s *Server) Close() error { return s.pool.Close() }

// kind says what a route asks before its handler is called.
type kind int

const (
	open   kind = iota // answers anyone, at any time
	known              // wants a key
	served             // wants a key, and the models
)

func (s *Server) route() {
	s.routes = http.NewServeMux()
	methods := map[string]string{}
	add := func(k kind, h func(*exchange) error, patterns ...string) {
		for _, p := range patterns {
			method, path, _ := strings.Cut(p, " ")
			methods[strings.TrimSuffix(path, "{$}")] = method
			s.routes.HandleFunc(p, func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, k, h) })
			if method == http.MethodPost {
				s.routes.HandleFunc("OPTIONS "+path, preflight)
			}
		}
	}
	add(open, s.health, "GET /health", "GET /v1/health")
	add(served, s.models, "GET /v1/models", "GET /models")
	add(served, s.oneModel, "GET /v1/models/{name...}")
	add(served, s.chats, "POST /v1/chat/completions", "POST /chat/completions")
	add(served, s.responses, "POST /v1/responses", "POST /responses")
	add(served, s.applyTemplate, "POST /apply-template")
	add(served, s.completions, "POST /v1/completions")
	add(served, s.completion, "POST /completion", "POST /completions")
	add(served, s.infill, "POST /infill")
	add(served, s.embeddings, "POST /v1/embeddings")
	add(served, s.embedding, "POST /embedding", "POST /embeddings")
	add(served, s.tokenize, "POST /tokenize")
	add(served, s.detokenize, "POST /detokenize")
	add(served, s.props, "GET /props")
	add(served, s.slots, "GET /slots")
	add(served, slot, "POST /slots/{id}")
	add(open, s.page, "GET /{$}")
	add(known, func(x *exchange) error { s.metrics.ServeHTTP(x.w, x.r); return nil }, "GET /metrics")
	s.routes.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.answer(w, r, open, func(x *exchange) error {
			if m := methods[r.URL.Path]; m != "" {
				w.Header().Set("Allow", m+", OPTIONS")
				return &wire.Error{Status: http.StatusMethodNotAllowed, Message: wire.Clip(r.URL.Path) + " takes " + m, Type: wire.TypeInvalid, Code: "method_not_allowed"}
			}
			return &wire.Error{Status: http.StatusNotFound, Message: "there is no " + wire.Clip(r.URL.Path), Type: wire.TypeInvalid, Code: "not_found"}
		})
	})
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.routes.ServeHTTP(w, r) }

// allowed reports whether a request shows a key. All keys are compared, in constant time.
func (s *Server) allowed(r *http.Request) bool {
	if len(s.keys) == 0 {
		return true
	}
	key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		key = r.Header.Get("X-Api-Key")
	}
	sum, found := sha256.Sum256([]byte(key)), 0
	for _, k := range s.keys {
		found |= subtle.ConstantTimeCompare(sum[:], k[:])
	}
	return found == 1
}

// preflight answers browsers that ask whether a page of elsewhere may send a request.
func preflight(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	allowOrigin(h)
	h.Set("Access-Control-Allow-Methods", "GET, POST")
	h.Set("Access-Control-Allow-Headers", "*, Authorization") // which the star does not mean
	h.Set("Access-Control-Max-Age", "86400")
	w.WriteHeader(http.StatusNoContent)
}

func allowOrigin(h http.Header) { h.Set("Access-Control-Allow-Origin", "*") }
