package driver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
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

// The bounds of the parts of streams that wait for their clients, in bytes. Beyond them, generation waits, too.
const (
	leastUnread = 16 << 10  // of each stream, however many there are
	mostUnread  = 256 << 10 // of each stream
	allUnread   = 32 << 20  // of all streams together, besides leastUnread of each
	piece       = 16 << 10  // that a client must take within [Server.WriteTimeout]
)

// longWait is how long generation waits for a client before its place is given to another. The engine has lent its slot by then.
const longWait = time.Second

// Stream sends an answer in parts. Parts that the client has not taken wait in bounded memory, so that the answer is computed and gives
// its slot back meanwhile. The methods are for one goroutine. The writer of the request must not be used beside the stream.
type Stream struct {
	x       *Request
	framing Framing
	pause   func(paused bool) // told when a part has waited long for room, and when it waits no longer; nil: nobody is
	sender  chan struct{}     // closed when nothing is sent any longer; nil: nothing was written
	more    chan struct{}     // has an element where there is something to send, or the stream is closed
	room    chan struct{}     // has one where something was sent, or sending has failed

	kept *KeptStream // what is sent, for its client to read again; nil: it may not

	made bytes.Buffer // the last object, as it is sent

	mu     sync.Mutex
	parts  []byte // that wait to be sent
	unread int    // bytes of parts, and of what is being sent
	closed bool
	err    error // by which sending failed
}

// NewStream returns a stream that answers a request. The caller closes it.
func NewStream(x *Request, f Framing) *Stream {
	return &Stream{x: x, framing: f, more: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// Send sends an event with an object.
func (s *Stream) Send(v any) error {
	if s.framing == Lines {
		return s.object("", v, "\n")
	}
	return s.object("data: ", v, "\n\n")
}

// Named sends an event with a name and an object. Only events have names.
func (s *Stream) Named(name string, v any) error {
	return s.object("event: "+name+"\ndata: ", v, "\n\n")
}

// object sends an object between two texts.
func (s *Stream) object(before string, v any, behind string) error {
	if s.made.Cap() > 2*piece {
		s.made = bytes.Buffer{} // it was a large one
	}
	s.made.Reset()
	s.made.WriteString(before)
	if err := wire.Write(&s.made, v); err != nil {
		return err
	}
	s.made.WriteString(behind)
	return s.write(s.made.Bytes())
}

// Alive sends a comment, so that proxies keep the connection open. Lines have no comments.
func (s *Stream) Alive() error {
	if s.framing == Lines {
		return nil
	}
	return s.write([]byte(": computing\n\n"))
}

// Done ends the stream as OpenAI's API does.
func (s *Stream) Done() error { return s.write([]byte("data: [DONE]\n\n")) }

// write adds a part to those that wait, once there is room.
func (s *Stream) write(part []byte) error {
	if s.sender == nil {
		s.begin()
	}
	s.kept.append(part)
	var long <-chan time.Time // has an element when the wait has become long
	for {
		fits, err := s.add(part)
		switch {
		case err != nil && s.kept != nil:
			return nil // the client has left, and may come again
		case fits || err != nil:
			return err
		}
		if long == nil {
			long = time.After(longWait)
		}
		select {
		case <-s.room:
		case <-long:
			if s.pause != nil {
				s.pause(true)
				defer s.pause(false)
			}
		case <-s.x.R.Context().Done():
			return context.Cause(s.x.R.Context())
		}
	}
}

// add adds a part to those that wait, if there is room.
func (s *Stream) add(part []byte) (fits bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || !s.take(len(part)) {
		return false, s.err
	}
	s.parts = append(s.parts, part...)
	signal(s.more)
	return true, nil
}

// take reports whether n more bytes may wait, and counts them. A part of any size may, where no other does. The caller holds the lock.
func (s *Stream) take(n int) bool {
	all := &s.x.Server.unread
	fits := s.unread == 0 || s.unread+n <= leastUnread || s.unread+n <= mostUnread && all.Load()+int64(n) <= allUnread
	if fits {
		s.unread += n
		all.Add(int64(n))
	}
	return fits
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// begin sends the header, and what waits from now on.
func (s *Stream) begin() {
	s.framing.header(s.x)
	s.sender = make(chan struct{})
	go s.send()
}

// header sends the header of a stream.
func (f Framing) header(x *Request) {
	h := x.W.Header()
	h.Set("Content-Type", contentTypes[f])
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	x.W.WriteHeader(http.StatusOK)
}

// send sends what waits until the stream is closed or its client takes nothing.
func (s *Stream) send() {
	defer close(s.sender)
	var parts []byte
	for {
		s.mu.Lock()
		parts, s.parts = s.parts, parts[:0]
		closed := s.closed
		s.mu.Unlock()
		switch {
		case len(parts) > 0:
			for rest := parts; len(rest) > 0; {
				n := min(piece, len(rest))
				err := s.give(rest[:n])
				s.sent(n, err)
				if err != nil {
					return
				}
				rest = rest[n:]
			}
			if cap(parts) > 2*piece {
				parts = nil // it was a client that is slow
			}
		case closed:
			return
		default:
			<-s.more
		}
	}
}

// give sends bytes. A panic is an error of this request.
func (s *Stream) give(part []byte) (err error) {
	defer s.x.Server.Pool.Guard(s.x.R.Context(), &err)
	return s.x.Give(part)
}

// Give sends a part of an answer at once. The client must take it within [Server.WriteTimeout].
func (x *Request) Give(part []byte) error {
	c, timeout := http.NewResponseController(x.W), x.Server.WriteTimeout
	_ = c.SetWriteDeadline(time.Now().Add(timeout)) // a recorder of tests has none
	_, err := x.W.Write(part)
	if err == nil {
		err = c.Flush()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = &wire.Error{
			Status: http.StatusRequestTimeout, Type: wire.TypeInvalid, Code: "client_stalled",
			Message: fmt.Sprintf("the client has not taken the next %d bytes of its answer for %v", len(part), timeout),
		}
	}
	return err
}

// sent notes that bytes were sent, or that this has failed.
func (s *Stream) sent(n int, err error) {
	s.mu.Lock()
	s.unread -= n
	s.err = err
	s.mu.Unlock()
	s.x.Server.unread.Add(-int64(n))
	signal(s.room)
}

// Close returns when the client has taken all parts, or takes none any longer, which is an error.
func (s *Stream) Close() error {
	if s.sender == nil {
		return nil
	}
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	signal(s.more)
	<-s.sender
	s.mu.Lock()
	defer s.mu.Unlock()
	s.x.Server.unread.Add(-int64(s.unread))
	s.unread = 0
	if s.kept != nil {
		return nil
	}
	return s.err
}
