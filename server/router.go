package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"grove/server/wire"
)

// access says which requests a route takes.
type access int

const (
	open   access = iota // all, at any time
	known                // those that show a key
	served               // those that show a key, once the models are loaded
)

// handler answers a request. An error that it returns is the answer where none was sent.
type handler func(*request) error

// route lists the routes.
func (s *Server) route() {
	s.routes = http.NewServeMux()
	methods := map[string]string{}
	add := func(a access, h handler, patterns ...string) {
		for _, p := range patterns {
			method, path, _ := strings.Cut(p, " ")
			methods[strings.TrimSuffix(path, "{$}")] = method
			s.routes.HandleFunc(p, func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, a, h) })
			if method == http.MethodPost {
				s.routes.HandleFunc("OPTIONS "+path, preflight)
			}
		}
	}
	add(open, health, "GET /health", "GET /v1/health")
	add(served, models, "GET /v1/models", "GET /models")
	add(served, oneModel, "GET /v1/models/{name...}")
	add(served, answers[chatRequest], "POST /v1/chat/completions", "POST /chat/completions")
	add(served, answers[responsesRequest], "POST /v1/responses", "POST /responses")
	add(served, answers[completionRequest], "POST /v1/completions")
	add(served, answers[nativeRequest], "POST /completion", "POST /completions")
	add(served, answers[infillRequest], "POST /infill")
	add(served, applyTemplate, "POST /apply-template")
	add(served, embeddings, "POST /v1/embeddings")
	add(served, nativeEmbeddings, "POST /embedding", "POST /embeddings")
	add(served, tokenize, "POST /tokenize")
	add(served, detokenize, "POST /detokenize")
	add(served, props, "GET /props")
	add(served, slots, "GET /slots")
	add(served, slotAction, "POST /slots/{id}")
	add(open, chatPage, "GET /{$}")
	add(known, metrics, "GET /metrics")
	s.routes.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.answer(w, r, open, func(x *request) error { return noRoute(x, methods[r.URL.Path]) })
	})
}

// noRoute refuses a path that is no route, or is one for another method.
func noRoute(x *request, method string) error {
	path := wire.Clip(x.r.URL.Path)
	if method != "" {
		x.w.Header().Set("Allow", method+", OPTIONS")
		return &wire.Error{Status: http.StatusMethodNotAllowed, Message: path + " takes " + method, Type: wire.TypeInvalid, Code: "method_not_allowed"}
	}
	return &wire.Error{Status: http.StatusNotFound, Message: "there is no " + path, Type: wire.TypeInvalid, Code: "not_found"}
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.routes.ServeHTTP(w, r) }

// admits returns an error where a request may not be handled.
func (s *Server) admits(r *http.Request, a access) error {
	switch {
	case a != open && !s.authorized(r):
		return wire.ErrKey
	case a == served && !s.ready.Load():
		return wire.ErrLoading
	}
	return nil
}

// authorized reports whether a request shows a key. It compares all keys, in constant time.
func (s *Server) authorized(r *http.Request) bool {
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

// preflight tells browsers that pages of other origins may send a request.
func preflight(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	allowOrigin(h)
	h.Set("Access-Control-Allow-Methods", "GET, POST")
	h.Set("Access-Control-Allow-Headers", "*, Authorization") // the star does not include Authorization
	h.Set("Access-Control-Max-Age", "86400")
	w.WriteHeader(http.StatusNoContent)
}

func allowOrigin(h http.Header) { h.Set("Access-Control-Allow-Origin", "*") }
