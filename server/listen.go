package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"grove/server/access"
	"grove/server/driver"
)

// The bounds of connections. The times of headers, requests and newcomers are those of the usual patience, with which they grow.
const (
	connections = 1024
	headerBytes = 64 << 10
	bodyBytes   = 16 << 20
	headerTime  = 10 * time.Second
	requestTime = 60 * time.Second // with its header
	newTime     = time.Second      // for the header on a new connection, until another address may displace it
	idleTime    = 2 * time.Minute
	refusals    = time.Minute     // between lines of the log about connections that are refused
	farewell    = 5 * time.Second // for clients to read the error that the server stops
)

// Serve answers requests until ctx ends. Then it takes no new requests; running ones have the time drain to end, and then get an error.
// It closes the listener. Errors are the listener's.
func (s *Server) Serve(ctx context.Context, l net.Listener, drain time.Duration) error {
	h := &http.Server{
		Handler: s, ReadHeaderTimeout: s.patient(headerTime), ReadTimeout: s.patient(requestTime), IdleTimeout: idleTime, MaxHeaderBytes: headerBytes,
	}
	if s.config.Verifies {
		h.Protocols = new(http.Protocols)
		h.Protocols.SetHTTP1(true)
		h.Protocols.SetHTTP2(true)
		h.Protocols.SetUnencryptedHTTP2(true)
	}
	refused := rate.Sometimes{Interval: refusals}
	bounded := access.Listen(l, access.Connections{Most: s.config.Connections, Grace: s.patient(newTime), Refused: func(from net.Addr) {
		refused.Do(func() {
			s.config.Log.Warn("an address has too many connections; further ones are closed", "from", from.String(), "max", s.config.Connections)
		})
	}})
	bounded.Install(h)
	failed := make(chan error, 1)
	go func() {
		if s.config.TLS == nil {
			failed <- h.Serve(bounded)
			return
		}
		h.TLSConfig, h.ErrorLog = s.config.TLS, slog.NewLogLogger(s.config.Log.Handler(), slog.LevelInfo) // of handshakes
		failed <- h.ServeTLS(bounded, "", "")
	}()
	select {
	case err := <-failed:
		s.Stop()
		return err
	case <-ctx.Done():
	}
	s.config.Log.Info("draining", "for", drain.String())
	s.batches.Stop() // they go on in the next server
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

// patient returns a time of the usual patience as a time of the server's.
func (s *Server) patient(usual time.Duration) time.Duration {
	return time.Duration(float64(usual) * float64(s.config.WriteTimeout) / float64(driver.WriteTime))
}

func shutdown(h *http.Server, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return h.Shutdown(ctx)
}
