package far

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"grove/internal/text/token"
	"grove/method"
	"grove/server/access"
	"grove/server/far/remote"
	"grove/server/serving"
	"grove/server/wire"
)

// maxWait bounds how long a step waits for drafts.
const maxWait = 2 * time.Second

// session is an answer to a near server: a request that is answered by the server's own routes, whatever becomes of connections. It is the
// request's [serving.Outside].
type session struct {
	v         *Verifier
	pool      *serving.Pool
	key       string
	ctx       context.Context
	cancel    context.CancelCauseFunc
	link      *remote.Link
	host      string
	from      string
	authority http.Header // of the first connection

	mu    sync.Mutex
	texts map[int]*text
	salt  string
	wait  time.Duration // that texts begin with
	spent int
}

// forget ends a session that has no connection.
func (s *session) forget() {
	if !s.link.Connected() {
		s.cancel(wire.ErrLeft)
		s.link.Fail(nil)
	}
}

// run answers the request.
func (s *session) run() {
	defer func() {
		s.cancel(nil)
		s.link.Fail(nil)
		s.v.mu.Lock()
		defer s.v.mu.Unlock()
		delete(s.v.sessions, s.key)
	}()
	var err error
	defer s.pool.Guard(s.ctx, &err)
	first, cancel := context.WithTimeout(s.ctx, s.v.keep())
	f, err := s.link.Next(first)
	cancel()
	var r remote.Request
	if err == nil {
		err = remote.Parse(f.Payload, &r)
	}
	if err != nil || strings.HasPrefix(r.Path, "/far/") {
		s.link.Fail(err)
		return
	}
	s.salt, s.wait = r.Salt, r.Wait
	go s.receive()
	end := remote.End{Whole: s.answer(&r)}
	s.mu.Lock()
	end.Tokens = s.spent
	s.mu.Unlock()
	if s.link.Send(s.ctx, remote.KindEnd, remote.Append(nil, &end)) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.v.keep())
	defer cancel()
	_ = s.link.Drained(ctx) // where the near side has gone, nobody misses the rest
}

// answer lets the server answer the request, and reports whether the answer is whole.
func (s *session) answer(r *remote.Request) (whole bool) {
	ctx := serving.WithOutside(s.ctx, s)
	h, err := http.NewRequestWithContext(ctx, r.Method, r.Path, bytes.NewReader(r.Body))
	if err != nil {
		s.link.Fail(remote.ErrFrame)
		return false
	}
	for i := 0; i+1 < len(r.Header); i += 2 {
		h.Header.Add(r.Header[i], r.Header[i+1])
	}
	for _, name := range access.KeyHeaders {
		h.Header.Del(name)
		for _, v := range s.authority.Values(name) {
			h.Header.Add(name, v)
		}
	}
	h.Host, h.RemoteAddr, h.RequestURI = s.host, s.from, r.Path
	w := &writer{s: s, header: http.Header{}}
	err = s.serve(w, h)
	if errors.Is(err, wire.ErrInternal) && !w.begun {
		var body []byte
		w.header.Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(wire.ErrInternal.Status)
		if body, err = wire.Marshal(wire.ErrInternal); err == nil {
			_, err = w.Write(body)
		}
	}
	if err == nil {
		w.WriteHeader(http.StatusOK)
	}
	return err == nil && w.err == nil
}

// serve lets the server's routes answer. A panic is an error: [http.ErrAbortHandler] where a route cuts its answer off, else
// [wire.ErrInternal].
func (s *session) serve(w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		if recover() != nil { // which Guard lets through
			err = http.ErrAbortHandler
		}
	}()
	defer s.pool.Guard(r.Context(), &err)
	s.v.Handler.ServeHTTP(w, r)
	return nil
}

// receive takes what the near side sends.
func (s *session) receive() {
	var err error
	defer s.pool.Guard(s.ctx, &err)
	for {
		f, err := s.link.Next(s.ctx)
		if err != nil {
			return
		}
		var d remote.Drafts
		switch {
		case f.Kind == remote.KindCancel:
			s.cancel(wire.ErrLeft)
			return
		case f.Kind != remote.KindDrafts:
			err = remote.ErrFrame
		default:
			err = remote.Parse(f.Payload, &d)
		}
		if err != nil {
			s.cancel(err)
			s.link.Fail(err)
			return
		}
		s.mu.Lock()
		t := s.texts[d.Answer]
		s.mu.Unlock()
		if t != nil {
			t.add(d)
		}
	}
}

// Computes implements [serving.Outside].
func (s *session) Computes(h *serving.OpenModel) {
	m := modelOf(h, s.v.words.of(h))
	_ = s.link.Send(s.ctx, remote.KindModel, remote.Append(nil, &m)) // the answer's own frames fail the same way
}

// Salt implements [serving.Outside].
func (s *session) Salt(named string) string {
	if s.salt == "" {
		return named
	}
	return s.salt + "\x00" + named
}

