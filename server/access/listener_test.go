package access_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"grove/server/access"
)

// door is a server behind a [access.Listener]. Requests for /wait are answered when it is opened.
type door struct {
	listener *access.Listener
	remotes  *remotes
	begun    chan *http.Request // of /wait
	idle     chan struct{}      // has a value for each connection that has become idle
	open     chan struct{}
	refused  atomic.Int64
}

// remotes is a listener of connections in memory, whose clients have chosen addresses.
type remotes struct {
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

// Accept implements [net.Listener].
func (r *remotes) Accept() (net.Conn, error) {
	select {
	case c := <-r.accepted:
		return c, nil
	case <-r.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (r *remotes) Close() error {
	r.once.Do(func() { close(r.closed) })
	return nil
}

// Addr implements [net.Listener].
func (r *remotes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// remote is a connection from an address.
type remote struct {
	net.Conn
	from net.Addr
}

// RemoteAddr implements [net.Conn].
func (r *remote) RemoteAddr() net.Addr { return r.from }

func newDoor(t *testing.T, most int, grace time.Duration) *door {
	t.Helper()
	d := &door{remotes: &remotes{accepted: make(chan net.Conn), closed: make(chan struct{})}, begun: make(chan *http.Request, 100), idle: make(chan struct{}, 10_000), open: make(chan struct{})}
	d.listener = access.Listen(d.remotes, access.Connections{Most: most, Grace: grace, Refused: func(net.Addr) { d.refused.Add(1) }})
	h := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		access.Busy(r.Context())
		if r.URL.Path == "/wait" {
			d.begun <- r
			<-d.open
		}
		_, _ = io.WriteString(w, "done") // the client may have gone
	})}
	d.listener.Install(h)
	state := h.ConnState
	h.ConnState = func(c net.Conn, s http.ConnState) {
		if state(c, s); s == http.StateIdle {
			d.idle <- struct{}{}
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(d.listener) }()
	t.Cleanup(func() {
		_ = h.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return d
}

// dial connects from an address, and returns when the connection is accepted.
func (d *door) dial(t *testing.T, from string) *client {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = ours.Close() })
	if err := ours.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	d.remotes.accepted <- &remote{theirs, &net.TCPAddr{IP: net.ParseIP(from), Port: 5}}
	return &client{ours, d, bufio.NewReader(ours)}
}

type client struct {
	net.Conn
	door    *door
	answers *bufio.Reader
}

func (c *client) send(t *testing.T, path string) {
	t.Helper()
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
}

// read expects an answer, and waits until its connection is idle.
func (c *client) read(t *testing.T) {
	t.Helper()
	r, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(r.Body); string(body) != "done" || err != nil {
		t.Fatalf("%q, %v", body, err)
	}
	<-c.door.idle
}

// ask sends a request and expects its answer.
func (c *client) ask(t *testing.T) {
	t.Helper()
	c.send(t, "/")
	c.read(t)
}

// busy sends a request that is not answered, and returns when it is being handled.
func (d *door) busy(t *testing.T, from string) *client {
	t.Helper()
	c := d.dial(t, from)
	c.send(t, "/wait")
	<-d.begun
	return c
}

// closed expects that the server closes the connection.
func (c *client) closed(t *testing.T, name string) {
	t.Helper()
	if text, err := io.ReadAll(c.answers); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) || len(text) > 0 {
		t.Errorf("%s: the connection is not closed: %q, %v", name, text, err)
	}
}

// TestDisplaced: where all connections are taken, the one that is idle for the longest time is closed for a new one, and none that has a
// request.
func TestDisplaced(t *testing.T) {
	d := newDoor(t, 4, time.Hour)
	busy := d.busy(t, "10.0.0.1")
	first, second, third := d.dial(t, "10.0.0.2"), d.dial(t, "10.0.0.3"), d.dial(t, "10.0.0.4")
	for _, c := range []*client{second, first, third, second} { // the first is idle the longest
		c.ask(t)
	}
	for i, want := range []*client{first, third, second} {
		c := d.dial(t, fmt.Sprintf("10.0.1.%d", i))
		want.closed(t, fmt.Sprintf("newcomer %d", i))
		c.send(t, "/wait")
		<-d.begun
	}
	waits := make(chan *client)
	go func() { waits <- d.dial(t, "10.0.2.1") }() // all are busy: it is held until one is free
	close(d.open)
	busy.read(t)
	(<-waits).ask(t)
	if n := d.refused.Load(); n != 0 {
		t.Errorf("%d connections were refused", n)
	}
}

// TestGrace: a connection whose header has not come is displaced after its grace, by its own address at once.
func TestGrace(t *testing.T) {
	for _, tt := range []struct {
		name, from string
		grace      time.Duration
	}{{"another address", "10.0.0.9", 10 * time.Millisecond}, {"its own address", "10.0.0.1", time.Hour}} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDoor(t, 4, tt.grace)
			silent, begun := d.dial(t, "10.0.0.1"), d.dial(t, "10.0.0.2")
			if _, err := io.WriteString(begun, "GET / HT"); err != nil {
				t.Fatal(err)
			}
			d.dial(t, "10.0.0.3")
			d.dial(t, "10.0.0.4")
			c := d.dial(t, tt.from)
			silent.closed(t, "the oldest")
			c.ask(t)
		})
	}
}

