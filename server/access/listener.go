package access

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Connections says how many connections a listener has. The share of an address is a quarter of them.
type Connections struct {
	Most    int            // 1 or more
	Grace   time.Duration  // for the header of a new connection, until another address may displace it
	Refused func(net.Addr) // called for a connection that is closed at once; nil: nothing is
}

// Listener accepts a bounded number of connections. Where all are taken, it closes the one that has waited for a request the longest. An
// address that has its share may take the shares of others, but for the last one, and displaces its own connections alone. The listener
// is safe for concurrent use.
type Listener struct {
	net.Listener
	config Connections

	mu        sync.Mutex
	open      map[*connection]bool
	addresses map[netip.Prefix]int // the number of open connections of each address
	changed   chan struct{}        // has a value where a connection may have become free
	closed    chan struct{}
	once      sync.Once
}

// Listen returns a listener with a bound on open connections. The server that uses it must be told by [Listener.Install].
func Listen(l net.Listener, c Connections) *Listener {
	return &Listener{
		Listener: l, config: c, open: map[*connection]bool{}, addresses: map[netip.Prefix]int{}, changed: make(chan struct{}, 1),
		closed: make(chan struct{}),
	}
}

// Install makes a server tell the listener which connections have requests.
func (l *Listener) Install(h *http.Server) {
	h.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		ctx, end := context.WithCancel(context.WithValue(ctx, connectionKey{}, connectionOf(c)))
		connectionOf(c).end = end
		return ctx
	}
	h.ConnState = func(c net.Conn, s http.ConnState) {
		if s == http.StateIdle {
			l.wait(connectionOf(c))
		}
	}
}

// connectionOf returns the connection of the listener that a server has, which may be below one of TLS.
func connectionOf(c net.Conn) *connection {
	if above, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = above.NetConn()
	}
	return c.(*connection)
}

// connectionKey is the key of a request's connection in its context.
type connectionKey struct{}

// Busy says that the header of a request is there: its connection is not displaced until the request is answered.
func Busy(ctx context.Context) {
	if c, ok := ctx.Value(connectionKey{}).(*connection); ok {
		c.l.mu.Lock()
		defer c.l.mu.Unlock()
		c.busy = true
	}
}

// Accept implements [net.Listener]. A connection for which there is no room is held until there is, or closed where its address has its
// share and a request on each connection.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &connection{Conn: inner, l: l, end: func() {}, address: addressOf(inner.RemoteAddr()), since: time.Now()}
		c.arrived.L = &c.mu
		entered, err := l.enter(c)
		switch {
		case err != nil:
			_ = inner.Close()
			return nil, err
		case entered:
			return c, nil
		}
		if l.config.Refused != nil {
			l.config.Refused(inner.RemoteAddr())
		}
		_ = inner.Close()
	}
}

// Close implements [net.Listener].
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// enter adds a connection when there is room for it, and reports false where its address has its share and no connection to displace.
func (l *Listener) enter(c *connection) (bool, error) {
	for {
		added, oldest, wait := l.place(c)
		switch {
		case added:
			return true, nil
		case oldest != nil:
			_ = oldest.Close()
			continue
		case wait == 0:
			return false, nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-l.changed:
		case <-timer.C:
		case <-l.closed:
			timer.Stop()
			return false, net.ErrClosed
		}
		timer.Stop()
	}
}

// place adds a connection, or returns the one to close for it, or the time after which to try again; 0: it has no place.
func (l *Listener) place(c *connection) (added bool, oldest *connection, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	most, share := l.config.Most, max(1, l.config.Most/4)
	own := l.addresses[c.address] >= share
	if n := len(l.open); n < most-share || n < most && !own {
		l.open[c] = true
		l.addresses[c.address]++
		return true, nil, 0
	}
	now := time.Now()
	for o := range l.open {
		switch {
		case o.busy, own && o.address != c.address, !own && !o.used && now.Sub(o.since) < l.config.Grace:
		case oldest == nil, o.since.Before(oldest.since):
			oldest = o
		}
	}
	if oldest != nil || own {
		return false, oldest, 0
	}
	return false, nil, max(l.config.Grace, time.Millisecond)
}

// wait says that the request of a connection is answered.
func (l *Listener) wait(c *connection) {
	l.mu.Lock()
	c.busy, c.used, c.since = false, true, time.Now()
	l.mu.Unlock()
	l.wake()
}

// leave removes a connection that is closed.
func (l *Listener) leave(c *connection) {
	l.mu.Lock()
	if l.open[c] {
		delete(l.open, c)
		if l.addresses[c.address]--; l.addresses[c.address] == 0 {
			delete(l.addresses, c.address)
		}
	}
	l.mu.Unlock()
	l.wake()
}

func (l *Listener) wake() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// addressOf returns the address of a client: of IPv6 its network of 64 bits, which one client has.
func addressOf(a net.Addr) netip.Prefix {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := ip.BitLen()
	if ip.Is6() && !ip.IsLoopback() {
		bits = 64
	}
	network, _ := ip.Prefix(bits) // the number fits the address
	return network
}
