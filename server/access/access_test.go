package access_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"grove/server/access"
	"grove/server/wire"
)

// gate makes a gate.
func gate(t *testing.T, c access.Config) *access.Gate {
	t.Helper()
	g, err := access.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// request makes a request for a host with headers, of which a name may be there several times.
func request(host string, headers ...string) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	r.Host = host
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// code returns the code of an error of the gate; "": there is none.
func code(t *testing.T, err error) string {
	t.Helper()
	var e *wire.Error
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &e) || e.Status != http.StatusForbidden || e.Type != wire.TypeInvalid || len(e.Message) > 450:
		t.Errorf("%#v", err)
		return "?"
	}
	return e.Code
}

// TestHosts: without keys, requests are for this machine's own names; others are refused, whatever their form.
func TestHosts(t *testing.T) {
	key := []access.Key{{Secret: "k"}}
	for _, tt := range []struct {
		name   string
		config access.Config
		yes    []string
		no     []string
	}{
		{"this machine", access.Config{Listen: "127.0.0.1:8080"},
			[]string{"localhost", "localhost:8080", "LOCALHOST:1", "localhost.", "localhost.:80", "localhost:", "a.localhost", "a.b.localhost:65535",
				"127.0.0.1", "127.0.0.1:8080", "127.255.255.254", "[::1]", "[::1]:8080", "[0:0:0:0:0:0:0:1]:80", "[::ffff:127.0.0.1]:80"},
			[]string{"", "evil.example", "evil.example:8080", "localhost.evil.example", "evil-localhost", "xlocalhost", "127.0.0.1.evil.example", "128.0.0.1",
				"10.0.0.1", "0.0.0.0", "0.0.0.0:8080", "[::]", "0", "127.1", "2130706433", "0x7f.0.0.1", "0177.0.0.1", "127.0.0.1:0", "127.0.0.1:65536",
				"127.0.0.1:99999999999999999999", "127.0.0.1:8080:8080", "127.0.0.1:-1", "127.0.0.1:http", "127.0.0.1 evil.example", "127.0.0.1,evil.example",
				"user@localhost", "user:pass@localhost", "localhost@evil.example", "localhost/", "//localhost", "http://localhost", "localhost#x", "localhost?x",
				"localhost\\evil", "localhost%00", "localhost\x00", "loc\tlhost", "ⓛocalhost", "localhosт", "[::1", "::1", "[::1]x", "[::1]x:80", "[::1%25lo]", "[::1%lo]:80",
				"[127.0.0.1]", "[localhost]", "[]", "[]:80", ".localhost", "..localhost", "localhost..", ":8080", ":", "*", "*.localhost", "local host",
				strings.Repeat("a", 1<<16), strings.Repeat("a.", 200) + "localhost"}},
		{"its name", access.Config{Listen: "box.lan:8080"}, []string{"box.lan:8080", "BOX.lan", "localhost"}, []string{"other.lan", "lan", "x.box.lan"}},
		{"its address", access.Config{Listen: "192.168.1.5:80"}, []string{"192.168.1.5", "192.168.1.5:80"}, []string{"192.168.1.6", "192.168.1.5.evil.example"}},
		{"all addresses", access.Config{Listen: "0.0.0.0:80"}, []string{"localhost"}, []string{"0.0.0.0", "192.168.1.5"}},
		{"all addresses of IPv6", access.Config{Listen: "[::]:80"}, []string{"[::1]"}, []string{"[::]", "192.168.1.5"}},
		{"no host", access.Config{Listen: ":80"}, []string{"localhost"}, []string{"", "a"}},
		{"allowed", access.Config{Hosts: []string{"Box.lan", "10.0.0.1", "[fd00::1]", "fd00::2", "*.Example.com."}},
			[]string{"box.lan", "box.lan.:8080", "10.0.0.1:1", "[fd00::1]:80", "[FD00:0::2]", "a.example.com", "a.b.example.com", "localhost"},
			[]string{"lan", "example.com", "xexample.com", "10.0.0.2", "", "fd00::1"}},
		{"any", access.Config{Hosts: []string{"*"}}, []string{"evil.example", "", "user@x"}, nil},
		{"with keys", access.Config{Keys: key}, []string{"evil.example", "", "192.168.1.5"}, nil},
		{"with keys and hosts", access.Config{Keys: key, Hosts: []string{"box.lan"}}, []string{"box.lan", "localhost", "evil.example"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := gate(t, tt.config)
			for _, host := range tt.yes {
				if err := g.Check(request(host), false); err != nil {
					t.Errorf("%q: %v", host, err)
				}
			}
			for _, host := range tt.no {
				if got := code(t, g.Check(request(host), false)); got != "host_not_allowed" {
					t.Errorf("%.80q: %q", host, got)
				}
			}
		})
	}
	if err := gate(t, access.Config{}).Check(request("evil.example"), false); !strings.Contains(err.Error(), "--allow-host") || !strings.Contains(err.Error(), `"evil.example"`) {
		t.Errorf("%v", err)
	}
}

