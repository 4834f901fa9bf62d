package driver

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"time"

	"grove/server/access"
	"grove/server/serving"
	"grove/server/traces"
	"grove/server/wire"
)

// Request is one HTTP request and its answer. It is for one goroutine.
type Request struct {
	W      http.ResponseWriter
	R      *http.Request
	Server *Server
	ID     string    // unique among those of the server; it tells nothing of others
	Began  time.Time // when its header had been read

	errors ErrorForm
	sent   int // the status, once it is sent
	held   *serving.Held
	leave  []func() // called when the request is answered
	// unsaved is the error by which the session of an answer could not be kept, which is told beside the answer; nil: none.
	unsaved error
}

// ErrorForm returns the body of an answer that is an error, in the form of an API.
type ErrorForm func(*wire.Error) any

// Answer answers a request by the handler of a route, where admits has no error. An error is the answer where none was sent. A
// panic fails this request alone. The answer has the name that the request has in the log, as X-Request-Id.
func (s *Server) Answer(w http.ResponseWriter, r *http.Request, route Route, admits func(*Request) error) {
	start := time.Now()
	x := &Request{Server: s, Began: start, ID: strconv.FormatUint(rand.Uint64(), 36) + "-" + strconv.FormatInt(start.UnixNano(), 36), errors: route.Errors}
	name := requestName(r, x.ID)
	w.Header().Set(idHeader, name)
	w.Header().Set(shortIDHeader, name)
	r, traced := s.Traces.Request(r)
	x.R = r.WithContext(serving.WithRequestID(r.Context(), name))
	x.W = &recorder{ResponseWriter: w, x: x}
	x.held = s.Pool.Work().Hold()
	defer func() {
		for _, f := range x.leave {
			f()
		}
		x.held.Release()
	}()
	var err error
	defer func() {
		x.log(start, err)
		fault := ""
		if err != nil {
			fault = wire.ErrorOf(err).Label()
		}
		traced(x.sent, fault)
	}()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // streams set their own
	if err = admits(x); err == nil {
		err = x.handle(route.Handle)
	}
	if api := new(wire.Error); r.Context().Err() != nil && err != nil && !errors.As(err, &api) && !errors.Is(err, os.ErrDeadlineExceeded) {
		err = wire.ErrLeft // whatever failed, it is for that
	}
	if err != nil && x.sent == 0 { // else the client has the error
		x.refuse(wire.ErrorOf(err))
	}
}

// log writes the line of a request that is answered: who sent it, and why it failed.
func (x *Request) log(start time.Time, err error) {
	attrs := []any{
		"method", x.R.Method, "path", wire.Clip(x.R.URL.Path), "status", x.sent, "ms", time.Since(start).Milliseconds(), "from", x.R.RemoteAddr,
	}
	if name := access.CallerOf(x.R.Context()).Name(); name != "" {
		attrs = append(attrs, "key", name)
	}
	if id := traces.ID(x.R.Context()); id != "" {
		attrs = append(attrs, "trace_id", id)
	}
	if err != nil {
		e := wire.ErrorOf(err)
		if attrs = append(attrs, "error", e.Message, "param", e.Param, "code", e.Code); e.Cause != nil {
			attrs = append(attrs, "cause", e.Cause.Error())
		}
	}
	x.Server.Log.InfoContext(x.R.Context(), "request", attrs...)
}

// idHeader names a request in the log, for its client and for those between.
const idHeader = "X-Request-Id"

// shortIDHeader is what Anthropic's clients call it.
const shortIDHeader = "Request-Id"

// maxRequestName bounds the name that a client gives a request, in bytes.
const maxRequestName = 64

// requestName returns the name of a request in the log: what the client calls it, where that is one header of printable ASCII
// characters, else own.
func requestName(r *http.Request, own string) string {
	names := r.Header.Values(idHeader)
	if len(names) != 1 || names[0] == "" || len(names[0]) > maxRequestName {
		return own
	}
	for _, c := range []byte(names[0]) {
		if c <= ' ' || c > '~' {
			return own
		}
	}
	return names[0]
}

// handle runs a handler and returns its error, which is [wire.ErrInternal] where it panics.
func (x *Request) handle(h Handler) (err error) {
	defer x.Server.Pool.Guard(x.R.Context(), &err)
	return h(x)
}

// Model returns the model of a name, opened; it stays open until the request is answered.
func (x *Request) Model(name string) (*serving.OpenModel, error) {
	h, leave, err := x.Server.Pool.Use(x.R.Context(), name)
	if err == nil {
		x.leave = append(x.leave, leave)
	}
	return h, err
}

// Open decodes the body, when it is its turn, and opens the model that it names, which model points to.
func (x *Request) Open(body any, model *string) (*serving.OpenModel, error) {
	if err := x.Read(body); err != nil {
		return nil, err
	}
	return x.Model(*model)
}

// Reply sends an object. A client that has gone is no error.
func (x *Request) Reply(v any) error {
	x.write(http.StatusOK, v)
	return nil
}

// refuse answers with an error.
func (x *Request) refuse(e *wire.Error) {
	if e.Retry > 0 {
		x.W.Header().Set("Retry-After", strconv.Itoa(e.Retry))
	}
	if e.Status == http.StatusUnauthorized {
		x.W.Header().Set("WWW-Authenticate", "Bearer")
	}
	var body any = e
	if x.errors != nil {
		named := *e
		named.Request = x.W.Header().Get(idHeader)
		body = x.errors(&named)
	}
	x.write(e.Status, body)
}

// recorder notes the status of an answer.
type recorder struct {
	http.ResponseWriter
	x *Request
}

// WriteHeader implements [http.ResponseWriter].
func (r *recorder) WriteHeader(status int) {
	r.x.sent = status
	r.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (r *recorder) Write(b []byte) (int, error) {
	if r.x.sent == 0 {
		r.x.sent = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap is for [http.ResponseController].
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
