package driver

import (
	"io"
	"net/http"
	"time"

	"grove/server/wire"
)

// Framing says how the objects of a stream are set apart.
type Framing int

// The framings.
const (
	Events Framing = iota // server-sent events
	Lines                 // a line of JSON each
)

// contentTypes are the content types of the framings.
var contentTypes = [...]string{"text/event-stream; charset=utf-8", "application/x-ndjson"}

// Stream sends an answer in parts.
type Stream struct {
	x       *Request
	c       *http.ResponseController
	framing Framing
}

// NewStream returns a stream that answers a request.
func NewStream(x *Request, f Framing) *Stream { return &Stream{x, http.NewResponseController(x.W), f} }

// Send sends an event with an object.
func (s *Stream) Send(v any) error {
	body, err := wire.Marshal(v)
	if err != nil {
		return err
	}
	if s.framing == Lines {
		return s.write(string(body) + "\n")
	}
	return s.write("data: " + string(body) + "\n\n")
}

// Named sends an event with a name and an object. Only events have names.
func (s *Stream) Named(name string, v any) error {
	body, err := wire.Marshal(v)
	if err != nil {
		return err
	}
	return s.write("event: " + name + "\ndata: " + string(body) + "\n\n")
}

// Alive sends a comment, so that proxies keep the connection open. Lines have no comments.
func (s *Stream) Alive() error {
	if s.framing == Lines {
		return nil
	}
	return s.write(": computing\n\n")
}

// Done ends the stream as OpenAI's API does.
func (s *Stream) Done() error { return s.write("data: [DONE]\n\n") }

func (s *Stream) write(text string) error {
	if s.x.sent == 0 {
		h := s.x.W.Header()
		h.Set("Content-Type", contentTypes[s.framing])
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no")
		s.x.W.WriteHeader(http.StatusOK)
	}
	_ = s.c.SetWriteDeadline(time.Now().Add(s.x.Server.Patience)) // a recorder of tests has none
	if _, err := io.WriteString(s.x.W, text); err != nil {
		return err
	}
	return s.c.Flush()
}
