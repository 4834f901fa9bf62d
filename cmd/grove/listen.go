package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"grove"
	"grove/internal/command/exit"
	"grove/internal/command/reach"
)

// transport are the flags of the connections of a server, besides those of its address.
type transport struct {
	TLSKey     string `name:"tls-key" placeholder:"FILE" var:"GROVE_TLS_KEY" help:"File of the private key of --tls-cert, in PEM. SIGHUP reads both again."`
	SocketMode string `name:"socket-mode" placeholder:"MODE" default:"0600" var:"GROVE_SOCKET_MODE" help:"Mode of a Unix socket, in octal: who may write it may call the server. Default: ${default}."`
}

// listen listens on an address of flags.Address.
func (c *transport) listen(address string) (l net.Listener, err error) {
	if path := reach.Socket(address); path != "" {
		mode, err := c.mode()
		if err != nil {
			return nil, err
		}
		if l, err = listenSocket(path, mode); err != nil {
			err = fmt.Errorf("--addr: %w", err)
		}
		return l, exit.With(exit.CodeAddress, err)
	}
	l, err = net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w; another program listens there: --port names another port, 0 any that is free", err)
	}
	return l, exit.With(exit.CodeAddress, err)
}

// mode returns the mode of a socket.
func (c *transport) mode() (fs.FileMode, error) {
	mode, err := strconv.ParseUint(c.SocketMode, 8, 9)
	if err != nil {
		return 0, &grove.OptionError{Err: fmt.Errorf("grove: --socket-mode: %.20q is not a mode such as 0600 or 0660", c.SocketMode)}
	}
	return fs.FileMode(mode), nil
}

// socket is a listener on a Unix socket. It removes the socket's file, unless that is another one meanwhile.
type socket struct {
	net.Listener
	path string
	file fs.FileInfo
	once sync.Once
}

// Addr implements [net.Listener].
func (s *socket) Addr() net.Addr { return &net.UnixAddr{Name: s.path, Net: "unix"} }

// Close implements [net.Listener].
func (s *socket) Close() error {
	s.once.Do(func() {
		if now, err := os.Lstat(s.path); err == nil && os.SameFile(now, s.file) {
			_ = os.Remove(s.path) // the next server replaces it otherwise
		}
	})
	return s.Listener.Close()
}

// listenSocket listens on a Unix socket. One that nothing listens on is replaced. It is made in a directory of its own and renamed, so that nobody reaches it
// before it has its mode.
func listenSocket(path string, mode fs.FileMode) (net.Listener, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := free(path); err != nil {
		return nil, err
	}
	long := fmt.Errorf("%s: the path is too long for a socket; use a directory with a shorter one", path)
	if len(path) >= len(syscall.RawSockaddrUnix{}.Path) { // a rename would make it, and nobody could reach it
		return nil, long
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".s")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	made := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: made, Net: "unix"})
	if errors.Is(err, syscall.EINVAL) {
		err = long
	}
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	s := &socket{Listener: l, path: path}
	if err = os.Chmod(made, mode); err == nil {
		if err = os.Rename(made, path); err == nil {
			s.file, err = os.Lstat(path)
		}
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return s, nil
}

// free returns an error where a path is no place for a socket: something else is there, or a program listens.
func free(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s: there is a file that is no socket; name another path", path)
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	switch {
	case err == nil:
		return errors.Join(fmt.Errorf("%s: another program listens there; stop it, or name another path", path), c.Close())
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil
	}
	return err
}

// certificate is the certificate of a server, with the files that it comes from.
type certificate struct {
	cert, key string
	current   atomic.Pointer[tls.Certificate]
}

// certificate reads the certificate in a file; nil: there is none.
func (c *transport) certificate(cert string) (*certificate, error) {
	switch {
	case cert == "" && c.TLSKey == "":
		return nil, nil
	case c.TLSKey == "":
		return nil, &grove.OptionError{Err: fmt.Errorf("grove: --tls-cert: %s: it needs its key; --tls-key FILE gives it", cert)}
	case cert == "":
		return nil, &grove.OptionError{Err: fmt.Errorf("grove: --tls-key: %s: it needs its certificate; --tls-cert FILE gives it", c.TLSKey)}
	}
	t := &certificate{cert: cert, key: c.TLSKey}
	return t, t.read()
}

// read reads the files.
func (t *certificate) read() error {
	cert, err := os.ReadFile(t.cert)
	if err != nil {
		return tlsError("--tls-cert", t.cert, err)
	}
	key, err := os.ReadFile(t.key)
	if err != nil {
		return tlsError("--tls-key", t.key, err)
	}
	block, _ := pem.Decode(cert)
	if block == nil || block.Type != "CERTIFICATE" {
		return tlsError("--tls-cert", t.cert, errors.New("it has no certificate in PEM"))
	}
	first, err := x509.ParseCertificate(block.Bytes)
	switch {
	case err != nil:
		return tlsError("--tls-cert", t.cert, err)
	case time.Now().After(first.NotAfter):
		return tlsError("--tls-cert", t.cert, fmt.Errorf("the certificate was valid until %s", first.NotAfter.Format(time.RFC3339)))
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return tlsError("--tls-key", t.key, fmt.Errorf("it is not the key of %s: %w", t.cert, err))
	}
	t.current.Store(&pair)
	return nil
}

// tlsError returns an error of a file of a flag.
func tlsError(flag, file string, err error) error {
	if at := new(fs.PathError); errors.As(err, &at) {
		err = at.Err
	}
	return &grove.OptionError{Err: fmt.Errorf("grove: %s: %s: %w", flag, file, err)}
}

// config returns the configuration of connections; nil: they are plain.
func (t *certificate) config() *tls.Config {
	if t == nil {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return t.current.Load(), nil }}
}