// TestOrigins: pages of this machine and of the server itself may call, others only where a flag says so.
func TestOrigins(t *testing.T) {
	const own = "box.lan:8080"
	for _, tt := range []struct {
		name   string
		config access.Config
		yes    []string
		no     []string
	}{
		{"own", access.Config{Listen: own},
			[]string{"http://box.lan:8080", "https://box.lan", "http://localhost:3000", "https://LOCALHOST", "http://127.0.0.1", "http://[::1]:5", "http://app.localhost:1"},
			[]string{"http://evil.example", "http://evil.example:8080", "null", "", "box.lan:8080", "http://", "http://box.lan.evil.example", "http://user@localhost", "http://localhost/",
				"http://localhost#", "http://localhost, http://evil.example", "file://", "tauri://localhost", "chrome-extension://abc", "ftp://localhost", "javascript://localhost",
				"http://localhost\x00", "http://lоcalhost", "http://0.0.0.0:8080", "http://192.168.1.5", "*", "http://*", "//localhost", strings.Repeat("a", 1<<14), "http://" + strings.Repeat("a", 1<<14)}},
		{"the page's own server", access.Config{Hosts: []string{"*"}}, []string{"http://box.lan:8080"}, []string{"http://box.lan", "http://box.lan:81", "https://box.lan"}},
		{"allowed", access.Config{Origins: []string{"https://Chat.example.com:443", "http://a.example:81", "https://*.apps.example", "chrome-extension://*", "app://obsidian.md", "null"}},
			[]string{"https://chat.example.com", "https://CHAT.example.com:443", "http://a.example:81", "https://x.apps.example", "https://x.y.apps.example", "chrome-extension://abcdef", "app://obsidian.md", "null", "http://localhost"},
			[]string{"http://chat.example.com", "https://chat.example.com:444", "http://a.example", "https://apps.example", "https://x.apps.example:444", "moz-extension://abc", "app://other", "https://xapps.example"}},
		{"any", access.Config{Origins: []string{"*"}}, []string{"http://evil.example", "null", "any text"}, nil},
		{"with keys", access.Config{Keys: []access.Key{{Secret: "k"}}}, []string{"http://localhost:1", "http://box.lan:8080"}, []string{"http://evil.example", "null"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.config.Hosts = append(tt.config.Hosts, "box.lan")
			g := gate(t, tt.config)
			for _, origin := range tt.yes {
				r, h := request(own, "Origin", origin), http.Header{}
				if err := g.Check(r, false); err != nil {
					t.Errorf("%q: %v", origin, err)
				}
				if g.Share(h, r); h.Get("Access-Control-Allow-Origin") != origin || h.Get("Vary") != "Origin" || h.Get("Access-Control-Allow-Credentials") != "" {
					t.Errorf("%q: %v", origin, h)
				}
			}
			for _, origin := range tt.no {
				r, h := request(own, "Origin", origin), http.Header{}
				if got := code(t, g.Check(r, false)); got != "origin_not_allowed" {
					t.Errorf("%.80q: %q", origin, got)
				}
				if g.Share(h, r); h.Get("Access-Control-Allow-Origin") != "" || h.Get("Vary") != "Origin" {
					t.Errorf("%.80q: %v", origin, h)
				}
			}
		})
	}
}

