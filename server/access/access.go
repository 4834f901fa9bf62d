// Package access decides who may call the server: by the Host header and the origin of a request, and by keys with limits. Without
// keys, a server takes requests that name this machine and come from its own pages or from programs, so that no page of the web and no
// name that was bound to this machine's address reaches it.
package access

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"grove/server/wire"
)

// Config sets the access rules of a server. The zero value is a server without keys, for this machine alone.
type Config struct {
	Keys    []Key    // a request must show one of these; none: it need not
	Hosts   []string // without keys, further values of the Host header: a name or an address, *.NAME for the names below one, * for all
	Origins []string // further origins of pages: SCHEME://HOST[:PORT], SCHEME://*, SCHEME://*.NAME, null, or * for all
	Listen  string   // the address that the server listens on, HOST:PORT: its host is allowed; "": none is

	Priority *int // the most urgent, lowest one that requests may ask for; nil: any without keys and Hosts, else 0
	Share    bool // keys share cached prefixes, and what drafting learns
}

// ErrConfig reports keys, hosts or origins that cannot be used, and an address that needs keys.
var ErrConfig = errors.New("access")

// Gate decides who may call. It is safe for concurrent use.
type Gate struct {
	keyed   bool // requests must show a key
	hosts   []string
	anyHost bool
	origins []origin
	own     string // the host that the server listens on; "": none that a client would name

	priority int
	share    bool
	anyone   Caller // of a server without keys

	mu   sync.Mutex // held while keys are replaced
	keys atomic.Pointer[[]*Caller]
}

// New makes a gate. Its errors are [ErrConfig].
func New(c Config) (*Gate, error) {
	g := Local()
	g.keyed, g.share = len(c.Keys) > 0, c.Share
	if len(c.Keys)+len(c.Hosts) > 0 {
		g.priority = 0
	}
	if c.Priority != nil {
		g.priority = *c.Priority
		if err := CheckPriority(g.priority); err != nil {
			return nil, err
		}
	}
	for _, text := range c.Hosts {
		pattern, err := parseHostPattern(text)
		if err != nil {
			return nil, err
		}
		g.anyHost = g.anyHost || pattern == "*"
		g.hosts = append(g.hosts, pattern)
	}
	for _, text := range c.Origins {
		pattern, err := parseOriginPattern(text)
		if err != nil {
			return nil, err
		}
		g.origins = append(g.origins, pattern)
	}
	if host, _, ok := splitHost(c.Listen); ok {
		if ip, err := netip.ParseAddr(host); err != nil || !ip.IsUnspecified() {
			g.own = host
		}
	}
	if g.keyed {
		return g, g.SetKeys(c.Keys)
	}
	return g, nil
}

// Local returns the gate of a server without keys, for this machine alone.
func Local() *Gate {
	g := &Gate{priority: mostUrgent}
	g.anyone.gate = g
	g.keys.Store(&[]*Caller{})
	return g
}

// CheckListener refuses an address that other machines reach where neither keys nor allowed hosts say who may call.
func (g *Gate) CheckListener(addr net.Addr) error {
	tcp, ok := addr.(*net.TCPAddr)
	if g.keyed || len(g.hosts) > 0 || ok && tcp.IP.IsLoopback() || addr.Network() == "unix" {
		return nil
	}
	return fmt.Errorf("%w: %s: other machines reach this address, and requests need no key; add --api-key KEY or --api-keys FILE, "+
		"or say with --allow-host NAME by which names they may call without one ('*': by any)", ErrConfig, addr)
}

// Check refuses requests by their Host header and their origin. A page that a user opens, which opened says, may be linked from anywhere.
func (g *Gate) Check(r *http.Request, opened bool) error {
	if err := g.checkHost(r.Host); err != nil {
		return err
	}
	return g.checkOrigin(r, opened)
}

// checkHost refuses a Host header that names another machine: by DNS rebinding, a page of any name reaches this one. A page has no key.
func (g *Gate) checkHost(header string) error {
	if g.keyed || g.anyHost {
		return nil
	}
	host, _, ok := splitHost(header)
	if ok && (g.local(host) || slices.ContainsFunc(g.hosts, func(p string) bool { return matchHost(p, host) })) {
		return nil
	}
	return refused("host_not_allowed", "the request is for the host %q, which is not this machine's own name; grove serve --allow-host HOST allows another", header)
}

// local reports whether a host in lower case is this machine: a loopback name or address, or the host that the server listens on.
func (g *Gate) local(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || host == g.own && host != "" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// refused is the answer to a request that may not call. It quotes a value of the request.
func refused(code, format, value string) *wire.Error {
	return &wire.Error{Status: http.StatusForbidden, Message: fmt.Sprintf(format, wire.Clip(value)), Type: wire.TypeInvalid, Code: code}
}

// The bound of names: a DNS name has at most 253 bytes.
const maxHost = 253

// splitHost cuts a Host header, or the host of an origin, into a host in lower case, without the brackets of an IPv6 address and the dot
// of a complete name, and a port, "" where there is none. It refuses all that is not HOST or HOST:PORT: user names, paths, zones, letters
// beyond ASCII, which browsers never send.
func splitHost(s string) (host, port string, ok bool) {
	rest := ""
	if inner, found := strings.CutPrefix(s, "["); found {
		if host, rest, found = strings.Cut(inner, "]"); !found {
			return "", "", false
		}
		ip, err := netip.ParseAddr(host)
		if err != nil || !ip.Is6() || ip.Zone() != "" {
			return "", "", false
		}
		host = ip.String()
	} else {
		at := strings.IndexByte(s, ':')
		if at < 0 {
			at = len(s)
		}
		host, rest = strings.ToLower(strings.TrimSuffix(s[:at], ".")), s[at:]
		if !isName(host) {
			return "", "", false
		}
	}
	if rest == "" || rest == ":" {
		return host, "", true
	}
	port = strings.TrimPrefix(rest, ":")
	return host, port, len(port) < len(rest) && isPort(port)
}

// isName reports whether a text can be a name or an IPv4 address: labels of letters, digits, '-' and '_' with dots between.
func isName(s string) bool {
	if s == "" || len(s) > maxHost || strings.HasPrefix(s, ".") || strings.HasSuffix(s, ".") || strings.Contains(s, "..") {
		return false
	}
	return strings.IndexFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.'
	}) < 0
}

// isPort reports whether a text is a port from 1 to 65535.
func isPort(s string) bool {
	n := 0
	for _, c := range s {
		if c < '0' || c > '9' || len(s) > 5 {
			return false
		}
		n = 10*n + int(c-'0')
	}
	return n > 0 && n < 1<<16
}

// parseHostPattern reads a value of --allow-host: a host without a port, *.NAME, or *.
func parseHostPattern(text string) (string, error) {
	name, below := strings.CutPrefix(text, "*.")
	bare := name
	if strings.Contains(name, ":") && !strings.HasPrefix(name, "[") {
		bare = "[" + name + "]" // an IPv6 address without its brackets
	}
	host, port, ok := splitHost(bare)
	switch {
	case text == "*":
		return text, nil
	case !ok || port != "":
		return "", fmt.Errorf("%w: --allow-host: %q is no host; write a name or an address without a port, *.NAME for the names below one, or * for all", ErrConfig, wire.Clip(text))
	case below:
		return "*." + host, nil
	}
	return host, nil
}

// matchHost reports whether a host in lower case is one that a pattern allows.
func matchHost(pattern, host string) bool {
	if parent, below := strings.CutPrefix(pattern, "*"); below {
		return strings.HasSuffix(host, parent)
	}
	return host == pattern
}
