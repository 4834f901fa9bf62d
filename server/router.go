package server

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"grove/internal/options"
	"grove/server/access"
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
	own := s.ownRoutes()
	if s.far != nil {
		own = append(own, s.far.Routes()...)
	}
	own = append(own, s.batches.Routes()...)
	for _, r := range slices.Concat(s.passed(openai.Routes(), llamacpp.Routes(), anthropic.Routes(), ollama.Routes(), openai.RerankRoutes(), openai.AdapterRoutes(s.config.AdapterDir)), own) {
		for _, p := range r.Patterns {
			s.routes.HandleFunc(p, s.handler(r))
			if _, path, _ := strings.Cut(p, " "); !strings.Contains(path, "{") && !slices.Contains(s.paths, path) {
				s.paths = append(s.paths, path)
			}
		}
	}
	for path, errors := range errorForms {
		s.routes.HandleFunc(path, s.handler(driver.Route{Access: driver.Linked, Handle: s.noRoute, Errors: errors}))
	}
}

// passed returns the routes of APIs. Where another server verifies, requests to models are passed on.
func (s *Server) passed(apis ...[]driver.Route) []driver.Route {
	all := slices.Concat(apis...)
	for i, r := range all {
		if s.config.Verifier != nil && r.Access == driver.Ready {
			all[i].Handle = func(x *driver.Request) error {
				return s.config.Verifier.Pass(x, func() error { return r.Handle(x) })
			}
		}
	}
	return all
}

// errorForms are the forms of the errors that are not of a route: of paths, and of those below them, that end with a slash.
var errorForms = map[string]driver.ErrorForm{
	"/": nil, "/api/": ollama.ErrorBody, "/v1/messages": anthropic.ErrorBody, "/v1/messages/": anthropic.ErrorBody,
}

// ownRoutes returns the routes of no API.
func (s *Server) ownRoutes() []driver.Route {
	return []driver.Route{
		{Access: driver.Open, Handle: s.health, Patterns: []string{"GET /health", "GET /v1/health"}},
		{Access: driver.Linked, Handle: chatPage, Patterns: []string{"GET /{$}"}},
		{Access: driver.Keyed, Handle: s.showMetrics, Patterns: []string{"GET /metrics"}},
		{Access: driver.Keyed, Handle: s.listSessions, Patterns: []string{"GET /sessions"}},
		{Access: driver.Keyed, Handle: s.deleteSession, Patterns: []string{"DELETE /sessions/{name}"}},
	}
}

