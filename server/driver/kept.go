package driver

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"grove/server/access"
	"grove/server/wire"
)

// keptHeader names a stream that its client may read on after its connection was lost, as in llama.cpp's server.
const keptHeader = "X-Conversation-Id"

// The bounds of the streams that are kept for that.
const (
	keptName   = 256             // bytes of a name
	keptEach   = 4 << 20         // bytes of a stream; of a longer one the end is kept
	keptAll    = 32 << 20        // bytes of all
	keptCut    = 64 << 10        // bytes that a stream loses at a time
	keptNumber = 16              // streams of a key
	keptTime   = 5 * time.Minute // after the end of a stream
	keptAlone  = 2 * time.Minute // that a stream goes on without a reader
)

// KeptStreams are streams that can be read again. The zero value has none. It is safe for concurrent use.
type KeptStreams struct {
	mu    sync.Mutex
	all   []*KeptStream // the oldest first
	bytes int           // of all
}

// KeptStream is the text of a stream, as it was sent. The lock of its [KeptStreams] guards it.
type KeptStream struct {
	Name  string
	Began time.Time

	set     *KeptStreams
	owner   string
	framing Framing
	cancel  context.CancelCauseFunc // of the request
	held    []byte                  // the end of the stream
	dropped int                     // bytes before it
	ended   time.Time               // zero: it goes on
	readers int                     // the request's own client among them
	alone   *time.Timer             // ends the stream when it has had no reader for long; nil: it has one
	more    chan struct{}           // closed when there is more, or the end; nil: nobody waits
}

// errAlone ends a request whose stream nobody reads.
var errAlone = &wire.Error{Status: http.StatusRequestTimeout, Type: wire.TypeInvalid, Code: "client_closed", Message: "the client has left, and none has read its stream on"}

// errStopped ends a request that a client has stopped by its stream's name.
var errStopped = &wire.Error{Status: http.StatusRequestTimeout, Type: wire.TypeInvalid, Code: "stream_stopped", Message: "the stream was stopped"}

// keep lets the stream of a request be read again, where its header asks for that. The request goes on when its client leaves then. done is called when the
// request is answered.
func (x *Request) keep(f Framing) (k *KeptStream, done func(), err error) {
	name := x.R.Header.Get(keptHeader)
	switch {
	case name == "":
		return nil, func() {}, nil
	case len(name) > keptName:
		return nil, nil, wire.Refuse("", "the header %s has %d bytes; it may have %d", keptHeader, len(name), keptName)
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(x.R.Context()))
	k = &KeptStream{Name: name, Began: x.Began, set: &x.Server.Kept, owner: access.CallerOf(ctx).Folder(), framing: f, cancel: cancel, readers: 1}
	if err := k.set.add(k); err != nil {
		cancel(nil)
		return nil, nil, err
	}
	left := context.AfterFunc(x.R.Context(), k.leave)
	x.R = x.R.WithContext(ctx)
	return k, func() {
		left()
		k.end(x.sent == http.StatusOK)
		cancel(nil)
	}, nil
}

// add adds a stream in place of the one of the same name. That goes on while its own client reads it.
func (s *KeptStreams) add(k *KeptStream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.find(k.owner, k.Name); old != nil {
		if old.readers == 0 {
			old.cancel(errStopped)
		}
		s.remove(old)
	}
	own := 0
	for _, o := range s.all {
		if o.owner == k.owner {
			own++
		}
	}
	if own >= keptNumber && !s.forget(func(o *KeptStream) bool { return o.owner == k.owner }) {
		return &wire.Error{
			Status: http.StatusTooManyRequests, Retry: 1, Type: wire.TypeBusy, Code: "streams_full",
			Message: strconv.Itoa(keptNumber) + " streams with the header " + keptHeader + " go on, the most that may; wait for one, stop one, or leave the header out",
		}
	}
	s.all = append(s.all, k)
	return nil
}

// forget removes the oldest stream of some that has ended, and reports whether there is one. The caller holds the lock.
func (s *KeptStreams) forget(some func(*KeptStream) bool) bool {
	i := slices.IndexFunc(s.all, func(o *KeptStream) bool { return !o.ended.IsZero() && some(o) })
	if i >= 0 {
		s.remove(s.all[i])
	}
	return i >= 0
}

// find returns the stream of a key and a name, nil for none. The caller holds the lock.
func (s *KeptStreams) find(owner, name string) *KeptStream {
	for s.forget(func(o *KeptStream) bool { return time.Since(o.ended) > keptTime }) {
	}
	i := slices.IndexFunc(s.all, func(o *KeptStream) bool { return o.owner == owner && o.Name == name })
	if i < 0 {
		return nil
	}
	return s.all[i]
}