// Spent implements [serving.Outside].
func (s *session) Spent(tokens int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spent += tokens
}

// Drafts implements [serving.Outside].
func (s *session) Drafts(answer int) method.Remote {
	if answer >= remote.MaxAnswers {
		return nil
	}
	t := &text{s: s, answer: answer, wait: s.wait, came: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts[answer] = t
	return t
}

// text is the text of an answer, with the drafts that wait. It is the text's [method.Remote].
type text struct {
	s      *session
	answer int
	came   chan struct{} // has a value where drafts may have come

	mu      sync.Mutex
	waiting remote.Waiting
	wait    time.Duration // how long a step may wait
	missed  bool          // none came in time, and none has come since
	off     bool          // the near side does not know the text
}

// add takes drafts that came.
func (t *text) add(d remote.Drafts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.off || t.waiting.Len() == 0 {
		return
	}
	t.wait, t.missed = min(d.Wait, maxWait), false
	if t.waiting.Add(d) {
		select {
		case t.came <- struct{}{}:
		default:
		}
	}
}

// Begin implements [method.Remote].
func (t *text) Begin(h *method.History) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting.Begin(h.IDs())
	sampling, err := json.Marshal(h.Noise.Sampling)
	start := remote.Start{Answer: t.answer, Text: h.IDs(), Sampling: string(sampling), SampleIndex: h.Noise.SampleIndex}
	t.off = err != nil || h.SourceLen > 0 || !t.s.link.TrySend(remote.KindStart, remote.Append(nil, &start))
}

// Committed implements [method.Remote].
func (t *text) Committed(ids []token.ID, accepted, rows int, step time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.off {
		return
	}
	n := remote.Tokens{Answer: t.answer, At: t.waiting.Len(), Accepted: accepted, Rows: rows, Step: step, IDs: ids}
	t.waiting.Commit(ids)
	n.Digest = t.waiting.Digest()
	t.off = !t.s.link.TrySend(remote.KindTokens, remote.Append(nil, &n))
}

// Drafts implements [method.Remote].
func (t *text) Drafts(ctx context.Context, dst []token.ID) []token.ID {
	var late <-chan time.Time
	for {
		t.mu.Lock()
		dst = append(dst, t.waiting.Drafts()...)
		wait := t.wait
		if len(dst) > 0 || t.off || t.missed || wait == 0 || !t.s.link.Connected() {
			wait = 0
		}
		t.mu.Unlock()
		if wait == 0 {
			return dst
		}
		if late == nil {
			timer := time.NewTimer(wait)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-t.came:
		case <-ctx.Done():
			return dst
		case <-late:
			t.mu.Lock()
			t.missed = true
			t.mu.Unlock()
		}
	}
}

// writer sends an answer over the link. It is for one goroutine at a time.
type writer struct {
	s        *session
	header   http.Header
	begun    bool
	err      error
	deadline time.Time // of the next writes
}

// Header implements [http.ResponseWriter].
func (w *writer) Header() http.Header { return w.header }

// WriteHeader implements [http.ResponseWriter].
func (w *writer) WriteHeader(status int) {
	if w.begun || status < 200 {
		return
	}
	w.begun = true
	h := remote.Head{Status: status, Header: flat(w.header)}
	w.err = w.send(remote.KindHead, remote.Append(nil, &h))
}

// Write implements [http.ResponseWriter].
func (w *writer) Write(b []byte) (n int, err error) {
	w.WriteHeader(http.StatusOK)
	for part := range slices.Chunk(b, remote.MaxBody) {
		if w.err == nil {
			w.err = w.send(remote.KindBody, part)
		}
		if w.err != nil {
			return n, w.err
		}
		n += len(part)
	}
	return n, nil
}

// FlushError does nothing: what is written is sent.
func (w *writer) FlushError() error { return w.err }

// SetWriteDeadline is for [http.ResponseController].
func (w *writer) SetWriteDeadline(t time.Time) error {
	w.deadline = t
	return nil
}

// SetReadDeadline is for [http.ResponseController]: the body is there.
func (w *writer) SetReadDeadline(time.Time) error { return nil }

func (w *writer) send(kind remote.Kind, payload []byte) error {
	ctx := w.s.ctx
	if !w.deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, w.deadline, os.ErrDeadlineExceeded)
		defer cancel()
	}
	return w.s.link.Send(ctx, kind, payload)
}

// flat returns a header as names and values in turn, without what concerns one connection alone, and what the near server has checked: the key,
// and which page asks.
func flat(h http.Header) (all []string) {
	for name, values := range h {
		if slices.Contains(hops, name) || slices.Contains(access.KeyHeaders, name) || slices.Contains(access.BrowserHeaders, name) {
			continue
		}
		for _, v := range values {
			all = append(all, name, v)
		}
	}
	return all
}

// hops are headers of one connection.
var hops = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Content-Length",
	"Accept-Encoding", "Host",
}
