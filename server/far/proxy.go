package far

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"grove"
	"grove/server/access"
	"grove/server/driver"
	"grove/server/exposition"
	"grove/server/far/remote"
	"grove/server/serving"
	"grove/server/wire"
)

// Config says how a near server uses a far one. The zero value of a field but URL is the usual case.
type Config struct {
	URL       string        // http://HOST:PORT or https://HOST[:PORT]
	Key       string        // that the far server asks for; "": none
	Model     string        // the far model's name, or the beginning of the digest of its weights; "": any, which then stays the same
	Drafts    int           // of a round at most; 0: 16
	Wait      time.Duration // how long a step of the far server waits for drafts; 0: as long as it pays; below 0: not at all
	Reconnect time.Duration // how long a broken connection is opened again; 0: 10 s
	Fallback  bool          // where the far server cannot be reached, the near model answers

	Silence time.Duration // after which a connection counts as broken; 0: [remote.Silence]
	Ping    time.Duration // between measurements of the round trip; 0: 500 ms
}

// Proxy passes requests on to a far server, and drafts for it. It is safe for concurrent use.
type Proxy struct {
	config Config
	url    *url.URL
	words  vocabularies

	mu        sync.Mutex
	transport *http.Transport
	known     map[string]remote.Model // the models that have answered, by name
	pace      pace
	totals    Totals
}

// Totals counts the work of a proxy.
type Totals struct {
	Answers, Failed, Local        int // requests that were answered; that failed; of these, that the near model has answered
	Tokens, Rounds, Drafted       int // of the far side's texts; its steps; drafts that were sent
	Accepted                      int // drafts that became text
	Sent, Received, Reconnections int // bytes of frames; connections besides the first ones
	Body                          int // of these bytes, those of the answers
	RoundTrip                     time.Duration
}

// ErrConfig reports a far server that cannot be used.
var ErrConfig = errors.New("far")

// NewProxy makes a proxy. Nothing is opened until the first request.
func NewProxy(c Config) (*Proxy, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("%w: %q is no address of a server; write http://HOST:PORT, or https://HOST", ErrConfig, wire.Clip(c.URL))
	}
	c.Drafts, c.Ping = cmp.Or(c.Drafts, 16), cmp.Or(c.Ping, 500*time.Millisecond)
	c.Reconnect, c.Silence = cmp.Or(c.Reconnect, 10*time.Second), cmp.Or(c.Silence, remote.Silence)
	if c.Drafts < 1 || c.Drafts > remote.MaxDrafts/2 {
		return nil, fmt.Errorf("%w: %d drafts of a round; it must be from 1 to %d", ErrConfig, c.Drafts, remote.MaxDrafts/2)
	}
	p := &Proxy{config: c, url: u, known: map[string]remote.Model{}}
	p.transport = p.newTransport()
	return p, nil
}

// Close closes idle connections.
func (p *Proxy) Close() { p.current().CloseIdleConnections() }

// Totals returns the counts of the proxy so far.
func (p *Proxy) Totals() Totals {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.totals
}

// Metrics implements [exposition.Source].
func (p *Proxy) Metrics(tell func(exposition.Metric)) {
	t := p.Totals()
	for _, f := range figures {
		tell(exposition.Metric{Name: "grove_far_" + f.name, Help: f.help, Kind: f.kind, Value: f.value(&t)})
	}
}

// figures are the metrics of a proxy.
var figures = []struct {
	name, help string
	kind       exposition.Kind
	value      func(*Totals) float64
}{
	{"answers_total", "Requests that were passed on and answered.", exposition.Counter, func(t *Totals) float64 { return float64(t.Answers) }},
	{"failed_total", "Requests that were passed on and failed.", exposition.Counter, func(t *Totals) float64 { return float64(t.Failed) }},
	{"local_total", "Requests that the near model answered, as the far server could not be reached.", exposition.Counter, func(t *Totals) float64 { return float64(t.Local) }},
	{"tokens_total", "Tokens that the far server told.", exposition.Counter, func(t *Totals) float64 { return float64(t.Tokens) }},
	{"rounds_total", "Steps of the far server that gave these tokens.", exposition.Counter, func(t *Totals) float64 { return float64(t.Rounds) }},
	{"drafted_total", "Drafts that were sent.", exposition.Counter, func(t *Totals) float64 { return float64(t.Drafted) }},
	{"accepted_total", "Drafts that became text.", exposition.Counter, func(t *Totals) float64 { return float64(t.Accepted) }},
	{"sent_bytes_total", "Bytes of frames to the far server.", exposition.Counter, func(t *Totals) float64 { return float64(t.Sent) }},
	{"received_bytes_total", "Bytes of frames from the far server.", exposition.Counter, func(t *Totals) float64 { return float64(t.Received) }},
	{"body_bytes_total", "Bytes of the answers' bodies, which are a part of those from the far server.", exposition.Counter, func(t *Totals) float64 { return float64(t.Body) }},
	{"reconnections_total", "Connections that were opened again.", exposition.Counter, func(t *Totals) float64 { return float64(t.Reconnections) }},
	{"round_trip_seconds", "Round trip of the link, of the last request.", exposition.Gauge, func(t *Totals) float64 { return t.RoundTrip.Seconds() }},
}

