package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"grove/server/serving"
	"grove/server/wire"
)

// writeTime is how long a client may take to read an answer that is sent at once.
const writeTime = 30 * time.Second

// request is one HTTP request and its answer.
type request struct {
	w      http.ResponseWriter
	r      *http.Request
	server *Server
	id     string
	sent   int      // the status, once it is sent
	leave  []func() // called when the request is answered
}

// answer runs a handler and sends the error that it returns. A panic fails this request alone.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, a access, handle handler) {
	start := time.Now()
	x := &request{r: r, server: s, id: strconv.FormatUint(s.last.Add(1), 36) + "-" + strconv.FormatInt(start.UnixNano(), 36)}
	x.w = &recorder{ResponseWriter: w, x: x}
	allowOrigin(w.Header())
	defer func() {
		for _, f := range x.leave {
			f()
		}
	}()
	defer func() {
		s.config.Log.Info("request", "id", x.id, "method", r.Method, "path", wire.Clip(r.URL.Path), "status", x.sent,
			"ms", time.Since(start).Milliseconds(), "from", r.RemoteAddr)
	}()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // streams set their own
	err := s.admits(r, a)
	if err == nil {
		err = x.handle(handle)
	}
	if err != nil && x.sent == 0 && r.Context().Err() == nil { // else the client has the error, or has gone
		x.refuse(wire.ErrorOf(err))
	}
}

// handle runs a handler and returns its error, which is [wire.ErrInternal] where it panics.
func (x *request) handle(h handler) (err error) {
	defer x.server.pool.Guard(&err)
	return h(x)
}

// model returns the model of a name, opened; it stays open until the request is answered.
func (x *request) model(name string) (*serving.Host, error) {
	h, leave, err := x.server.pool.Use(x.r.Context(), name)
	if err == nil {
		x.leave = append(x.leave, leave)
	}
	return h, err
}

// read decodes the body.
func (x *request) read(into any) error {
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, x.server.config.Body))
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

// reply sends an object. A client that has gone is no error.
func (x *request) reply(v any) error {
	x.write(http.StatusOK, v)
	return nil
}

// refuse answers with an error.
func (x *request) refuse(e *wire.Error) {
	if e.Retry > 0 {
		x.w.Header().Set("Retry-After", strconv.Itoa(e.Retry))
	}
	if e.Status == http.StatusUnauthorized {
		x.w.Header().Set("WWW-Authenticate", "Bearer")
	}
	x.write(e.Status, e)
}

func (x *request) write(status int, v any) {
	body, err := wire.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":{"message":"the answer cannot be written as JSON","type":"server_error","param":null,"code":null}}`)
	}
	x.w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = http.NewResponseController(x.w).SetWriteDeadline(time.Now().Add(writeTime))
	x.w.WriteHeader(status)
	_, _ = x.w.Write(append(body, '\n')) // the client has gone
}

// recorder notes the status of an answer.
type recorder struct {
	http.ResponseWriter
	x *request
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
