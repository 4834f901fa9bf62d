package far

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"grove"
	"grove/server/far/remote"
	"grove/server/wire"
)

// The errors of a far server.
var (
	errGone = errors.New("the far server cannot be reached")
	errLost = errors.New("the far server was lost in the middle of the answer")
	errLie  = errors.New("the far server's tokens are not those of the text that it began")
	errCut  = errors.New("the far server has cut its answer off")
)

// gateway returns an error of status 502 with a code.
func gateway(code, format string, args ...any) *wire.Error {
	return &wire.Error{Status: http.StatusBadGateway, Type: wire.TypeUnavailable, Code: code, Message: fmt.Sprintf(format, args...)}
}

func numericsError(of string) error {
	return gateway("far_numerics", "the far server computes by the numerics %q, and this one by %q: use the same version of the program", wire.Clip(of), grove.Numerics)
}

// named returns an error of the link as the answer to the client.
func named(err error) *wire.Error {
	for _, n := range []struct {
		err  error
		code string
	}{{errGone, "far_unreachable"}, {errLost, "far_lost"}, {errCut, "far_cut"}, {errLie, "far_lied"}, {remote.ErrDigest, "far_lied"}, {remote.ErrFrame, "far_lied"}, {remote.ErrFlood, "far_lied"}} {
		if errors.Is(err, n.err) {
			e := gateway(n.code, "%s", strings.TrimPrefix(err.Error(), "remote: "))
			if n.err == errGone {
				e.Status, e.Retry = http.StatusServiceUnavailable, 1
			}
			return e
		}
	}
	return wire.ErrorOf(err)
}

// newTransport returns a transport that speaks HTTP/2 alone.
func (p *Proxy) newTransport() *http.Transport {
	t := &http.Transport{Protocols: new(http.Protocols), IdleConnTimeout: time.Minute, TLSHandshakeTimeout: p.config.Silence, DisableCompression: true}
	t.Protocols.SetHTTP2(p.url.Scheme == "https")
	t.Protocols.SetUnencryptedHTTP2(p.url.Scheme == "http")
	return t
}

func (p *Proxy) current() *http.Transport {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.transport
}

// replace lets further connections be new ones: t may hold one that gives nothing.
func (p *Proxy) replace(t *http.Transport) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.transport == t {
		p.transport = p.newTransport()
		t.CloseIdleConnections()
	}
}

// The bounds of attempts to open a connection.
const (
	firstTries = 3   // before the far server counts as gone
	idleTries  = 100 // of an answer, that bring no frame
	leastPause = 20 * time.Millisecond
	mostPause  = time.Second
)

// carry opens connections for a link until that or ctx ends.
func (p *Proxy) carry(ctx context.Context, l *remote.Link, id string) {
	received, idle, pause := uint64(0), 0, leastPause
	var broke time.Time // when the last connection that was opened broke; zero: none was
	for {
		opened, err := p.connect(ctx, l, id)
		if now := l.Received(); now > received {
			received, idle, pause = now, 0, leastPause
		}
		if idle++; opened {
			broke = time.Now()
		}
		var refused *wire.Error
		switch {
		case ctx.Err() != nil || l.Err() != nil:
			l.Fail(nil)
			return
		case errors.As(err, &refused):
			l.Fail(err)
			return
		case broke.IsZero() && idle >= firstTries:
			l.Fail(fmt.Errorf("%w: %w", errGone, err))
			return
		case !broke.IsZero() && (time.Since(broke) > p.config.Reconnect || idle > idleTries):
			l.Fail(fmt.Errorf("%w: %w", errLost, err))
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, mostPause)
	}
}

// connect opens a connection and lets it carry the link until it breaks. A [*wire.Error] says that another one makes no sense.
func (p *Proxy) connect(ctx context.Context, l *remote.Link, id string) (opened bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	transport := p.current()
	defer func() {
		if l.Err() == nil {
			p.replace(transport)
		}
	}()
	r, w := io.Pipe()
	h, err := http.NewRequestWithContext(ctx, http.MethodPut, p.url.JoinPath("far", id).String(), r)
	if err != nil {
		return false, err
	}
	h.Header.Set(versionHeader, remote.Version)
	h.Header.Set(receivedHeader, strconv.FormatUint(l.Received(), 10))
	if p.config.Key != "" {
		h.Header.Set("Authorization", "Bearer "+p.config.Key)
	}
	late := time.AfterFunc(p.config.Silence, cancel)
	answer, err := transport.RoundTrip(h)
	late.Stop()
	if err != nil {
		if strings.Contains(err.Error(), "HTTP/1.1 header") || strings.Contains(err.Error(), "unsupported protocol") || strings.Contains(err.Error(), "malformed HTTP") {
			return false, gateway("far_http1", "the far server does not speak HTTP/2: start it with --take-drafts")
		}
		return false, err
	}
	defer answer.Body.Close()
	received, bad := strconv.ParseUint(answer.Header.Get(receivedHeader), 10, 62)
	switch {
	case answer.ProtoMajor < 2:
		return false, gateway("far_http1", "the far server answers by %s, not by HTTP/2", answer.Proto)
	case answer.StatusCode != http.StatusOK:
		return false, refusal(answer)
	case answer.Header.Get(versionHeader) != remote.Version || bad != nil:
		return false, gateway("far_version", "the far server speaks %q, and this one %q", wire.Clip(answer.Header.Get(versionHeader)), remote.Version)
	case answer.Header.Get(numericsHeader) != grove.Numerics:
		return false, numericsError(answer.Header.Get(numericsHeader))
	}
	return true, l.Carry(answer.Body, w, func() {
		cancel()
		_ = w.Close() // of a pipe it never fails
	}, received)
}

// refusal returns the error of a far server that refuses a connection. Its own is a part of the message. One that is passing is no [*wire.Error]: the
// connection is tried again.
func refusal(answer *http.Response) error {
	const most = 4 << 10
	body, _ := io.ReadAll(io.LimitReader(answer.Body, most)) // what there is of it
	var said struct {
		Error struct {
			Message, Code string
		}
	}
	_ = json.Unmarshal(body, &said) // another server's error has another form
	text := fmt.Sprintf("%d %s", answer.StatusCode, wire.Clip(said.Error.Message))
	switch code := said.Error.Code; {
	case answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden:
		return gateway("far_key", "the far server refuses this one: %s; --verifier-key is the key that it asks for", text)
	case code == "far_forgotten":
		return gateway("far_lost", "%v: it does not know the answer any longer", errLost)
	case answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusMethodNotAllowed:
		return gateway("far_refused", "the server at that address verifies no drafts: %s; start it with --take-drafts", text)
	case answer.StatusCode == http.StatusServiceUnavailable || answer.StatusCode == http.StatusTooManyRequests:
		return errors.New(text)
	}
	return gateway("far_refused", "the far server refuses the connection: %s", text)
}
