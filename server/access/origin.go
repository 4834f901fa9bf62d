package access

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"grove/server/wire"
)

// origin is the origin of a page, or a pattern of origins. Its port is "" where it is the scheme's own.
type origin struct {
	scheme, host, port string
	opaque             string // an origin that is no SCHEME://HOST, such as null; in a pattern also *
}

// parseOrigin reads an Origin header. Origins of other schemes than http and https have a host of any form, or none.
func parseOrigin(s string) (o origin, ok bool) {
	scheme, host, found := strings.Cut(strings.ToLower(s), "://")
	switch {
	case len(s) > 2*maxHost:
		return o, false
	case !found:
		return origin{opaque: s}, s == "null"
	case scheme != "http" && scheme != "https":
		plain := func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`/\@?#*`, c) }
		return origin{scheme: scheme, host: host}, isName(scheme) && strings.IndexFunc(host, plain) < 0
	}
	o.scheme = scheme
	o.host, o.port, ok = splitHost(host)
	o.port = withoutDefault(scheme, o.port)
	return o, ok
}

// withoutDefault returns a port, and "" for the scheme's own.
func withoutDefault(scheme, port string) string {
	if scheme == "http" && port == "80" || scheme == "https" && port == "443" {
		return ""
	}
	return port
}

// parseOriginPattern reads a value of --allow-origin.
func parseOriginPattern(text string) (origin, error) {
	scheme, host, _ := strings.Cut(text, "://")
	if text == "*" {
		return origin{opaque: text}, nil
	}
	if host == "*" && isName(strings.ToLower(scheme)) {
		return origin{scheme: strings.ToLower(scheme), host: host}, nil
	}
	name, below := strings.CutPrefix(host, "*.")
	if below {
		text = scheme + "://" + name
	}
	o, ok := parseOrigin(text)
	if !ok {
		return o, fmt.Errorf("%w: --allow-origin: %q is no origin; write SCHEME://HOST[:PORT] without a path, SCHEME://*.NAME, SCHEME://*, null, or * for all", ErrConfig, wire.Clip(text))
	}
	if below {
		o.host = "*." + o.host
	}
	return o, nil
}

// matches reports whether a pattern allows an origin.
func (p origin) matches(o origin) bool {
	switch {
	case p.opaque != "" || o.opaque != "":
		return p.opaque == "*" || p == o
	case p.scheme != o.scheme:
		return false
	case p.host == "*":
		return true
	}
	return p.port == o.port && matchHost(p.host, o.host)
}

// allowed reports whether pages of an Origin header may call, by the host and the headers of the request.
func (g *Gate) allowed(r *http.Request, header string) bool {
	any := slices.ContainsFunc(g.origins, func(p origin) bool { return p.opaque == "*" })
	o, ok := parseOrigin(header)
	switch {
	case any || !ok:
		return any
	case slices.ContainsFunc(g.origins, func(p origin) bool { return p.matches(o) }):
		return true
	case o.scheme != "http" && o.scheme != "https":
		return false
	case g.local(o.host):
		return true
	case g.keyed && r.Header.Get("Sec-Fetch-Site") == "same-origin": // behind a proxy that changes the Host header
		return true
	}
	host, port, ok := splitHost(r.Host) // the page's own server
	return ok && o.host == host && o.port == withoutDefault(o.scheme, port)
}

// checkOrigin refuses requests of pages that may not call. Programs send neither header.
func (g *Gate) checkOrigin(r *http.Request, opened bool) error {
	const allow = "grove serve --allow-origin ORIGIN allows it"
	site, origins := r.Header.Get("Sec-Fetch-Site"), r.Header.Values("Origin")
	switch {
	case len(origins) > 1:
		return refused("origin_not_allowed", "the request has several origins, the first of them %q", origins[0])
	case len(origins) == 1 && !g.allowed(r, origins[0]):
		return refused("origin_not_allowed", "pages of the origin %q may not call this server; "+allow, origins[0])
	case len(origins) == 1 || site != "cross-site":
		return nil
	case opened && r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document":
		return nil // a link to the page
	case slices.ContainsFunc(g.origins, func(p origin) bool { return p.opaque == "*" }):
		return nil
	}
	return refused("origin_not_allowed", "a page of another site (Sec-Fetch-Site: %s) sent this request without its origin; it may not call this server", site)
}

// Share lets the page that sent a request read the answer, where its origin may call.
func (g *Gate) Share(h http.Header, r *http.Request) {
	h.Add("Vary", "Origin")
	if origins := r.Header.Values("Origin"); len(origins) == 1 && g.checkHost(r.Host) == nil && g.allowed(r, origins[0]) {
		h.Set("Access-Control-Allow-Origin", origins[0])
		h.Set("Access-Control-Expose-Headers", "*")
	}
}

// Preflight tells a browser which requests the pages of an origin may send, behind [Gate.Share]. The answer is the same for each route.
func (g *Gate) Preflight(w http.ResponseWriter, r *http.Request) error {
	if err := g.Check(r, false); err != nil {
		return err
	}
	h := w.Header()
	if h.Get("Access-Control-Allow-Origin") != "" {
		h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, DELETE")
		h.Set("Access-Control-Allow-Headers", "*, Authorization") // the star does not include Authorization
		h.Set("Access-Control-Max-Age", "600")
		if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
			h.Set("Access-Control-Allow-Private-Network", "true")
		}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
