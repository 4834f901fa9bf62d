package remote

import (
	"bufio"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// ErrSilence says that a connection has given nothing for long.
var ErrSilence = errors.New("remote: the connection gives nothing")

// connection is what carries a link for a while.
type connection struct {
	link *Link
	w    io.Writer
	shut func()
	once sync.Once
	gone sync.WaitGroup // while shut runs
	done chan struct{}  // closed when the connection is to end
	why  error          // set before done is closed

	sent  uint64       // number of the last frame that was sent on it
	heard atomic.Int64 // when something came, in ns since its start
	start time.Time

	mu    sync.Mutex
	pongs []uint64       // clocks to answer
	pings map[uint64]int // the bytes before each ping that was sent
}

func (c *connection) close() { c.end(io.ErrClosedPipe) }

func (c *connection) end(why error) {
	c.once.Do(func() {
		c.why = why
		close(c.done)
		c.gone.Go(c.shut) // it may wait for a write
	})
}

// read reads frames until the connection breaks.
func (c *connection) read(r io.Reader) error {
	b := bufio.NewReader(r)
	for {
		f, has, err := readFrame(b, c.link.config.Request)
		if errors.Is(err, ErrFrame) {
			c.link.Fail(err)
		}
		if err != nil {
			select {
			case <-c.done:
				return c.why
			default:
				return err
			}
		}
		c.heard.Store(int64(time.Since(c.start)))
		switch f.Kind {
		case kindPing:
			c.mu.Lock()
			if len(c.pongs) < 16 { // more nobody sends
				c.pongs = append(c.pongs, f.number)
			}
			c.mu.Unlock()
			c.wake(f.size)
		case kindPong:
			c.pong(f.number)
			c.wake(f.size)
		case kindAck:
			c.link.mu.Lock()
			c.link.traffic.Received += f.size
			if err = c.link.acknowledged(f.number); err != nil {
				err = c.link.fatal(err)
			}
			c.link.mu.Unlock()
		default:
			err = c.link.arrived(f, has)
		}
		if err != nil {
			return err
		}
	}
}

// wake counts bytes that came, and lets the writer look.
func (c *connection) wake(n int) {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	c.link.traffic.Received += n
	c.link.tell()
}

func (c *connection) pong(clock uint64) {
	c.mu.Lock()
	bytes, mine := c.pings[clock]
	delete(c.pings, clock)
	c.mu.Unlock()
	if mine {
		c.link.measured(time.Since(c.start)-time.Duration(clock), bytes)
	}
}

// watch ends a connection that gives nothing for long, whatever its writer waits for.
func (c *connection) watch() {
	most := c.link.config.Silence
	look := time.NewTicker(max(most/8, time.Millisecond))
	defer look.Stop()
	for {
		select {
		case <-look.C:
			if time.Since(c.start)-time.Duration(c.heard.Load()) > most {
				c.end(ErrSilence)
			}
		case <-c.done:
			return
		}
	}
}

// write sends what there is to send until the connection ends.
func (c *connection) write() {
	l := c.link
	var pinged time.Time
	for {
		due := l.config.Ping > 0 && time.Since(pinged) >= l.config.Ping
		b, changed := c.collect(due)
		if due {
			pinged = time.Now()
		}
		if len(b) > 0 {
			_, err := c.w.Write(b)
			if f, ok := c.w.(interface{ Flush() error }); ok && err == nil {
				err = f.Flush()
			}
			l.mu.Lock()
			l.tell() // of what was acknowledged
			l.mu.Unlock()
			if err != nil {
				c.end(err)
				return
			}
			continue
		}
		next := time.Hour
		if l.config.Ping > 0 {
			next = max(0, l.config.Ping-time.Since(pinged))
		}
		timer := time.NewTimer(next)
		select {
		case <-changed:
		case <-timer.C:
		case <-c.done:
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// collect returns what is to be sent next, and what says that there is more. It is little at a time: of what one write
// sends, HTTP/2 may give the peer all or nothing.
func (c *connection) collect(ping bool) (b []byte, changed <-chan struct{}) {
	l := c.link
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.out {
		if s.number > c.sent && len(b) < MaxBody {
			b, c.sent = append(b, s.bytes...), s.number
		}
	}
	if l.taken >= l.told+ackAfter || l.taken > l.told && (ping || l.ended) {
		b, l.told = control(b, kindAck, l.taken), l.taken
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pongs) > 0 && l.taken > l.told {
		b, l.told = control(b, kindAck, l.taken), l.taken
	}
	for _, clock := range c.pongs {
		b = control(b, kindPong, clock)
	}
	c.pongs = c.pongs[:0]
	if ping || len(b) >= 4<<10 && l.config.Ping > 0 && len(c.pings) < 16 {
		clock := uint64(time.Since(c.start))
		c.pings[clock] = len(b)
		b = control(b, kindPing, clock)
	}
	l.traffic.Sent += len(b)
	return b, l.changed
}
