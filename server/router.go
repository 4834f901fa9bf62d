package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"
	"time"

	"grove/server/anthropic"
	"grove/server/driver"
	"grove/server/llamacpp"
	"grove/server/ollama"
	"grove/server/openai"
	"grove/server/page"
	"grove/server/wire"
)

// route lists the routes.
func (s *Server) route() {
	s.routes = http.NewServeMux()
	methods := map[string]string{}
	for _, r := range slices.Concat(openai.Routes(), llamacpp.Routes(), anthropic.Routes(), ollama.Routes(), s.ownRoutes()) {
		for _, p := range r.Patterns {
			method, path, _ := strings.Cut(p, " ")
			methods[strings.TrimSuffix(path, "{$}")] = method
			s.routes.HandleFunc(p, s.handler(r))
			if method == http.MethodPost {
				s.routes.HandleFunc("OPTIONS "+path, preflight)
			}
		}
	}
	s.routes.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.handler(driver.Route{Handle: func(x *driver.Request) error { return noRoute(x, methods[r.URL.Path]) }})(w, r)
	})
}

// ownRoutes returns the routes of no API.
func (s *Server) ownRoutes() []driver.Route {
	return []driver.Route{
		{Access: driver.Open, Handle: s.health, Patterns: []string{"GET /health", "GET /v1/health"}},
		{Access: driver.Open, Handle: chatPage, Patterns: []string{"GET /{$}"}},
		{Access: driver.Known, Handle: s.showMetrics, Patterns: []string{"GET /metrics"}},
	}
}

// handler returns the handler of a route.
func (s *Server) handler(r driver.Route) http.HandlerFunc {
	return func(w http.ResponseWriter, h *http.Request) {
		allowOrigin(w.Header())
		s.driver.Answer(w, h, r, func(h *http.Request) error { return s.admits(h, r.Access) })
	}
}

// health handles GET /health: 503 until the models are loaded and once the server stops.
func (s *Server) health(x *driver.Request) error {
	switch {
	case s.pool.Ending():
		return wire.ErrStopping
	case !s.ready.Load():
		return wire.ErrLoading
	}
	return x.Reply(map[string]string{"status": "ok"})
}

// chatPage handles GET /. Where requests need a key, the page asks the user for it.
func chatPage(x *driver.Request) error {
	_ = http.NewResponseController(x.W).SetWriteDeadline(time.Now().Add(driver.WriteTime)) // a recorder of tests has none
	page.ServeHTTP(x.W, x.R)
	return nil
}

// showMetrics handles GET /metrics.
func (s *Server) showMetrics(x *driver.Request) error {
	s.metrics.ServeHTTP(x.W, x.R)
	return nil
}

// noRoute refuses a path that is no route, or is one for another method.
func noRoute(x *driver.Request, method string) error {
	path := wire.Clip(x.R.URL.Path)
	if method != "" {
		x.W.Header().Set("Allow", method+", OPTIONS")
		return &wire.Error{Status: http.StatusMethodNotAllowed, Message: path + " takes " + method, Type: wire.TypeInvalid, Code: "method_not_allowed"}
	}
	return &wire.Error{Status: http.StatusNotFound, Message: "there is no " + path, Type: wire.TypeInvalid, Code: "not_found"}
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.routes.ServeHTTP(w, r) }

// admits returns an error where a request may not be handled.
func (s *Server) admits(r *http.Request, a driver.Access) error {
	switch {
	case a != driver.Open && !s.authorized(r):
		return wire.ErrKey
	case a == driver.Served && !s.ready.Load():
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
