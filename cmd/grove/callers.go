package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"grove"
	"grove/internal/command/flags"
	"grove/server/access"
)

// callers are the flags that say who may call a server.
type callers struct {
	transport

	APIKey      []string `name:"api-key" sep:"none" placeholder:"KEY" var:"GROVE_API_KEY" help:"Key that requests must show; may be given several times. Without any key, requests need none, and only this machine may send them."`
	APIKeyFile  string   `name:"api-key-file" placeholder:"FILE" var:"GROVE_API_KEY_FILE" help:"File of keys, one a line."`
	APIKeys     []string `name:"api-keys" sep:"none" placeholder:"FILE" var:"GROVE_API_KEYS" help:"File of keys with names, limits and rights, NAME:KEY[,requests=N/min][,tokens=N/min][,priority=N][,operator] a line; may be given several times. SIGHUP reads it again."`
	AllowHost   []string `name:"allow-host" placeholder:"HOST" var:"GROVE_ALLOW_HOST" help:"Name or address by which clients may call the server, besides this machine's own; *.NAME: the names below it; *: any. May be given several times."`
	MaxPriority *int     `name:"max-priority" placeholder:"N" var:"GROVE_MAX_PRIORITY" help:"Most urgent priority that requests may ask for, -10 (the most urgent) to 10; a file of keys may give a key another. Without it, -10 where this machine alone may call, else 0."`
	ShareCache  bool     `name:"share-cache" var:"GROVE_SHARE_CACHE" help:"Let keys share cached prefixes and what drafting learns. Without it, each key has its own, and none can measure what another sends."`
	AllowOrigin []string `name:"allow-origin" placeholder:"ORIGIN" var:"GROVE_ALLOW_ORIGIN" help:"Origin whose pages may call the server, such as https://chat.example.com, besides the server's own and this machine's; *: any. May be given several times."`

	MaxConnections flags.Count `name:"max-connections" placeholder:"N" default:"1024" var:"GROVE_MAX_CONNECTIONS" help:"Connections at a time. Where all are taken, idle ones are closed for new ones, and one address has three quarters at most. Default: ${default}."`
}

// gate returns the gate of a server at an address.
func (c *callers) gate(addr string) (*access.Gate, error) {
	keys, err := c.keys()
	if err != nil {
		return nil, err
	}
	g, err := access.New(access.Config{Keys: keys, Hosts: c.AllowHost, Origins: c.AllowOrigin, Listen: addr, Priority: c.MaxPriority, Share: c.ShareCache})
	if err != nil {
		return nil, accessError("", err)
	}
	return g, nil
}

// accessError returns an error of package access as one of a flag; "": it names the flag, or concerns several.
func accessError(flag string, err error) error {
	return &grove.OptionError{Err: errors.New("grove: " + flag + strings.TrimPrefix(err.Error(), access.ErrConfig.Error()+": "))}
}

// checkListener refuses an address that other machines reach where no flag says who may call.
func checkListener(g *access.Gate, l net.Listener) error {
	if err := g.CheckListener(l.Addr()); err != nil {
		return errors.Join(accessError("--addr: ", err), l.Close())
	}
	return nil
}

// keys returns the keys of the flags and of the files.
func (c *callers) keys() (all []access.Key, err error) {
	for _, key := range c.APIKey {
		if strings.TrimSpace(key) == "" {
			return nil, &grove.OptionError{Err: errors.New("grove: --api-key: the key is empty; name one, or leave the flag out")}
		}
		all = append(all, access.Key{Secret: key})
	}
	if c.APIKeyFile != "" {
		keys, err := access.ReadSecrets(c.APIKeyFile)
		if err != nil {
			return nil, accessError("--api-key-file: ", err)
		}
		all = append(all, keys...)
	}
	for _, file := range c.APIKeys {
		keys, err := access.ReadKeys(file)
		if err != nil {
			return nil, accessError("--api-keys: ", err)
		}
		all = append(all, keys...)
	}
	return all, nil
}

// files returns the files of keys.
func (c *callers) files() []string {
	if c.APIKeyFile == "" {
		return c.APIKeys
	}
	return append([]string{c.APIKeyFile}, c.APIKeys...)
}

// follow reads the files of keys and of the certificate again at each SIGHUP, until stop is called. Those that cannot be used do not replace the old
// ones. cert nil: there is none.
func (c *callers) follow(g *access.Gate, cert *certificate, log *slog.Logger) (stop func()) {
	for _, file := range c.files() {
		if access.Exposed(file) {
			log.Warn("every user of this machine may read the keys; chmod 600 the file", "file", file)
		}
	}
	if len(c.files()) == 0 && cert == nil {
		return func() {}
	}
	came, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(came, syscall.SIGHUP)
	go func() {
		defer close(done)
		for range came {
			if len(c.files()) > 0 {
				c.readAgain(g, log)
			}
			if cert == nil {
				continue
			}
			if err := cert.read(); err != nil {
				log.Error("the certificate stays as it was", "error", err)
				continue
			}
			log.Warn("the certificate is read again")
		}
	}()
	return func() {
		signal.Stop(came)
		close(came)
		<-done
	}
}

// readAgain replaces the keys.
func (c *callers) readAgain(g *access.Gate, log *slog.Logger) {
	keys, err := c.keys()
	if err == nil {
		err = g.SetKeys(keys)
	}
	if err != nil {
		log.Error("the keys stay as they were", "error", err)
		return
	}
	log.Warn(fmt.Sprintf("keys are read again: %d", len(keys)))
}
