package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Config says how a link works.
type Config struct {
	Near    bool          // it is the near side's, which sends the request
	Request int           // bytes of a request at most
	Window  int           // bytes of other frames that the peer may leave unread; 0: 256 KiB
	Ping    time.Duration // between measurements of the round trip; 0: this side makes none
	Silence time.Duration // after which a connection counts as broken; 0: [Silence]
}

// Silence is the usual time after which a connection counts as broken.
const Silence = 5 * time.Second

const (
	window   = 256 << 10
	ackAfter = 16 // frames that are acknowledged together
)

// Traffic counts the frames and the bytes that a link has carried.
type Traffic struct {
	Sent, Received int // bytes of frames
	Connections    int
	RoundTrip      time.Duration // a moving average; 0: not measured
	Bandwidth      float64       // bytes a second towards the peer, a moving average over large frames; 0: not measured
}

// Link carries frames between two sides, in order, each once, over one connection after another. It is safe for concurrent use.
type Link struct {
	config Config

	mu      sync.Mutex
	changed chan struct{} // closed, and made anew, when anything below changes
	err     error         // that ended the link

	out      []sent // that the peer has not taken, the oldest first
	outBytes int
	last     uint64 // number of the last frame that was sent
	outSum   sum

	in      []Frame // that were not taken
	inBytes int
	got     uint64 // number of the last frame that came
	taken   uint64 // of the last one that was taken
	told    uint64 // that the peer was told as taken
	ended   bool   // the end of the answer was taken
	inSum   sum

	open    *connection // nil: there is none
	traffic Traffic
	trip    Average
	speed   Average
}

// sent is a frame as it is sent.
type sent struct {
	number uint64
	bytes  []byte
}

// NewLink makes a link without a connection; see [Link.Carry].
func NewLink(c Config) *Link {
	if c.Window == 0 {
		c.Window = window
	}
	if c.Silence == 0 {
		c.Silence = Silence
	}
	return &Link{config: c, changed: make(chan struct{})}
}

// tell wakes all who wait for a change. The caller holds the lock.
func (l *Link) tell() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// until waits, without the lock that the caller holds, until done. Errors: ctx's, and that which ended the link.
func (l *Link) until(ctx context.Context, done func() bool) error {
	for !done() {
		if l.err != nil {
			return l.err
		}
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		l.mu.Lock()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// Send sends a frame. While the peer leaves much unread, it waits. Errors: ctx's, and that which ended the link.
func (l *Link) Send(ctx context.Context, kind Kind, payload []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.until(ctx, func() bool { return !l.full(payload) }); err != nil {
		return err
	}
	return l.send(kind, payload)
}

// TrySend is Send for frames that may be left out: it reports false where Send would wait or fail.
func (l *Link) TrySend(kind Kind, payload []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err == nil && !l.full(payload) && len(payload) <= maxFrame && l.send(kind, payload) == nil
}

// full reports whether the peer would have too much unread. The largest frame may go where nothing is unread.
func (l *Link) full(payload []byte) bool {
	return l.outBytes > 0 && l.outBytes+len(payload) > l.config.Window
}

func (l *Link) send(kind Kind, payload []byte) error {
	if l.err != nil {
		return l.err
	}
	l.last++
	l.outSum = l.outSum.next(kind, l.last, payload)
	if l.config.Near && l.last == 1 {
		l.inSum = l.outSum.answer()
	}
	s := sent{l.last, seal(nil, kind, l.last, payload, &l.outSum)}
	l.out = append(l.out, s)
	l.outBytes += len(s.bytes)
	l.tell()
	return nil
}

// Next takes the next frame, and so lets the peer send more. The frame is the caller's. Errors: ctx's, and that which ended the link.
func (l *Link) Next(ctx context.Context) (Frame, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.until(ctx, func() bool { return len(l.in) > 0 }); err != nil {
		return Frame{}, err
	}
	f := l.in[0]
	l.in = l.in[1:]
	l.inBytes -= f.size
	l.taken, l.ended = f.number, l.ended || f.Kind == KindEnd
	l.tell()
	return f, nil
}

// Received returns the number of the last frame that came, which a new connection begins with.
func (l *Link) Received() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.got
}

// Connected reports whether the link has a connection.
func (l *Link) Connected() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open != nil
}

// Traffic returns what the link has carried.
func (l *Link) Traffic() Traffic {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.traffic
	t.RoundTrip, t.Bandwidth = time.Duration(l.trip.Value()*float64(time.Second)), l.speed.Value()
	return t
}

