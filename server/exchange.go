package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"grove"
	"grove/server/serving"
	"grove/server/wire"
)

// writeTime is how long a client may take for an answer that comes at once.
const writeTime = 30 * time.Second

// exchange is a request and its answer.
type exchange struct {
	w    http.ResponseWriter
	r    *http.Request
	s    *Server
	id   string
	sent int      // the status, once it is sent
	done []func() // what is to be done when the request is answered
}

// host returns the model that the request names, opened; it stays open until the request is answered.
func (x *exchange) host(name string) (*serving.Host, error) {
	h, leave, err := x.s.pool.Use(x.r.Context(), name)
	if err == nil {
		x.done = append(x.done, leave)
	}
	return h, err
}

// answer handles a request: what its kind asks, errors, panics.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, k kind, handle func(*exchange) error) {
	start := time.Now()
	x := &exchange{r: r, s: s, id: strconv.FormatUint(s.last.Add(1), 36) + "-" + strconv.FormatInt(start.UnixNano(), 36)}
	x.w = &recorder{ResponseWriter: w, x: x}
	allowOrigin(w.Header())
	defer func() {
		for _, f := range x.done {
			f()
		}
	}()
	defer func() {
		fault := recover()
		if fault == http.ErrAbortHandler {
			panic(fault) // the connection is to be cut
		}
		if fault != nil {
			s.pool.Fault(fault)
			if x.sent == 0 {
				writeError(x.w, wire.ErrInternal)
			}
		}
		s.config.Log.Info("request", "id", x.id, "method", r.Method, "path", wire.Clip(r.URL.Path), "status", x.sent,
			"ms", time.Since(start).Milliseconds(), "from", r.RemoteAddr)
	}()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // streams set their own
	err := s.admits(r, k)
	if err == nil {
		err = handle(x)
	}
	if err == nil {
		return
	}
	if x.sent != 0 || r.Context().Err() != nil {
		return // it is told, or there is nobody to tell
	}
	writeError(x.w, wire.ErrorOf(err))
}

// admits returns what keeps a request from being handled.
func (s *Server) admits(r *http.Request, k kind) error {
	switch {
	case k != open && !s.allowed(r):
		return wire.ErrKey
	case k == served && !s.ready.Load():
		return wire.ErrLoading
	}
	return nil
}

// writeError answers with an error.
func writeError(w http.ResponseWriter, e *wire.Error) {
	if e.Retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.Retry))
	}
	if e.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	writeJSON(w, e.Status, e)
}

// recorder notes the status.
type recorder struct {
	http.ResponseWriter
	x *exchange
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

// read decodes the body of a request.
func (s *Server) read(x *exchange, into any) error {
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, s.config.Body))
	large := new(http.MaxBytesError)
	switch {
	case errors.As(err, &large):
		return &wire.Error{
			Status: http.StatusRequestEntityTooLarge, Type: wire.TypeInvalid, Code: "body_too_large",
			Message: fmt.Sprintf("the body has more than %d bytes", large.Limit),
		}
	case err != nil:
		return wire.Refuse("", "the body cannot be read: %v", err)
	}
	return wire.Decode(body, into)
}

// reply sends an object.
func (x *exchange) reply(v any) error {
	writeJSON(x.w, http.StatusOK, v)
	return nil
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := wire.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":{"message":"the answer is no JSON","type":"server_error","param":null,"code":null}}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime))
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // there is nobody else to tell
}

// stream is an answer by server-sent events.
type stream struct {
	x *exchange
	c *http.ResponseController
}

func (x *exchange) stream() *stream { return &stream{x, http.NewResponseController(x.w)} }

// send sends an event with an object.
func (s *stream) send(v any) error {
	body, err := wire.Marshal(v)
	if err != nil {
		return err
	}
	return s.write("data: ", string(body))
}

// named sends an event with a name and an object.
func (s *stream) named(name string, v any) error {
	body, err := wire.Marshal(v)
	if err != nil {
		return err
	}
	return s.write("event: ", name+"\ndata: "+string(body))
}

// alive sends a comment, so that nobody on the way thinks the connection dead.
func (s *stream) alive() error { return s.write(": ", "computing") }

// done ends the stream as OpenAI's API does.
func (s *stream) done() error { return s.write("data: ", "[DONE]") }

// fail tells that the answer ends with an error; the error is returned as it is.
func (s *stream) fail(err error) error {
	if s.x.sent == 0 || s.x.r.Context().Err() != nil {
		return err
	}
	_ = s.send(wire.ErrorOf(err)) // the client may have gone, which is no further error
	return err
}

func (s *stream) write(prefix, text string) error {
	if s.x.sent == 0 {
		h := s.x.w.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no")
		s.x.w.WriteHeader(http.StatusOK)
	}
	_ = s.c.SetWriteDeadline(time.Now().Add(s.x.s.config.Patience)) // a recorder of tests has none
	if _, err := io.WriteString(s.x.w, prefix+text+"\n\n"); err != nil {
		return err
	}
	return s.c.Flush()
}

// order returns what is to be computed for a request.
func order(x *exchange, q *wire.Sampling, requests []grove.Request, n int, streams bool) serving.Order {
	o := serving.Order{ID: x.id, Requests: requests, N: n, Timed: q.TimingsPerTok && streams, Session: q.Session}
	if q.Timeout != nil {
		o.Timeout = time.Duration(*q.Timeout * float64(time.Second))
	}
	return o
}