// TestShare: one address cannot take all connections, by idle ones or by busy ones, and displaces none of others.
func TestShare(t *testing.T) {
	for _, tt := range []struct {
		name   string
		from   func(i int) string
		shared bool
	}{
		{"one address", func(int) string { return "10.0.0.1" }, true},
		{"one address in IPv6", func(int) string { return "::ffff:10.0.0.1" }, true},
		{"one network of IPv6", func(i int) string { return fmt.Sprintf("2001:db8::%x", i+1) }, true},
		{"networks of IPv6", func(i int) string { return fmt.Sprintf("2001:db8:0:%x::1", i) }, false},
		{"addresses", func(i int) string { return fmt.Sprintf("10.0.0.%d", i+1) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDoor(t, 16, time.Hour)
			defer close(d.open)
			idle := d.dial(t, "10.9.9.9")
			idle.ask(t)
			n := 15
			if tt.shared {
				n = 11 // with the idle one, three quarters
			}
			for i := range n {
				d.busy(t, tt.from(i))
			}
			if !tt.shared {
				return
			}
			d.dial(t, tt.from(16)).closed(t, "beyond the share")
			if n := d.refused.Load(); n != 1 {
				t.Errorf("%d connections were refused", n)
			}
			for i := range 4 { // the last quarter is for others
				d.busy(t, fmt.Sprintf("10.1.0.%d", i))
			}
			idle.ask(t)
			d.dial(t, "10.1.0.5") // and then the idle one's place
			idle.closed(t, "idle")
		})
	}
}

// TestFlood: an address that opens connections without end keeps the newest of them, and the others go on.
func TestFlood(t *testing.T) {
	d := newDoor(t, 8, time.Hour)
	other := d.dial(t, "10.0.0.2")
	for range 100 {
		d.dial(t, "10.0.0.1")
	}
	other.ask(t)
	last := d.dial(t, "10.0.0.1")
	last.ask(t)
	other.ask(t)
}

// TestOneConnection: a bound of one is a bound.
func TestOneConnection(t *testing.T) {
	d := newDoor(t, 1, time.Hour)
	first := d.dial(t, "10.0.0.1")
	first.ask(t)
	second := d.dial(t, "10.0.0.2")
	first.closed(t, "the first")
	second.ask(t)
}

// TestClosedListener: a connection that is held does not keep the listener from closing.
func TestClosedListener(t *testing.T) {
	l := access.Listen(&remotes{accepted: make(chan net.Conn), closed: make(chan struct{})}, access.Connections{Most: 1, Grace: time.Hour})
	inner := l.Listener.(*remotes)
	got := make(chan error)
	go func() {
		for {
			if _, err := l.Accept(); err != nil {
				got <- err
				return
			}
		}
	}()
	for i := range 2 {
		_, theirs := net.Pipe()
		inner.accepted <- &remote{theirs, &net.TCPAddr{IP: net.IPv4(10, 0, 0, byte(i))}}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-got; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// TestLeaving: a client that leaves ends the context of its request, also where it has sent more behind that.
func TestLeaving(t *testing.T) {
	const next = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
	for _, tt := range []struct{ name, more string }{
		{"nothing more", ""}, {"a byte", "\n"}, {"the beginning of a request", "POS"}, {"requests", strings.Repeat(next, 1000)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDoor(t, 4, time.Hour)
			c := d.dial(t, "10.0.0.1")
			c.send(t, "/wait")
			r := <-d.begun
			if tt.more != "" { // a pipe tells the reader of no bytes
				if _, err := io.WriteString(c, tt.more); err != nil {
					t.Fatal(err)
				}
			}
			if r.Context().Err() != nil {
				t.Error("a client that is there has left")
			}
			_ = c.Close()
			select {
			case <-r.Context().Done():
			case <-time.After(20 * time.Second):
				t.Error("the client's leaving is not noticed")
			}
			close(d.open)
		})
	}
}

// TestAhead: requests that come ahead of an answer are answered in their order, however many.
func TestAhead(t *testing.T) {
	const n = 5000 // more than is read ahead
	d := newDoor(t, 4, time.Hour)
	c := d.dial(t, "10.0.0.1")
	c.send(t, "/wait")
	r := <-d.begun
	wrote := make(chan error, 1)
	go func() {
		_, err := io.WriteString(c, strings.Repeat("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", n))
		wrote <- err
	}()
	close(d.open)
	for range n + 1 {
		c.read(t)
	}
	if err := <-wrote; err != nil || r.Context().Err() != nil && !errors.Is(r.Context().Err(), context.Canceled) {
		t.Error(err)
	}
}

// TestAheadTimes: a next request that is begun ahead and then does not come is given up like any other.
func TestAheadTimes(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	bounded := access.Listen(l, access.Connections{Most: 4})
	begun, open := make(chan struct{}), make(chan struct{})
	h := &http.Server{ReadHeaderTimeout: 50 * time.Millisecond, IdleTimeout: 50 * time.Millisecond, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		begun <- struct{}{}
		<-open
	})}
	bounded.Install(h)
	go func() { _ = h.Serve(bounded) }()
	defer h.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-begun
	if _, err := io.WriteString(c, "GET /"); err != nil {
		t.Fatal(err)
	}
	close(open)
	if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) || !strings.HasPrefix(string(text), "HTTP/1.1 200") {
		t.Errorf("%q, %v", text, err)
	}
}
