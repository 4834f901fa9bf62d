package flags

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"grove/internal/command/exit"
	"grove/internal/command/reach"
)

// Address is --addr, --host and --port, with the certificate and the prefix of paths there. The variable address is what it is the address of.
type Address struct {
	HostPort   string     `name:"addr" placeholder:"HOST:PORT" default:"127.0.0.1:8080" var:"GROVE_ADDR" help:"${address=Address to listen on}; unix:PATH is a Unix socket. Default: ${default}."`
	Host       hostName   `name:"host" placeholder:"HOST" var:"GROVE_HOST" help:"Name or number of an interface, in place of that of --addr; 0.0.0.0: all. A name that ends with .sock is the path of a Unix socket."`
	Port       portNumber `name:"port" placeholder:"PORT" var:"GROVE_PORT" help:"Port, in place of that of --addr; 0: any that is free."`
	PathPrefix pathPrefix `name:"path-prefix" placeholder:"PATH" var:"GROVE_PATH_PREFIX" help:"Path that all routes and the page are below, such as /llm."`
	TLSCert    string     `name:"tls-cert" placeholder:"FILE" var:"GROVE_TLS_CERT" help:"File of the server's certificate, with those between it and an authority, in PEM. Without it, connections are not encrypted."`
}

// Parsed implements [Hooked].
func (a *Address) Parsed() Hook { return Hook{Of: a, Do: a.parsed} }

// parsed drops the variables of --host and --port where the command line has --addr.
func (a *Address) parsed(line *kong.Context) error {
	if !OnLine(line, "addr") {
		return nil
	}
	if !OnLine(line, "host") {
		a.Host = ""
	}
	if !OnLine(line, "port") {
		a.Port = ""
	}
	return nil
}

// Where returns the address that the flags describe: HOST:PORT, or unix:PATH. It refuses what is no address.
func (a Address) Where() (string, error) {
	path := a.Host.socket()
	if a.Host == "" {
		path = reach.Socket(a.HostPort)
	}
	if path != "" {
		if a.Port != "" {
			return "", exit.With(exit.CodeUsage, fmt.Errorf("--port: %s; the Unix socket %.80q has none", a.Port, path))
		}
		return reach.Address(path), nil
	}
	host, port, err := net.SplitHostPort(a.HostPort)
	if err == nil {
		err = portNumber(port).Valid()
	}
	if err != nil || port == "" {
		return "", exit.With(exit.CodeUsage, fmt.Errorf("--addr: %.80q is not an address such as 127.0.0.1:8080 or unix:/run/grove.sock", a.HostPort))
	}
	name, at := a.Host.split()
	return net.JoinHostPort(cmp.Or(name, host), cmp.Or(string(a.Port), at, port)), nil
}

// URL returns the URL of the server that listens on the address, for a client on this machine; of a Unix socket unix:PATH, and behind a colon the
// prefix of paths.
func (a Address) URL() (string, error) {
	address, err := a.Where()
	if err != nil {
		return "", err
	}
	if reach.Socket(address) != "" {
		return strings.TrimSuffix(address+":"+a.PathPrefix.Path(), ":"), nil
	}
	host, port, err := net.SplitHostPort(address)
	switch ip := net.ParseIP(host); {
	case host == "", ip != nil && ip.IsUnspecified() && ip.To4() != nil:
		host = "127.0.0.1"
	case ip != nil && ip.IsUnspecified():
		host = "::1"
	}
	return a.Scheme() + net.JoinHostPort(host, port) + a.PathPrefix.Path(), err
}

// Scheme returns the beginning of the URL.
func (a Address) Scheme() string {
	if a.TLSCert != "" {
		return "https://"
	}
	return "http://"
}

// pathPrefix is a path, "" for none.
type pathPrefix string

// Path returns the path without a slash at its end.
func (p pathPrefix) Path() string { return strings.TrimSuffix(string(p), "/") }

