// Package far computes answers on two servers: a near one, which has a small model and drafts, and a far one, which has the model that is asked and
// verifies (FlexSpec). The near server passes each request on as it is ([Proxy]); the far one answers it by its own routes ([Verifier]). Beside
// the answer, the link between them carries the tokens of the text to the near side and drafts to the far side, so the text is the one that the
// far model gives alone, whatever becomes of the drafts. Package remote has the protocol.
//
// PUT /far/ID opens a connection, which is one stream of HTTP/2 in both directions. Where it breaks, the near side opens another one for the same ID,
// and each side goes on behind the last frame that the other has.
package far

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"grove"
	"grove/internal/text/token"
	"grove/server/access"
	"grove/server/driver"
	"grove/server/far/remote"
	"grove/server/serving"
	"grove/server/wire"
)

// The headers of a connection.
const (
	versionHeader  = "Grove-Far"          // [remote.Version]
	numericsHeader = "Grove-Far-Numerics" // the version of the arithmetic
	receivedHeader = "Grove-Far-Received" // the number of the last frame that the sender has
)

// The bounds of a verifier.
const (
	maxSessions = 128
	idLength    = 32
	keepTime    = 30 * time.Second // of an answer without a connection
)

// Verifier answers the requests of near servers. It is safe for concurrent use.
type Verifier struct {
	Handler http.Handler  // answers requests
	Body    int64         // bytes of a request's body at most
	Keep    time.Duration // how long an answer waits for a new connection; 0: 30 s

	mu       sync.Mutex
	sessions map[string]*session // by the caller's folder and the ID
	words    vocabularies
}

// Routes returns the verifier's routes.
func (v *Verifier) Routes() []driver.Route {
	return []driver.Route{{Access: driver.Ready, Handle: v.connect, Patterns: []string{"PUT /far/{id}"}}}
}

// connect handles a connection.
func (v *Verifier) connect(x *driver.Request) error {
	id, h := x.R.PathValue("id"), x.R.Header
	received, err := strconv.ParseUint(h.Get(receivedHeader), 10, 62)
	switch {
	case x.R.ProtoMajor < 2:
		return refuse("far_http1", "a near server speaks HTTP/2, and this request came by %s; no proxy between the two may change that", x.R.Proto)
	case h.Get(versionHeader) != remote.Version:
		return refuse("far_version", "the near server speaks %q, and this one %q", wire.Clip(h.Get(versionHeader)), remote.Version)
	case len(id) != idLength || err != nil:
		return refuse("far_request", "the name of an answer has %d letters, and %s is a number", idLength, receivedHeader)
	}
	s, err := v.session(x, id, received == 0)
	if err != nil {
		return err
	}
	control := http.NewResponseController(x.W)
	_ = control.SetReadDeadline(time.Time{}) // a connection lasts as long as the answer
	x.W.Header().Set(versionHeader, remote.Version)
	x.W.Header().Set(numericsHeader, grove.Numerics)
	x.W.Header().Set(receivedHeader, strconv.FormatUint(s.link.Received(), 10))
	x.W.WriteHeader(http.StatusOK)
	_ = control.Flush() // where it fails, so does the first frame
	_ = s.link.Carry(x.R.Body, stream{x.W, control}, func() {
		_ = control.SetReadDeadline(time.Now())
		_ = control.SetWriteDeadline(time.Now())
	}, received)
	time.AfterFunc(v.keep(), s.forget)
	return nil
}

func (v *Verifier) keep() time.Duration { return cmp.Or(v.Keep, keepTime) }

// refuse returns an error of status 400 with a code.
func refuse(code, format string, args ...any) *wire.Error {
	e := wire.Refuse("", format, args...)
	e.Code = code
	return e
}

// stream is the half of a connection that is written to.
type stream struct {
	io.Writer
	control *http.ResponseController
}

// Flush sends what was written.
func (s stream) Flush() error { return s.control.Flush() }

// session returns the answer of an ID, a new one where the near side has none of its frames and it is not known.
func (v *Verifier) session(x *driver.Request, id string, fresh bool) (*session, error) {
	caller := access.CallerOf(x.R.Context())
	key := caller.Folder() + "\x00" + id
	v.mu.Lock()
	defer v.mu.Unlock()
	if s, ok := v.sessions[key]; ok {
		return s, nil
	}
	switch {
	case !fresh:
		return nil, &wire.Error{Status: http.StatusNotFound, Message: "the answer is not known any longer", Type: wire.TypeInvalid, Code: "far_forgotten"}
	case len(v.sessions) >= maxSessions:
		return nil, &wire.Error{Status: http.StatusServiceUnavailable, Retry: 1, Message: fmt.Sprintf("%d answers for near servers are open", maxSessions), Type: wire.TypeBusy, Code: "far_full"}
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(x.R.Context()))
	s := &session{
		v: v, pool: x.Server.Pool, key: key, ctx: ctx, cancel: cancel, link: remote.NewLink(remote.Config{Request: int(v.Body) + 1<<20}),
		host: x.R.Host, from: x.R.RemoteAddr, authority: x.R.Header, texts: map[int]*text{},
	}
	if v.sessions == nil {
		v.sessions = map[string]*session{}
	}
	v.sessions[key] = s
	go s.run()
	return s, nil
}

// Close cancels all answers.
func (v *Verifier) Close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.sessions {
		s.cancel(wire.ErrStopping)
	}
}

// vocabularies are the digests of models' tokens by their weights. It is safe for concurrent use.
type vocabularies struct {
	mu  sync.Mutex
	all map[string]string
}

// of returns the SHA-256 of a model's tokens, each behind its length.
func (v *vocabularies) of(h *serving.OpenModel) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if d, ok := v.all[h.Info.SampleDigest]; ok {
		return d
	}
	if v.all == nil || len(v.all) > maxSessions {
		v.all = map[string]string{}
	}
	sum := sha256.New()
	for id := range token.ID(h.Info.Vocabulary) {
		raw, err := h.Model.Piece(id)
		if err != nil {
			raw = nil // one that stands for no text
		}
		sum.Write(binary.AppendUvarint(nil, uint64(len(raw))))
		sum.Write(raw)
	}
	v.all[h.Info.SampleDigest] = fmt.Sprintf("%x", sum.Sum(nil))
	return v.all[h.Info.SampleDigest]
}

// modelOf describes a model for the other side.
func modelOf(h *serving.OpenModel, vocabulary string) remote.Model {
	return remote.Model{Name: h.Name, Weights: fmt.Sprintf("%x", h.Info.SampleDigest), Vocabulary: vocabulary, Numerics: grove.Numerics}
}