// byHeader is the header that says who has answered.
const byHeader = "Grove-Answered-By"

// Pass answers a request by the far server. Where that cannot be reached before anything is answered, and the configuration allows it, local
// answers it.
func (p *Proxy) Pass(x *driver.Request, local func() error) error {
	body, err := x.Receive()
	if err != nil {
		return err
	}
	a := &answer{p: p, x: x, began: time.Now(), drafts: map[int]*drafting{}}
	err = a.pass(body)
	a.count(err)
	if !a.head && p.config.Fallback && errors.Is(err, errGone) && x.R.Context().Err() == nil {
		p.mu.Lock()
		p.totals.Local++
		p.mu.Unlock()
		x.Server.Log.WarnContext(x.R.Context(), "the far server cannot be used; the model here answers", "error", err.Error())
		x.W.Header().Set(byHeader, "fallback")
		x.R.Body = io.NopCloser(bytes.NewReader(body))
		return local()
	}
	return a.failed(err)
}

// answer is a request that is passed on.
type answer struct {
	p     *Proxy
	x     *driver.Request
	link  *remote.Link
	began time.Time
	head  bool   // the answer has begun
	kind  string // its content type
	tail  []byte // the last bytes that were written
	bytes int    // that came of its body
	ended bool

	model   *serving.OpenModel // the near one; nil: it cannot be used
	drafts  map[int]*drafting
	working sync.WaitGroup
}

// pass sends the request and gives the client what comes.
func (a *answer) pass(body []byte) error {
	ctx, cancel := context.WithCancel(a.x.R.Context())
	defer a.working.Wait()
	defer cancel()
	c := a.p.config
	a.link = remote.NewLink(remote.Config{Near: true, Ping: c.Ping, Silence: c.Silence})
	defer a.link.Fail(nil)
	r := remote.Request{
		Method: a.x.R.Method, Path: a.x.R.URL.RequestURI(), Header: flat(a.x.R.Header), Salt: access.CallerOf(ctx).Salt(""), Wait: max(0, c.Wait), Body: body,
	}
	if err := a.link.Send(ctx, remote.KindRequest, remote.Append(nil, &r)); err != nil {
		return err
	}
	id := make([]byte, idLength/2)
	_, _ = rand.Read(id) // it never fails
	a.working.Go(func() { a.p.carry(ctx, a.link, hex.EncodeToString(id)) })
	for {
		f, err := a.link.Next(ctx)
		if err == nil {
			err = a.take(ctx, f)
		}
		switch {
		case err != nil && !a.ended:
			a.leave()
			return err
		case a.ended:
			told, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Ping)
			a.link.Told(told)
			cancel()
			return err
		}
	}
}

// leave tells the far side that nobody wants the answer. Else it finds out by itself, when no connection has come for long.
func (a *answer) leave() {
	if !a.link.Connected() || !a.link.TrySend(remote.KindCancel, nil) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.x.R.Context()), a.p.config.Ping)
	defer cancel()
	_ = a.link.Drained(ctx)
}

// take handles a frame.
func (a *answer) take(ctx context.Context, f remote.Frame) (err error) {
	switch f.Kind {
	case remote.KindHead:
		var h remote.Head
		if err = remote.Parse(f.Payload, &h); err == nil && a.head {
			err = remote.ErrFrame
		}
		if err != nil {
			return err
		}
		for i := 0; i+1 < len(h.Header); i += 2 {
			if name := http.CanonicalHeaderKey(h.Header[i]); !strings.HasPrefix(name, "Access-Control-") && name != "X-Request-Id" {
				a.x.W.Header().Set(name, h.Header[i+1])
			}
		}
		a.x.W.Header().Set(byHeader, "verifier")
		a.head, a.kind = true, a.x.W.Header().Get("Content-Type")
		a.x.W.WriteHeader(h.Status)
	case remote.KindBody:
		if !a.head {
			return remote.ErrFrame
		}
		a.bytes += len(f.Payload)
		return a.write(f.Payload)
	case remote.KindModel:
		var m remote.Model
		if err = remote.Parse(f.Payload, &m); err == nil {
			err = a.check(m)
		}
	case remote.KindStart:
		var s remote.Start
		if err = remote.Parse(f.Payload, &s); err == nil {
			a.start(ctx, s)
		}
	case remote.KindTokens:
		var t remote.Tokens
		if err = remote.Parse(f.Payload, &t); err != nil {
			return err
		}
		d := a.drafts[t.Answer]
		if d == nil {
			return errLie
		}
		return d.tell(t)
	case remote.KindEnd:
		var e remote.End
		if err = remote.Parse(f.Payload, &e); err != nil {
			return err
		}
		a.ended = true
		access.CallerOf(ctx).Spend(e.Tokens)
		if !e.Whole || !a.head {
			return errCut
		}
	default:
		return remote.ErrFrame
	}
	return err
}