// Valid refuses what is no path of plain names.
func (p pathPrefix) Valid() error {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~"
	if p.Path() == "" && len(p) < 2 {
		return nil
	}
	for i, name := range strings.Split(p.Path(), "/") {
		if (i == 0) != (name == "") || name == "." || name == ".." || strings.Trim(name, letters) != "" {
			return fmt.Errorf("%.80q is not a path such as /llm: a slash and a name of letters, digits, '-', '_', '.' and '~', any number of times", string(p))
		}
	}
	return nil
}

// hostName is HOST, or HOST:PORT as the variable of ollama has it.
type hostName string

// split returns the name or number, and the port, "" for none.
func (h hostName) split() (name, port string) {
	if name, port, err := net.SplitHostPort(string(h)); err == nil {
		return name, port
	}
	return strings.Trim(string(h), "[]"), ""
}

// socket returns the path of a Unix socket, as llama.cpp tells one; "": it is none.
func (h hostName) socket() string {
	if strings.HasSuffix(string(h), ".sock") && !strings.Contains(string(h), "://") {
		return strings.TrimPrefix(string(h), reach.Address(""))
	}
	return ""
}

// Valid refuses what is no host.
func (h hostName) Valid() error {
	if h.socket() != "" {
		return nil
	}
	name, port := h.split()
	if strings.ContainsAny(name, "/ \t\n@?#") {
		return fmt.Errorf("%.80q is not a host such as 127.0.0.1 or localhost", string(h))
	}
	return portNumber(port).Valid()
}

// portNumber is PORT, "" for none.
type portNumber string

// Valid refuses what is no port.
func (p portNumber) Valid() error {
	if n, err := strconv.Atoi(string(p)); p != "" && (err != nil || n < 0 || n > 65535) {
		return fmt.Errorf("%.20q is not a port; it must be from 0 to 65535", string(p))
	}
	return nil
}

// Server is a server that a command talks to.
type Server struct {
	URL    string `name:"url" placeholder:"URL" var:"GROVE_URL" help:"The server; unix:PATH is a Unix socket, unix:PATH:/llm one with a prefix of paths. Without it, the address of GROVE_ADDR, GROVE_HOST and GROVE_PORT, else http://127.0.0.1:8080."`
	APIKey string `name:"api-key" placeholder:"KEY" var:"GROVE_API_KEY" help:"Key that the server asks for."`
}

// Base returns the URL of the server, without a slash at its end. Where the server listens on all interfaces, it is that of this
// machine. That of a Unix socket is one of [Address.URL].
func (s Server) Base() (string, error) {
	base := s.URL
	if base == "" {
		var err error
		if base, err = local(); err != nil {
			return "", err
		}
	}
	if reach.Socket(base) != "" {
		return strings.TrimSuffix(base, "/"), nil
	}
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", exit.With(exit.CodeUsage, fmt.Errorf("--url: %.80q is not the address of a server such as http://127.0.0.1:8080", s.URL))
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

// local returns the URL of the server that grove serve starts with the variables of this process.
func local() (string, error) {
	a := Address{
		HostPort: cmp.Or(os.Getenv("GROVE_ADDR"), "127.0.0.1:8080"), Host: hostName(os.Getenv("GROVE_HOST")), Port: portNumber(os.Getenv("GROVE_PORT")),
		PathPrefix: pathPrefix(os.Getenv("GROVE_PATH_PREFIX")), TLSCert: os.Getenv("GROVE_TLS_CERT"),
	}
	if strings.Contains(string(a.Host), "://") {
		return string(a.Host), nil
	}
	for name, err := range map[string]error{"GROVE_HOST": a.Host.Valid(), "GROVE_PORT": a.Port.Valid(), "GROVE_PATH_PREFIX": a.PathPrefix.Valid()} {
		if err != nil {
			return "", &exit.VariableError{Name: name, Err: err}
		}
	}
	base, err := a.URL()
	if err != nil {
		return "", &exit.VariableError{Name: "GROVE_ADDR", Err: err}
	}
	return base, nil
}

// Cert returns the file of the certificate of the server that grove serve starts with the variables of this process, where the flags name no other
// server; "": none.
func (s Server) Cert() string {
	if s.URL != "" {
		return ""
	}
	return os.Getenv("GROVE_TLS_CERT")
}
