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
)

// Address is --addr, --host and --port. The variable address is what it is the address of.
type Address struct {
	HostPort string     `name:"addr" placeholder:"HOST:PORT" default:"127.0.0.1:8080" var:"GROVE_ADDR" help:"${address=Address to listen on}. Default: ${default}."`
	Host     hostName   `name:"host" placeholder:"HOST" var:"GROVE_HOST" help:"Name or number of an interface, in place of that of --addr; 0.0.0.0: all."`
	Port     portNumber `name:"port" placeholder:"PORT" var:"GROVE_PORT" help:"Port, in place of that of --addr; 0: any that is free."`
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

// Where returns the address HOST:PORT that the flags describe. It refuses what is no address.
func (a Address) Where() (string, error) {
	host, port, err := net.SplitHostPort(a.HostPort)
	if err == nil {
		err = portNumber(port).Valid()
	}
	if err != nil || port == "" {
		return "", exit.With(exit.CodeUsage, fmt.Errorf("--addr: %.80q is not an address such as 127.0.0.1:8080", a.HostPort))
	}
	name, at := a.Host.split()
	return net.JoinHostPort(cmp.Or(name, host), cmp.Or(string(a.Port), at, port)), nil
}

// URL returns the URL of the server that listens on the address, for a client on this machine.
func (a Address) URL() (string, error) {
	address, err := a.Where()
	if err != nil {
		return "", err
	}
	host, port, err := net.SplitHostPort(address)
	switch ip := net.ParseIP(host); {
	case host == "", ip != nil && ip.IsUnspecified() && ip.To4() != nil:
		host = "127.0.0.1"
	case ip != nil && ip.IsUnspecified():
		host = "::1"
	}
	return "http://" + net.JoinHostPort(host, port), err
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

// Valid refuses what is no host.
func (h hostName) Valid() error {
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
	URL    string `name:"url" placeholder:"URL" var:"GROVE_URL" help:"The server. Without it, the address of GROVE_ADDR, GROVE_HOST and GROVE_PORT, else http://127.0.0.1:8080."`
	APIKey string `name:"api-key" placeholder:"KEY" var:"GROVE_API_KEY" help:"Key that the server asks for."`
}

// Base returns the URL of the server, without a slash at its end. Where the server listens on all interfaces, it is that of this
// machine.
func (s Server) Base() (string, error) {
	base := s.URL
	if base == "" {
		var err error
		if base, err = local(); err != nil {
			return "", err
		}
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
	a := Address{cmp.Or(os.Getenv("GROVE_ADDR"), "127.0.0.1:8080"), hostName(os.Getenv("GROVE_HOST")), portNumber(os.Getenv("GROVE_PORT"))}
	if strings.Contains(string(a.Host), "://") {
		return string(a.Host), nil
	}
	for name, err := range map[string]error{"GROVE_HOST": a.Host.Valid(), "GROVE_PORT": a.Port.Valid()} {
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