// write gives the client a part of the answer.
func (a *answer) write(part []byte) error {
	err := a.x.Give(part)
	a.tail = append(a.tail, part[max(0, len(part)-2):]...)
	a.tail = a.tail[max(0, len(a.tail)-2):]
	return err
}

// failed returns the answer to a request that failed, or ends the answer that has begun: a stream by an event with the error, another
// one by cutting the connection.
func (a *answer) failed(err error) error {
	if err == nil {
		return nil
	}
	e := named(err)
	switch {
	case !a.head || a.x.R.Context().Err() != nil:
		return e
	case strings.HasPrefix(a.kind, "text/event-stream"), strings.HasPrefix(a.kind, "application/x-ndjson"):
		body, fault := wire.Marshal(e)
		if fault != nil {
			return e
		}
		before, behind := "", "\n"
		if strings.HasPrefix(a.kind, "text/") {
			before, behind = "data: ", "\n\n"
		}
		if s := string(a.tail); s != "" && !strings.HasSuffix(s, behind) {
			before = behind + before
		}
		_ = a.write(slices.Concat([]byte(before), body, []byte(behind))) // the client may have gone
		return e
	}
	a.x.Server.Log.WarnContext(a.x.R.Context(), "an answer is cut off", "error", e.Message, "code", e.Code)
	panic(http.ErrAbortHandler) // the length of what the client has says that it is cut off
}

// check refuses a far model that is not the one that was asked for before, or with which the near one cannot work.
func (a *answer) check(m remote.Model) error {
	p := a.p
	if m.Numerics != grove.Numerics {
		return numericsError(m.Numerics)
	}
	if want := p.config.Model; want != "" && m.Name != want && (len(want) < 8 || !strings.HasPrefix(m.Weights, want)) {
		return gateway("far_model", "the far server answers by the model %s (%.16s), and --verifier-model is %s", wire.Clip(m.Name), m.Weights, want)
	}
	h, err := a.x.Model("")
	if err != nil {
		return err
	}
	own := p.words.of(h)
	p.mu.Lock()
	defer p.mu.Unlock()
	if old, ok := p.known[m.Name]; ok && old != m {
		return gateway("far_model", "the far server's model %s has other weights than before: %.16s, and it was %.16s; start this server again where that is right", wire.Clip(m.Name), m.Weights, old.Weights)
	}
	if own != m.Vocabulary {
		return gateway("far_vocabulary", "the far server's model %s has another vocabulary than %s, which drafts for it", wire.Clip(m.Name), h.Name)
	}
	if len(p.known) < maxSessions {
		p.known[m.Name] = m
	}
	a.model = h
	return nil
}

// count adds what was done to the totals, and logs it.
func (a *answer) count(err error) {
	t := a.link.Traffic()
	p := a.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.totals.Answers++
	} else {
		p.totals.Failed++
	}
	var sum Totals
	for _, d := range a.drafts {
		sum.Tokens, sum.Rounds = sum.Tokens+d.total.Tokens, sum.Rounds+d.total.Rounds
		sum.Drafted, sum.Accepted = sum.Drafted+d.total.Drafted, sum.Accepted+d.total.Accepted
	}
	p.totals.Tokens, p.totals.Rounds = p.totals.Tokens+sum.Tokens, p.totals.Rounds+sum.Rounds
	p.totals.Drafted, p.totals.Accepted = p.totals.Drafted+sum.Drafted, p.totals.Accepted+sum.Accepted
	p.totals.Sent, p.totals.Received = p.totals.Sent+t.Sent, p.totals.Received+t.Received
	p.totals.Body += a.bytes
	p.totals.Reconnections += max(0, t.Connections-1)
	if t.RoundTrip > 0 {
		p.totals.RoundTrip = t.RoundTrip
	}
	a.x.Server.Log.InfoContext(a.x.R.Context(), "far answer", "tokens", sum.Tokens, "rounds", sum.Rounds, "drafted", sum.Drafted, "accepted", sum.Accepted,
		"bytes_sent", t.Sent, "bytes_received", t.Received, "bytes_body", a.bytes, "connections", t.Connections, "round_trip_us", t.RoundTrip.Microseconds(), "ms", time.Since(a.began).Milliseconds())
}
