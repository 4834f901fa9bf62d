// Package server serves models over HTTP, by OpenAI's API and by llama.cpp's own. It honours each field of a request or
// refuses it by name; an answer is the same under load as alone.
//
// An API is a package below this one (openai, llamacpp, ...) with a list of routes; package driver is what they share. The router
// (router.go) says who may call them, and hands a request to the handler of its route.
package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"grove/internal/weights/find"
	"grove/server/access"
	"grove/server/batches"
	"grove/server/driver"
	"grove/server/far"
	"grove/server/ollama"
	"grove/server/serving"
	"grove/server/traces"
	"grove/server/wire"
)

// Config says how models are served. The zero value is the usual case.
type Config struct {
	serving.Config
	Access     *access.Gate // who may call; nil: this machine alone, without keys
	Body       int64        // bytes of a request at most; 0: 16 MiB
	Strict     bool         // refuse fields that a route does not read
	AdapterDir string       // of the adapters that clients may open; "": none
	Verifies   bool         // near servers may send requests, and drafts for their answers, over HTTP/2
	Verifier   *far.Proxy   // of the requests to models; nil: they are answered here
	Pull       bool         // clients may pull models, and delete those of the catalog
	Store      *find.Store  // into which models are pulled; nil: that of the environment
	Names      string       // file of the names that clients make of models; "": they last as long as the server

	// WriteTimeout is how long a client may take to read a piece of a stream, a third of it how long for the header of a request, and
	// twice how long for a whole request; 0: 30 s.
	WriteTimeout time.Duration

	Connections int         // open at a time; 0: 1024
	TLS         *tls.Config // of connections, with a certificate; nil: they are plain
	PathPrefix  string      // of the paths of all routes, such as /llm; "": none. It begins with a slash and does not end with one

	Metrics []serving.MetricNames // none: grove's
	Traces  *traces.Tracer        // of requests; nil: none. The server does not close it
	Batches *batches.Service      // files and batches of clients; nil: none are kept. The server starts and closes it
}

// Entry is a model to serve.
type Entry = serving.Entry

// Server serves models. It is an [http.Handler], safe for concurrent use.
type Server struct {
	config  Config
	gate    *access.Gate
	routes  *http.ServeMux
	paths   []string // of the routes, without those that name something
	driver  *driver.Server
	pool    *serving.Pool
	metrics http.Handler
	far     *far.Verifier // nil: near servers may send nothing
	batches *batches.Service
	ready   atomic.Bool
}

// New makes a server without models; see [Server.Add] and [Server.Load].
func New(c Config) *Server {
	c.Connections = cmp.Or(c.Connections, connections)
	c.Body, c.WriteTimeout = cmp.Or(c.Body, bodyBytes), cmp.Or(c.WriteTimeout, driver.WriteTime)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Log = serving.RequestLog(c.Log)
	if len(c.Metrics) == 0 {
		c.Metrics = []serving.MetricNames{serving.MetricsGrove}
	}
	s := &Server{config: c, gate: c.Access, pool: serving.NewPool(c.Config)}
	s.driver = &driver.Server{Pool: s.pool, Body: c.Body, Strict: c.Strict, WriteTimeout: c.WriteTimeout, Log: c.Log, Traces: c.Traces, Began: time.Now(), Pull: c.Pull, Store: c.Store}
	if s.gate == nil {
		s.gate = access.Local()
	}
	figures := s.pool.Metrics().Register(c.Metrics...)
	if c.Verifier != nil {
		figures.Register(c.Verifier)
	}
	s.metrics = figures
	if c.Verifies {
		s.far = &far.Verifier{Handler: http.HandlerFunc(s.answer), Body: c.Body}
	}
	if s.batches = c.Batches; s.batches == nil {
		s.batches = new(batches.Service)
	}
	figures.Register(s.batches)
	s.route()
	return s
}

// Add adds a model under its name. The first one answers requests that name none. It is called before [Server.Load].
func (s *Server) Add(m Entry) error { return s.pool.Add(m) }

// Load opens the models, unless they are opened on demand. Until it returns, requests are answered with 503.
func (s *Server) Load(ctx context.Context) error {
	if s.config.Names != "" {
		if err := ollama.Restore(s.pool.Names(), s.config.Names); err != nil {
			return err
		}
	}
	if err := s.pool.Load(ctx); err != nil {
		return err
	}
	s.ready.Store(true)
	s.batches.Start(s)
	return nil
}

// Owner implements [batches.Host].
func (s *Server) Owner(folder string) *access.Caller { return s.gate.Owner(folder) }

// Identity names what answers depend on besides requests: the models of some names, which it opens, and the numerics. Names that are not served are left out. Errors: ctx's, those of
// models that cannot be opened.
func (s *Server) Identity(ctx context.Context, models []string) (string, error) {
	var all []string
	for _, name := range models {
		h, leave, err := s.pool.Use(ctx, name)
		if api := new(wire.Error); errors.As(err, &api) && api.Status == http.StatusNotFound {
			continue
		}
		if err != nil {
			return "", err
		}
		if name := h.Identity(); !slices.Contains(all, name) {
			all = append(all, name)
		}
		leave()
	}
	return strings.Join(append(all, "numerics "+driver.Fingerprint), "; "), nil
}

// Stop cancels all running requests: their clients get an error that says so. New requests are refused.
func (s *Server) Stop() {
	s.batches.Stop()
	s.pool.Stop()
	if s.far != nil {
		s.far.Close()
	}
}

// Close stops the server and closes the models, and the files and batches.
func (s *Server) Close() error {
	err := s.batches.Close()
	return errors.Join(err, s.pool.Close())
}
