package access

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// connection is a connection of a [Listener]. Where a client has sent a part of its next request before the answer to the one before, it
// reads on, so that a client that leaves is noticed behind that too: package net/http reads one byte.
type connection struct {
	net.Conn
	l       *Listener
	address netip.Prefix
	end     context.CancelFunc // of the contexts of its requests
	leave   sync.Once

	since      time.Time // of its first byte, or of the end of its last answer
	busy, used bool      // it has a request; it had one; the listener's lock guards these

	mu      sync.Mutex
	arrived sync.Cond // of ahead, err and reading
	reading bool      // a goroutine reads ahead
	ahead   []byte    // that was read
	err     error     // that ended the reading
	headers headerScan
}

// mixedHeaders reports whether a header so far gave a body both a length and chunks.
func (c *connection) mixedHeaders() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.headers.mixed
}

// aheadBytes is how much is read ahead of an answer. A client that sends more is noticed to leave when it is next written to.
const aheadBytes = 64 << 10

// Read implements [net.Conn].
func (c *connection) Read(p []byte) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.reading && len(c.ahead) == 0 {
		c.arrived.Wait()
	}
	switch {
	case len(c.ahead) > 0:
		n = copy(p, c.ahead)
		if c.ahead = c.ahead[n:]; len(c.ahead) == 0 {
			c.ahead = nil
		}
	case c.err != nil:
		return 0, c.err
	default:
		c.mu.Unlock()
		n, err = c.Conn.Read(p)
		c.mu.Lock()
	}
	c.headers.add(p[:n])
	if n == 1 && len(p) == 1 && !c.reading && c.err == nil && err == nil { // package net/http watches for the client to leave
		c.reading = true
		go c.watch()
	}
	return n, err
}

// watch reads until the client leaves, a deadline passes or aheadBytes are there. Where a deadline passes, Read meets it itself.
func (c *connection) watch() {
	buffer := make([]byte, 4<<10)
	for reading := true; reading; {
		n, err := c.Conn.Read(buffer)
		c.mu.Lock()
		c.ahead = append(c.ahead, buffer[:n]...)
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			c.err = err
			c.end()
		}
		reading = err == nil && len(c.ahead) < aheadBytes
		c.reading = reading
		c.arrived.Broadcast()
		c.mu.Unlock()
	}
}

// Close implements [net.Conn].
func (c *connection) Close() error {
	c.leave.Do(func() {
		c.end()
		c.l.leave(c)
	})
	return c.Conn.Close()
}