// TestFetchMetadata: requests that a browser sends for another site without an origin are refused, but for links to the page.
func TestFetchMetadata(t *testing.T) {
	keyed := []access.Key{{Secret: "k"}}
	const site, refused = "Sec-Fetch-Site", "origin_not_allowed"
	for _, tt := range []struct {
		name    string
		config  access.Config
		opened  bool
		headers []string
		want    string
	}{
		{"a program", access.Config{}, false, nil, ""},
		{"the page", access.Config{}, false, []string{site, "same-origin"}, ""},
		{"the user", access.Config{}, true, []string{site, "none"}, ""},
		{"an image elsewhere", access.Config{}, false, []string{site, "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}, refused},
		{"a script elsewhere", access.Config{}, true, []string{site, "cross-site"}, refused},
		{"a frame elsewhere", access.Config{}, true, []string{site, "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, refused},
		{"a link to the page", access.Config{}, true, []string{site, "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, ""},
		{"a link to a route", access.Config{}, false, []string{site, "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, refused},
		{"any origin", access.Config{Origins: []string{"*"}}, false, []string{site, "cross-site"}, ""},
		{"an allowed origin", access.Config{Origins: []string{"http://a.example"}}, false, []string{site, "cross-site", "Origin", "http://a.example"}, ""},
		{"two origins", access.Config{Origins: []string{"*"}}, false, []string{"Origin", "http://localhost", "Origin", "http://a.example"}, refused},
		{"behind a proxy, with a key", access.Config{Keys: keyed}, false, []string{site, "same-origin", "Origin", "https://chat.example.com"}, ""},
		{"behind a proxy, without a key", access.Config{}, false, []string{site, "same-origin", "Origin", "https://chat.example.com"}, refused},
	} {
		if got := code(t, gate(t, tt.config).Check(request("localhost", tt.headers...), tt.opened)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestPreflight: browsers are told what the pages of an origin may send, by the same rule.
func TestPreflight(t *testing.T) {
	for _, tt := range []struct {
		name, host string
		headers    []string
		want       string // code
		origin     string
	}{
		{"this machine", "localhost", []string{"Origin", "http://localhost:3000", "Access-Control-Request-Method", "POST"}, "", "http://localhost:3000"},
		{"elsewhere", "localhost", []string{"Origin", "http://evil.example"}, "origin_not_allowed", ""},
		{"rebound", "evil.example", []string{"Origin", "http://evil.example"}, "host_not_allowed", ""},
		{"a program", "localhost", nil, "", ""},
		{"null", "localhost", []string{"Origin", "null"}, "origin_not_allowed", ""},
		{"private network", "localhost", []string{"Origin", "http://localhost", "Access-Control-Request-Private-Network", "true"}, "", "http://localhost"},
	} {
		g, r, w := gate(t, access.Config{}), request(tt.host, tt.headers...), httptest.NewRecorder()
		r.Method = http.MethodOptions
		g.Share(w.Header(), r)
		err := g.Preflight(w, r)
		h := w.Header()
		if got := code(t, err); got != tt.want || err == nil && w.Code != http.StatusNoContent || h.Get("Access-Control-Allow-Origin") != tt.origin {
			t.Errorf("%s: %q, %d %v", tt.name, got, w.Code, h)
		}
		if (tt.origin != "") != (h.Get("Access-Control-Allow-Headers") == "*, Authorization") || (tt.name == "private network") != (h.Get("Access-Control-Allow-Private-Network") != "") {
			t.Errorf("%s: %v", tt.name, h)
		}
	}
}

// TestConfig: hosts and origins that could not match anything are refused by the name of their flag.
func TestConfig(t *testing.T) {
	for _, host := range []string{"", "localhost:8080", "http://localhost", "a b", "*.", "*x", "a.*.b", "[::1", "ümlaut.example", "a/b", "user@a", "192.168.0.0/16", strings.Repeat("a", 300)} {
		if _, err := access.New(access.Config{Hosts: []string{host}}); !errors.Is(err, access.ErrConfig) || !strings.Contains(err.Error(), "--allow-host") {
			t.Errorf("host %q: %v", host, err)
		}
	}
	for _, origin := range []string{"", "localhost", "http://", "http://a/", "http://a/b", "http://a:0", "http://a b", "://a", "http://user@a", "*.a", "http://*.", "http://a.*", "é://*", "null, null", strings.Repeat("a", 9999)} {
		if _, err := access.New(access.Config{Origins: []string{origin}}); !errors.Is(err, access.ErrConfig) || !strings.Contains(err.Error(), "--allow-origin") {
			t.Errorf("origin %q: %v", origin, err)
		}
	}
}

// TestListener: an address that other machines reach needs keys or hosts.
func TestListener(t *testing.T) {
	lan := &net.TCPAddr{IP: net.IPv4(192, 168, 1, 5), Port: 80}
	for _, tt := range []struct {
		config access.Config
		addr   net.Addr
		fine   bool
	}{
		{access.Config{}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, true},
		{access.Config{}, &net.TCPAddr{IP: net.IPv6loopback}, true},
		{access.Config{}, &net.TCPAddr{IP: net.IPv4zero, Port: 8080}, false},
		{access.Config{}, &net.TCPAddr{IP: net.IPv6unspecified}, false},
		{access.Config{}, &net.TCPAddr{}, false},
		{access.Config{}, lan, false},
		{access.Config{Origins: []string{"*"}}, lan, false},
		{access.Config{Hosts: []string{"box.lan"}}, lan, true},
		{access.Config{Hosts: []string{"*"}}, lan, true},
		{access.Config{Keys: []access.Key{{Secret: "k"}}}, lan, true},
	} {
		err := gate(t, tt.config).CheckListener(tt.addr)
		if (err == nil) != tt.fine || err != nil && !strings.Contains(err.Error(), "--api-key KEY or --api-keys FILE") {
			t.Errorf("%v %v: %v", tt.config, tt.addr, err)
		}
	}
}

// FuzzCheck: no header makes a gate panic, and no host that is allowed is one that a browser would resolve elsewhere.
func FuzzCheck(f *testing.F) {
	f.Add("localhost:80", "http://localhost")
	f.Add("[::1]:80", "null")
	f.Add("a@[b", "chrome-extension://x")
	f.Add("localhost", strings.Repeat("\xc9", 90)) // four letters each in a message, which has a bound
	g, err := access.New(access.Config{Listen: "127.0.0.1:80", Origins: []string{"https://*.example"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, host, origin string) {
		if g.Check(request(host), false) == nil {
			name, _, err := net.SplitHostPort(host)
			if err != nil {
				name = strings.Trim(host, "[]")
			}
			name = strings.TrimSuffix(strings.ToLower(name), ".")
			if ip := net.ParseIP(name); (ip == nil || !ip.IsLoopback()) && name != "localhost" && !strings.HasSuffix(name, ".localhost") {
				t.Errorf("%q is allowed", host)
			}
		}
		_ = code(t, g.Check(request("localhost", "Origin", origin), false)) // no panic
	})
}

// FuzzConfig reads hostile values of --allow-host and --allow-origin: what is taken does not allow pages and hosts of another name.
func FuzzConfig(f *testing.F) {
	f.Add("models.example", "https://*.example")
	f.Add("*.example", "chrome-extension://*")
	f.Add("[::1]", "http://[::1]:80")
	f.Add("a/b", "null")
	f.Fuzz(func(t *testing.T, host, origin string) {
		g, err := access.New(access.Config{Listen: "127.0.0.1:80", Hosts: []string{host}, Origins: []string{origin}})
		if err != nil {
			if !errors.Is(err, access.ErrConfig) {
				t.Errorf("%q, %q: %v", host, origin, err)
			}
			return
		}
		const stranger = "a.stranger.invalid"
		if !strings.Contains(host, "*") && !strings.EqualFold(strings.TrimSuffix(host, "."), stranger) && g.Check(request(stranger), false) == nil {
			t.Errorf("%q allows the host %s", host, stranger)
		}
		if !strings.Contains(origin, "*") && !strings.Contains(strings.ToLower(origin), stranger) &&
			g.Check(request("localhost", "Origin", "https://"+stranger), false) == nil {
			t.Errorf("%q allows the origin %s", origin, stranger)
		}
	})
}
