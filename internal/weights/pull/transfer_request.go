package pull

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// StatusError reports an answer that is no success.
type StatusError struct {
	URL    *url.URL
	Code   int
	Header http.Header
	Text   string // the server's reason, cut and without control characters; "": none
}

// Error names the host, the status and the reason.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s answers %d %s", e.URL.Host, e.Code, http.StatusText(e.Code))
	if e.Text != "" {
		text += ": " + e.Text
	}
	return text
}

// Status returns the status of the answer that an error reports; 0: it reports none.
func Status(err error) int {
	var s *StatusError
	if errors.As(err, &s) {
		return s.Code
	}
	return 0
}

// redirectError reports a redirect that is not followed.
type redirectError struct{ text string }

// Error returns the reason.
func (e *redirectError) Error() string { return e.text }

// checkRedirect bounds redirects, and keeps credentials from other hosts: not even a host below that of the first request gets
// them.
func checkRedirect(r *http.Request, via []*http.Request) error {
	from := via[len(via)-1].URL
	switch {
	case len(via) > MaxRedirects:
		return &redirectError{fmt.Sprintf("%s redirects more than %d times", via[0].URL.Host, MaxRedirects)}
	case r.URL.Scheme != "https" && r.URL.Scheme != "http", r.URL.Host == "":
		return &redirectError{fmt.Sprintf("%s redirects to %.40q, which is no address of HTTP", from.Host, r.URL.Scheme)}
	case from.Scheme == "https" && r.URL.Scheme == "http":
		return &redirectError{fmt.Sprintf("%s redirects from https to http, which is not followed", from.Host)}
	}
	r.Header.Del("Referer")
	if !sameHost(r.URL, via[0].URL) {
		r.Header.Del("Authorization")
	}
	return nil
}

// sameHost reports whether two addresses belong to the same server.
func sameHost(a, b *url.URL) bool { return a.Scheme == b.Scheme && strings.EqualFold(a.Host, b.Host) }

// send sends a request and returns its answer, a success, whose body the caller closes. The request ends with the context, or
// when no byte comes for [IdleTimeout].
func (c *Client) send(ctx context.Context, address, token string, header http.Header) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	r.Header = header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set("User-Agent", "grove")
	r.Header.Set("Accept-Encoding", "identity")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		cancel(nil)
		return nil, withoutQuery(err)
	}
	idle := time.AfterFunc(IdleTimeout, func() { cancel(errIdle) })
	resp.Body = &watchedBody{resp.Body, ctx, cancel, idle}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusPartialContent {
		defer resp.Body.Close()
		return nil, statusError(resp)
	}
	if e := resp.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		resp.Body.Close()
		return nil, fmt.Errorf("%s sends the content in the encoding %.40q, which was not asked for", resp.Request.URL.Host, e)
	}
	return resp, nil
}

// withoutQuery removes the query from the address that an error names: it may hold a signature.
func withoutQuery(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		u.URL, _, _ = strings.Cut(u.URL, "?")
	}
	return err
}

var errIdle = fmt.Errorf("no byte came for %v", IdleTimeout)

// watchedBody is a body whose reads fail when no byte comes for too long.
type watchedBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   *time.Timer
}

// Read implements [io.Reader].
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.idle.Reset(IdleTimeout)
	}
	if err != nil && err != io.EOF && b.ctx.Err() != nil {
		err = context.Cause(b.ctx)
	}
	return n, err
}

// Close implements [io.Closer].
func (b *watchedBody) Close() error {
	b.idle.Stop()
	b.cancel(nil)
	return b.ReadCloser.Close()
}

// statusError returns the error of an answer. The reason is that of Hugging Face's header or of the first line of a text.
func statusError(resp *http.Response) error {
	text := resp.Header.Get("X-Error-Message")
	if kind := resp.Header.Get("Content-Type"); text == "" && strings.HasPrefix(kind, "text/plain") {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 200))
		text, _, _ = strings.Cut(string(b), "\n")
	}
	return &StatusError{resp.Request.URL, resp.StatusCode, resp.Header, printable(text)}
}

// printable cuts a text and replaces the characters that could control a terminal.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
	return strings.TrimSpace(text[:min(len(text), 200)])
}

// passing reports whether a failure may pass, so that another attempt makes sense.
func passing(err error) bool {
	var (
		status      *StatusError
		redirect    *redirectError
		certificate *tls.CertificateVerificationError
		name        *net.DNSError
		network     *url.Error
	)
	switch {
	case errors.As(err, &status):
		return status.Code == http.StatusRequestTimeout || status.Code == http.StatusTooManyRequests || status.Code >= 500
	case errors.As(err, &redirect), errors.As(err, &certificate), errors.As(err, &name) && name.IsNotFound:
		return false
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, errIdle), errors.As(err, &network):
		return true
	}
	var lost *net.OpError
	return errors.As(err, &lost)
}

// retry calls try until it succeeds, at most [MaxAttempts] times, as long as its failure may pass.
func (c *Client) retry(ctx context.Context, try func() error) error {
	for attempt := 1; ; attempt++ {
		err := try()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil || !passing(err) {
			return err
		}
		wait := min(c.config.Backoff<<(attempt-1), MaxBackoff)
		if asked := retryAfter(err); asked > MaxWait {
			return fmt.Errorf("%w; it asks to wait for %v: try again then", err, asked)
		} else if asked > 0 {
			wait = asked
		}
		if attempt == MaxAttempts {
			return fmt.Errorf("%w (%d attempts)", err, attempt)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// retryAfter returns how long the server asks to wait; 0: it does not ask.
func retryAfter(err error) time.Duration {
	var s *StatusError
	if !errors.As(err, &s) {
		return 0
	}
	text := s.Header.Get("Retry-After")
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(date).Round(time.Second))
	}
	return 0
}

// Get returns a small document of at most limit bytes and the header of the answer. The token is sent to the host of the address
// alone. It tries again as downloads do. Errors: a [StatusError], among others.
func (c *Client) Get(ctx context.Context, address, token string, header http.Header, limit int64) (body []byte, _ http.Header, err error) {
	var got http.Header
	err = c.retry(ctx, func() error {
		resp, err := c.send(ctx, address, token, header)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return statusError(resp)
		}
		got = resp.Header
		body, err = io.ReadAll(io.LimitReader(resp.Body, limit+1))
		if err == nil && int64(len(body)) > limit {
			return fmt.Errorf("%s sends more than %d bytes", resp.Request.URL.Host, limit)
		}
		return err
	})
	return body, got, err
}
