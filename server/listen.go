package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// The bounds of connections.
const (
	idleTime    = 2 * time.Minute
	headerBytes = 64 << 10
	connections = 1024
	farewell    = 5 * time.Second // for clients to read the error that the server stops
)

// Serve answers requests until ctx ends. Then it takes no new requests; running ones have the time drain to end, and then get an error.
// It closes the listener. Errors are the listener's.
func (s *Server) Serve(ctx context.Context, l net.Listener, drain time.Duration) error {
	h := &http.Server{
		Handler: s, ReadHeaderTimeout: s.config.Patience / 3, ReadTimeout: 2 * s.config.Patience, IdleTimeout: idleTime, MaxHeaderBytes: headerBytes,
	}
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(limit(l, connections)) }()
	select {
	case err := <-failed:
		s.Stop()
		return err
	case <-ctx.Done():
	}
	s.config.Log.Info("draining", "for", drain.String())
	if shutdown(h, drain) != nil {
		s.config.Log.Warn("cancelling the running requests")
	}
	s.Stop()
	if shutdown(h, farewell) != nil {
		_ = h.Close() // cuts off clients that have not read it
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func shutdown(h *http.Server, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return h.Shutdown(ctx)
}

// limited is a listener with a bound on open connections: further ones wait to be accepted.
type limited struct {
	net.Listener
	room   chan struct{}
	closed chan struct{}
	once   sync.Once
}

func limit(l net.Listener, n int) *limited {
	return &limited{Listener: l, room: make(chan struct{}, n), closed: make(chan struct{})}
}

// Accept implements [net.Listener].
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.room <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.room
		return nil, err
	}
	return &limitedConn{Conn: c, leave: sync.OnceFunc(func() { <-l.room })}, nil
}

// Close implements [net.Listener].
func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	leave func()
}

// Close implements [net.Conn].
func (c *limitedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}