// remove removes a stream. Who reads it reads what it has. The caller holds the lock.
func (s *KeptStreams) remove(k *KeptStream) {
	if i := slices.Index(s.all, k); i >= 0 {
		s.all = slices.Delete(s.all, i, i+1)
		s.bytes -= len(k.held)
	}
}

// append adds a part of the stream; nil keeps nothing.
func (k *KeptStream) append(part []byte) {
	if k == nil {
		return
	}
	k.set.mu.Lock()
	defer k.set.mu.Unlock()
	if !slices.Contains(k.set.all, k) {
		return // another stream has its name
	}
	for k.set.bytes+len(part) > keptAll && k.set.forget(func(*KeptStream) bool { return true }) {
	}
	if over := max(len(k.held)+len(part)-keptEach, k.set.bytes+len(part)-keptAll); over > 0 {
		cut := min(max(over, keptCut), len(k.held))
		k.held = k.held[:copy(k.held, k.held[cut:])]
		skip := min(max(over-cut, 0), len(part))
		part = part[skip:]
		k.dropped += cut + skip
		k.set.bytes -= cut
	}
	k.held = append(k.held, part...)
	k.set.bytes += len(part)
	k.wake()
}

// wake wakes the readers. The caller holds the lock.
func (k *KeptStream) wake() {
	if k.more != nil {
		close(k.more)
		k.more = nil
	}
}

// end says that the stream has ended. One that never began is forgotten.
func (k *KeptStream) end(began bool) {
	k.set.mu.Lock()
	defer k.set.mu.Unlock()
	k.ended = time.Now()
	if k.alone != nil {
		k.alone.Stop()
	}
	k.wake()
	if !began {
		k.set.remove(k)
	}
}

// leave says that a reader has left.
func (k *KeptStream) leave() {
	k.set.mu.Lock()
	defer k.set.mu.Unlock()
	k.readers--
	switch {
	case k.readers > 0 || !k.ended.IsZero():
	case !slices.Contains(k.set.all, k):
		k.cancel(errStopped) // none can come again
	default:
		k.alone = time.AfterFunc(keptAlone, func() { k.cancel(errAlone) })
	}
}

// Find returns the stream of a request's key and of a name; nil: there is none, or no longer.
func (s *KeptStreams) Find(x *Request, name string) *KeptStream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(access.CallerOf(x.R.Context()).Folder(), name)
}

// Stop ends a stream and its request.
func (k *KeptStream) Stop() {
	k.set.mu.Lock()
	defer k.set.mu.Unlock()
	k.set.remove(k)
	k.cancel(errStopped)
}

// State returns the bytes of the stream so far, and when it ended, zero where it goes on.
func (k *KeptStream) State() (bytes int, ended time.Time) {
	k.set.mu.Lock()
	defer k.set.mu.Unlock()
	return k.dropped + len(k.held), k.ended
}

// Resume answers a request with a stream behind its first bytes, until it ends.
func (k *KeptStream) Resume(x *Request, from int) error {
	ctx, cancel := x.Server.Pool.Within(x.R.Context())
	defer cancel(nil)
	k.join()
	defer k.leave()
	for begun := false; ; {
		part, more, err := k.behind(from)
		if err != nil && !begun {
			return err
		}
		if err != nil {
			panic(http.ErrAbortHandler) // the reader was too slow; it must not take what it has for the whole
		}
		if !begun {
			k.framing.header(x)
			if err := http.NewResponseController(x.W).Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
				return err
			}
			begun = true
		}
		if len(part) > 0 {
			if err := x.Give(part); err != nil {
				return err
			}
			from += len(part)
			continue
		}
		if more == nil {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// join says that a reader has come.
func (k *KeptStream) join() {
	k.set.mu.Lock()
	defer k.set.mu.Unlock()
	if k.readers++; k.alone != nil {
		k.alone.Stop()
		k.alone = nil
	}
}

// behind returns a piece of the stream behind its first bytes. Where there is none yet, more is closed when there is; nil: the stream has ended.
func (k *KeptStream) behind(from int) (part []byte, more <-chan struct{}, err error) {
	k.set.mu.Lock()
	defer k.set.mu.Unlock()
	end := k.dropped + len(k.held)
	switch {
	case from < k.dropped:
		e := wire.Refuse("from", "from is %d; the first %d bytes of the stream are no longer kept", from, k.dropped)
		e.Code = "stream_offset_lost"
		return nil, nil, e
	case from > end:
		return nil, nil, wire.Refuse("from", "from is %d; the stream has %d bytes so far", from, end)
	case from < end:
		part = k.held[from-k.dropped:]
		return slices.Clone(part[:min(len(part), piece)]), nil, nil
	case !k.ended.IsZero() || !slices.Contains(k.set.all, k):
		return nil, nil, nil
	}
	if k.more == nil {
		k.more = make(chan struct{})
	}
	return nil, k.more, nil
}
