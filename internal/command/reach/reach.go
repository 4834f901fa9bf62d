// Package reach connects commands to servers, which may listen on Unix sockets and show certificates of their own.
package reach

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"

	"grove/internal/command/exit"
)

// Client returns the beginning of the URLs of requests to a server, and what sends them. base is a URL, or an address of a Unix socket with a prefix of paths behind a colon. Where the server is one of this
// machine with a certificate, cert is the file of that: it need not name the machine, and no authority must know it. "": the system's authorities decide.
func Client(base, cert string) (url string, t *http.Transport, err error) {
	t = &http.Transport{Proxy: http.ProxyFromEnvironment}
	if cert != "" {
		if t.TLSClientConfig, err = expecting(cert); err != nil {
			return "", nil, err
		}
	}
	path := Socket(base)
	if path == "" {
		return base, t, nil
	}
	path, prefix, _ := strings.Cut(path, ":")
	t.Proxy, t.DialContext = nil, func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	scheme := "http://"
	if cert != "" {
		scheme = "https://"
	}
	return scheme + "localhost" + strings.TrimSuffix(prefix, "/"), t, nil
}

// expecting returns a configuration that takes the first certificate of a file, and no other one.
func expecting(file string) (*tls.Config, error) {
	text, err := os.ReadFile(file)
	block, _ := pem.Decode(text)
	if err == nil && block == nil {
		err = fmt.Errorf("%s: it has no certificate in PEM", file)
	}
	if err != nil {
		return nil, exit.With(exit.CodeUsage, fmt.Errorf("--tls-cert: %w", err))
	}
	same := func(chain [][]byte, _ [][]*x509.Certificate) error {
		if len(chain) == 0 || !bytes.Equal(chain[0], block.Bytes) {
			return errors.New("the server shows another certificate than that of --tls-cert (GROVE_TLS_CERT)")
		}
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, VerifyPeerCertificate: same}, nil
}

// unixScheme begins an address that is the path of a Unix socket.
const unixScheme = "unix:"

// Address returns the address of the Unix socket at a path.
func Address(path string) string { return unixScheme + path }

// Socket returns the path of the Unix socket that an address is, "" for none. An absolute path is one, as for vLLM.
func Socket(address string) string {
	if strings.HasPrefix(address, "/") {
		return address
	}
	path, _ := strings.CutPrefix(address, unixScheme)
	if path == address {
		return ""
	}
	return strings.TrimPrefix(path, "//")
}
