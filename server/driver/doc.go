// Package driver takes one request for answers from its body to its last byte, whatever API it came by. An API is a package of
// its own: it lists its routes, decodes their bodies, and encodes answers; it knows nothing of how they are computed.
//
// A [Route] has a [Handler], which gets a [Request]: one HTTP request, with its answer. The handler of a route that generates is
// that which [Answers] returns for its body. It parses the body into a [Generation], runs that, and feeds its tokens to the [Encoder] of the route, which
// writes them whole or as a [Stream].
package driver

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"grove"
	"grove/internal/weights/find"
	"grove/server/serving"
	"grove/server/traces"
)

// WriteTime is how long a client may take to read an answer that is sent at once.
const WriteTime = 30 * time.Second

// Server holds the state that all routes of a server share. Its fields do not change once it answers. It is safe for concurrent use.
type Server struct {
	Pool         *serving.Pool
	Body         int64         // bytes of a request at most
	Strict       bool          // refuse fields that a route does not read
	WriteTimeout time.Duration // for a client to take a piece of a stream
	Log          *slog.Logger
	Traces       *traces.Tracer // nil: requests are not traced
	Began        time.Time
	Pull         bool        // clients may pull models, and delete those of the catalog
	Store        *find.Store // into which they are pulled; nil: that of the environment
	History      History     // of answers that later requests go on from

	Kept KeptStreams // streams that can be read again

	unread    atomic.Int64 // bytes of streams that wait for their clients
	described sync.Map     // of the models' files: a Described by its path
}

// AccessLevel says which requests a route takes.
type AccessLevel int

// The kinds of access.
const (
	Open   AccessLevel = iota // all requests, at any time
	Linked                    // those of this machine and of pages that may call, and links from elsewhere
	Keyed                     // those of this machine and of pages that may call, with a key where the server has keys
	Ready                     // the same, once the models are loaded
)

// Handler answers a request. An error that it returns is the answer where none was sent.
type Handler func(*Request) error

// Route is a handler and the patterns of package net/http that it answers: a method, a space and a path.
type Route struct {
	Access   AccessLevel
	Handle   Handler
	Patterns []string
	Errors   ErrorForm // nil: OpenAI's
	Form     bool      // the body is a form with parts, not JSON
	Body     any       // a pointer to a body of the route, whose fields have bounds; nil: the route reads none
}

// Fingerprint names the numerics: with the model it decides the bits of answers.
const Fingerprint = grove.Numerics