// Told returns when the peer knows which frames were taken, or ctx, the link or its connection has ended.
func (l *Link) Told(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.until(ctx, func() bool { return l.told >= l.taken || l.open == nil }) // it is no matter which
}

// Drained returns when the peer has taken all frames, or ctx or the link has ended.
func (l *Link) Drained(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until(ctx, func() bool { return len(l.out) == 0 })
}

// ErrClosed is the error of a link that was closed.
var ErrClosed = errors.New("remote: the link is closed")

// Fail ends the link and its connection by an error; frames that have come can still be taken. nil: [ErrClosed].
func (l *Link) Fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		err = ErrClosed
	}
	if l.err == nil {
		l.err = err
	}
	if l.open != nil {
		l.open.close()
	}
	l.tell()
}

// Err returns the error that ended the link; nil: it goes on.
func (l *Link) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// acknowledged drops what the peer has. The caller holds the lock.
func (l *Link) acknowledged(number uint64) error {
	if number > l.last {
		return fmt.Errorf("%w: it acknowledges frame %d, and %d were sent", ErrFrame, number, l.last)
	}
	n := 0
	for n < len(l.out) && l.out[n].number <= number {
		l.outBytes -= len(l.out[n].bytes)
		n++
	}
	if n > 0 {
		l.out = l.out[n:]
		l.tell()
	}
	return nil
}

// arrived adds a frame that came. One that came before is dropped; one too early ends the connection, which is opened again and begins at the
// right one.
func (l *Link) arrived(f Frame, has [sumBytes]byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.traffic.Received += f.size
	switch {
	case f.number <= l.got && f.number > 0:
		return nil
	case f.number != l.got+1:
		return fmt.Errorf("frame %d came behind frame %d", f.number, l.got)
	case (f.number == 1 && !l.config.Near) != (f.Kind == KindRequest):
		return l.fatal(fmt.Errorf("%w: kind %d as number %d", ErrFrame, f.Kind, f.number))
	}
	to := l.inSum.next(f.Kind, f.number, f.Payload)
	if [sumBytes]byte(to[:sumBytes]) != has {
		return l.fatal(ErrDigest)
	}
	if l.inBytes += f.size; l.inBytes > l.config.Window+maxFrame && f.number > 1 {
		return l.fatal(ErrFlood)
	}
	if l.inSum, l.got = to, f.number; f.number == 1 && !l.config.Near {
		l.outSum = to.answer()
	}
	l.in = append(l.in, f)
	l.tell()
	return nil
}

// fatal ends the link. The caller holds the lock.
func (l *Link) fatal(err error) error {
	if l.err == nil {
		l.err = err
	}
	l.tell()
	return l.err
}

// measured notes the round trip of a ping behind so many bytes.
func (l *Link) measured(trip time.Duration, bytes int) {
	const large = 4 << 10
	l.mu.Lock()
	defer l.mu.Unlock()
	switch known := l.trip.Value(); {
	case bytes < large:
		l.trip.Add(trip.Seconds())
	case known > 0 && trip.Seconds() > known:
		l.speed.Add(float64(bytes) / (trip.Seconds() - known))
	}
}

// Carry lets a connection carry the link until it breaks or the link ends; it returns why. received is the number of the last frame
// that the peer has. A connection that is there already is closed: the peer has left it. shut must end all calls of r and w.
func (l *Link) Carry(r io.Reader, w io.Writer, shut func(), received uint64) error {
	c := &connection{link: l, w: w, shut: shut, done: make(chan struct{}), sent: received, start: time.Now(), pings: map[uint64]int{}}
	if err := l.join(c, received); err != nil {
		shut()
		return err
	}
	var beside sync.WaitGroup
	beside.Go(c.write)
	beside.Go(c.watch)
	err := c.read(r)
	c.close()
	beside.Wait()
	c.gone.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == c {
		l.open = nil
	}
	l.tell()
	if l.err != nil {
		return l.err
	}
	return err
}

// join makes a connection the link's.
func (l *Link) join(c *connection, received uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	if len(l.out) > 0 && received+1 < l.out[0].number || len(l.out) == 0 && received < l.last {
		return l.fatal(fmt.Errorf("%w: the peer has lost frames: it has %d", ErrFrame, received))
	}
	if err := l.acknowledged(received); err != nil {
		return l.fatal(err)
	}
	if l.open != nil {
		l.open.close()
	}
	l.open = c
	l.told = 0
	l.traffic.Connections++
	return nil
}
