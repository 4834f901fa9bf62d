package server

import (
	"io"
	"net/http"
	"time"

	"grove/server/wire"
)

// stream sends an answer as server-sent events.
type stream struct {
	x *request
	c *http.ResponseController
}

func newStream(x *request) *stream { return &stream{x, http.NewResponseController(x.w)} }

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

// alive sends a comment, so that proxies keep the connection open.
func (s *stream) alive() error { return s.write(": ", "computing") }

// done ends the stream as OpenAI's API does.
func (s *stream) done() error { return s.write("data: ", "[DONE]") }

func (s *stream) write(prefix, text string) error {
	if s.x.sent == 0 {
		h := s.x.w.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no")
		s.x.w.WriteHeader(http.StatusOK)
	}
	_ = s.c.SetWriteDeadline(time.Now().Add(s.x.server.config.Patience)) // a recorder of tests has none
	if _, err := io.WriteString(s.x.w, prefix+text+"\n\n"); err != nil {
		return err
	}
	return s.c.Flush()
}