// handler returns the handler of a route.
func (s *Server) handler(r driver.Route) http.HandlerFunc {
	return func(w http.ResponseWriter, h *http.Request) {
		s.gate.Share(w.Header(), h)
		s.driver.Answer(w, h, r, func(x *driver.Request) error { return s.admits(x, r) })
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

// showMetrics handles GET /metrics, which tell what all keys do together.
func (s *Server) showMetrics(x *driver.Request) error {
	if err := access.CallerOf(x.R.Context()).Operates(); err != nil {
		return err
	}
	s.metrics.ServeHTTP(x.W, x.R)
	return nil
}

// listSessions handles GET /sessions.
func (s *Server) listSessions(x *driver.Request) error {
	all, err := s.config.Sessions.List(access.CallerOf(x.R.Context()))
	if err != nil {
		return err
	}
	return x.Reply(map[string]any{"object": "list", "data": all})
}

// deleteSession handles DELETE /sessions/{name}.
func (s *Server) deleteSession(x *driver.Request) error {
	name := x.R.PathValue("name")
	if err := s.config.Sessions.Delete(access.CallerOf(x.R.Context()), name); err != nil {
		return err
	}
	return x.Reply(map[string]any{"id": name, "object": "session", "deleted": true})
}

// noRoute refuses a path that is no route, or is one for other methods.
func (s *Server) noRoute(x *driver.Request) error {
	path := wire.Clip(s.config.PathPrefix + x.R.URL.Path)
	var methods []string
	for _, m := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete} {
		other := &http.Request{Method: m, Host: x.R.Host, URL: x.R.URL}
		if _, pattern := s.routes.Handler(other); strings.HasPrefix(pattern, m+" ") {
			methods = append(methods, m)
		}
	}
	if len(methods) > 0 {
		x.W.Header().Set("Allow", strings.Join(append(methods, http.MethodOptions), ", "))
		message := path + " takes " + strings.Join(methods, " and ")
		return &wire.Error{Status: http.StatusMethodNotAllowed, Message: message, Type: wire.TypeInvalid, Code: "method_not_allowed"}
	}
	return &wire.Error{Status: http.StatusNotFound, Message: "there is no " + path + s.meant(x.R.URL.Path), Type: wire.TypeInvalid, Code: "not_found"}
}

// meant returns what an error says about the route that a path was probably meant to be: a route below it, where a client uses its base address alone; one with a
// prefix less, as where a client adds /v1 to a base address that has it; or one that is like it.
func (s *Server) meant(path string) string {
	path = strings.TrimSuffix(path, "/")
	did := func(route string) string { return "; did you mean " + strconv.Quote(s.config.PathPrefix+route) + "?" }
	base := fmt.Sprintf(" The base address of clients is http://HOST:PORT%[1]s/v1 for OpenAI's API, http://HOST:PORT%[1]s for others", s.config.PathPrefix)
	if slices.Contains(s.paths, path) {
		return did(path)
	}
	if path != "" && slices.ContainsFunc(s.paths, func(route string) bool { return strings.HasPrefix(route, path+"/") }) {
		return "; clients add the name of a route to it." + base
	}
	for rest := path; rest != ""; {
		_, rest, _ = strings.Cut(strings.TrimPrefix(rest, "/"), "/")
		if strings.Contains(rest, "/") && slices.Contains(s.paths, "/"+rest) {
			return did("/"+rest) + base
		}
	}
	known := make([]string, len(s.paths))
	for i, route := range s.paths {
		known[i] = s.config.PathPrefix + route
	}
	return options.NearHint(s.config.PathPrefix+path, known)
}

// ServeHTTP implements [http.Handler]. Requests of clients are those below the prefix of paths; the server's own name routes alone.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	access.Busy(r.Context())
	access.CloseMixed(w, r)
	prefix := s.config.PathPrefix
	switch {
	case prefix == "" || access.BehindOf(r.Context()) != nil:
		s.answer(w, r)
	case r.URL.Path == prefix && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		s.handler(driver.Route{Access: driver.Linked, Handle: s.addSlash})(w, r) // the paths in the page are relative to it
	case strings.HasPrefix(r.URL.Path, prefix+"/"):
		http.StripPrefix(prefix, http.HandlerFunc(s.answer)).ServeHTTP(w, r)
	default:
		s.handler(driver.Route{Access: driver.Linked, Handle: s.outside})(w, r)
	}
}

// answer answers a request by its route.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodOptions {
		_, pattern := s.routes.Handler(r) // no route takes OPTIONS
		s.handler(driver.Route{Handle: s.preflight, Errors: errorForms[pattern]})(w, r)
		return
	}
	s.routes.ServeHTTP(w, r)
}

// addSlash leads browsers from the prefix of paths to the page.
func (s *Server) addSlash(x *driver.Request) error {
	http.Redirect(x.W, x.R, s.config.PathPrefix+"/", http.StatusTemporaryRedirect)
	return nil
}

// outside refuses a path that is not below the prefix of paths.
func (s *Server) outside(x *driver.Request) error {
	message := fmt.Sprintf("there is no %s; the routes of this server begin with %s/", wire.Clip(x.R.URL.Path), s.config.PathPrefix)
	return &wire.Error{Status: http.StatusNotFound, Message: message, Type: wire.TypeInvalid, Code: "not_found"}
}

// preflight answers OPTIONS, by which browsers ask which requests a page may send.
func (s *Server) preflight(x *driver.Request) error { return s.gate.Preflight(x.W, x.R) }

// admits returns an error where a request may not be handled. It notes the caller and takes the request from the limits of its key:
// requests that compute are POST. Those of the server's own batches were admitted when the batch was made.
func (s *Server) admits(x *driver.Request, r driver.Route) error {
	a := r.Access
	if caller := access.BehindOf(x.R.Context()); caller != nil {
		x.R = x.R.WithContext(access.With(x.R.Context(), caller))
		return nil
	}
	if err := access.CheckHeader(x.R.Header); err != nil || a == driver.Open {
		return err
	}
	if err := s.gate.Check(x.R, a == driver.Linked); err != nil || a == driver.Linked {
		return err
	}
	caller, err := s.gate.Caller(x.R)
	if err != nil {
		return err
	}
	x.R = x.R.WithContext(access.With(x.R.Context(), caller))
	check := access.CheckBody
	if r.Form {
		check = s.gate.CheckForm
	}
	err = check(x.R)
	if err == nil { // the body of a request that is not admitted stays packed
		err = access.Unpack(x.W.Header(), x.R)
	}
	if err != nil {
		return err
	}
	switch {
	case a == driver.Ready && !s.ready.Load():
		return wire.ErrLoading
	case x.R.Method == http.MethodPost:
		return caller.Take(x.W.Header())
	}
	return nil
}
