package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/alecthomas/kong"

	"grove"
	"grove/internal/command/flags"
	"grove/internal/command/reach"
	"grove/internal/command/terminal"
	"grove/internal/gopher"
	"grove/internal/machine"
	"grove/internal/weights/find"
	"grove/server"
	"grove/server/access"
	"grove/server/serving"
	"grove/server/traces"
)

// serveCommand serves models over HTTP.
type serveCommand struct {
	ServedFlags
	State
	flags.Address
	callers
	logging
	verifier

	Models      []string      `arg:"" optional:"" name:"model" help:"Models to serve, as for --model."`
	AnyModel    bool          `var:"GROVE_ANY_MODEL" help:"Answer requests for unknown models with the first model. Without it, they get 404."`
	Queue       flags.Count   `placeholder:"N" default:"256" var:"GROVE_QUEUE" help:"Requests to a model that may queue; further ones get 429. Default: ${default}."`
	LoraDir     string        `name:"lora-dir" placeholder:"DIR" var:"GROVE_LORA_DIR" help:"Let clients open and close adapters, those of DIR. Without it, they may not."`
	LoraIdle    bool          `name:"lora-init-without-apply" var:"GROVE_LORA_INIT_WITHOUT_APPLY" help:"Open the adapters of --lora with scale 0: they work for requests that ask for them."`
	Drain       time.Duration `placeholder:"TIME" default:"30s" var:"GROVE_DRAIN" help:"Time that answers have to end when the server stops. Default: ${default}."`
	Metrics     []string      `enum:"grove,llamacpp,vllm" default:"grove" var:"GROVE_METRICS" help:"Names of the metrics: grove, llamacpp or vllm, or several with commas between. Default: ${default}."`
	SessionDir  string        `name:"session-dir" placeholder:"DIR" var:"GROVE_SESSION_DIR" help:"Directory of session files, which requests name in the field session. Without it, requests may not name any."`
	MaxSessions flags.Count   `placeholder:"N" default:"1000" var:"GROVE_MAX_SESSIONS" help:"Sessions of a key, or of all clients without keys, that are kept; further ones are refused. 0: any number. Default: ${default}."`
	MaxBytes    flags.Bytes   `name:"max-session-bytes" placeholder:"BYTES" default:"16GiB" var:"GROVE_MAX_SESSION_BYTES" help:"Bytes of all session files; while there are as many, sessions are refused. Default: ${default}."`
	PrefixDir   string        `name:"prefix-dir" placeholder:"DIR" var:"GROVE_PREFIX_DIR" help:"Directory of computed pages of prompts and answers, which is made, and which several servers may share: each reads what another has computed. Whoever can write there can change answers."`
	MaxPrefix   flags.Bytes   `name:"max-prefix-bytes" placeholder:"BYTES" default:"16GiB" var:"GROVE_MAX_PREFIX_BYTES" help:"Bytes of the files in --prefix-dir; those that were used longest ago are removed. 0: any number. Default: ${default}."`
	Strict      bool          `var:"GROVE_STRICT" help:"Refuse requests with fields that their route does not read, also where they cannot change the answer."`
	All         bool          `var:"GROVE_ALL" help:"Serve all models of this machine by their names, each opened by its first request; see grove list."`
	AllowPull   bool          `var:"GROVE_ALLOW_PULL" help:"Let clients pull models, and delete those of --all, by ollama's API."`
	OnDemand    bool          `var:"GROVE_ON_DEMAND" help:"Open a model at its first request."`
	Idle        time.Duration `placeholder:"TIME" var:"GROVE_IDLE" help:"Close a model without requests for TIME; the next request opens it again. Without it, models stay open."`
}

// limitMemory lets garbage be collected in time for the memory limit, or the memory of the machine, unless GOMEMLIMIT is set. What is left
// between them is less than models leave to requests, so that weights alone never reach it.
func (c *serveCommand) limitMemory() {
	limit := uint64(c.MemoryLimit)
	if limit == 0 {
		limit = machine.Memory()
	}
	if limit > 0 && debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(int64(min(limit-min(limit/16, 16<<20), math.MaxInt64)))
	}
}

// Run implements the command.
func (c *serveCommand) Run() error {
	address, err := c.Where()
	if err != nil {
		return err
	}
	cert, err := c.certificate(c.TLSCert)
	if err != nil {
		return err
	}
	if _, err := c.mode(); err != nil {
		return err
	}
	named, err := c.ServedFlags.Models(c.All)
	if err != nil {
		return err
	}
	if len(c.Model) == 0 && c.JSON() {
		named[0].Path = gopher.Name // named, for without a name a line of text reports it
	}
	gate, err := c.gate(c.HostPort)
	if err != nil {
		return err
	}
	for name, n := range map[string]flags.Count{"--parallel": c.Parallel.N, "--max-connections": c.MaxConnections} {
		if n == 0 {
			return &grove.OptionError{Err: errors.New("grove: " + name + ": 0; it must be 1 or more")}
		}
	}
	if err := c.checkDirs(); err != nil {
		return err
	}
	proxy, err := c.verifier.proxy()
	if err != nil {
		return err
	}
	log := c.logger(os.Stderr)
	tracer, err := traces.Open(c.Traces, log)
	if err != nil {
		return err
	}
	defer tracer.Close()
	c.limitMemory()
	config := server.Config{Traces: tracer, Pull: c.AllowPull, AdapterDir: c.LoraDir, Access: gate, Strict: c.Strict, Connections: int(c.MaxConnections), Config: serving.Config{
		OnDemand: c.OnDemand, AnyModel: c.AnyModel || c.Fallback, Idle: c.Idle, Memory: uint64(c.MemoryLimit),
		Sessions: access.Sessions{Dir: c.SessionDir, Most: int(c.MaxSessions), Bytes: int64(min(c.MaxBytes, math.MaxInt64))},
		Log:      log,
	}, Verifies: c.TakeDrafts, Verifier: proxy, TLS: cert.config(), PathPrefix: c.PathPrefix.Path()}
	if c.All {
		config.Catalog = &server.Catalog{Store: find.System(), Open: func(m find.Model, memory uint64) (*grove.Model, error) {
			n := Model{Name: m.Name, Path: m.Path}
			n.Template = c.TemplateOf(append(named[:len(named):len(named)], n), n.Name)
			return c.open(n, memory)
		}}
	}
	for _, names := range c.Metrics {
		config.Metrics = append(config.Metrics, serving.MetricNames(names))
	}
	if config.Batches, err = c.Batches(int(c.Parallel.N)*len(named), log); err != nil {
		return err
	}
	if c.Dir != "" {
		config.Names = filepath.Join(c.Dir, namesFile)
	}
	s := server.New(config)
	for _, n := range named {
		if err := s.Add(c.source(n)); err != nil {
			return &grove.OptionError{Err: err}
		}
	}
	listener, err := c.listen(address)
	if err != nil {
		return err
	}
	if err := checkListener(gate, listener); err != nil {
		return err
	}
	signalled, stop := terminal.UntilSignal()
	defer stop()
	ctx, cancel := context.WithCancelCause(signalled)
	defer cancel(nil)
	loaded := make(chan error, 1)
	go func() {
		err := s.Load(ctx)
		if err != nil {
			cancel(err)
		} else {
			c.report(os.Stderr, "ready")
		}
		loaded <- err
	}()
	at := c.Scheme() + listener.Addr().String() + c.PathPrefix.Path()
	if reach.Socket(address) != "" {
		at, _ = c.URL() // Where has no error
	}
	c.report(os.Stderr, "listening on "+at)
	defer c.follow(gate, cert, config.Log)()
	err = s.Serve(ctx, listener, c.Drain)
	cancel(nil)
	if failure := <-loaded; failure != nil && signalled.Err() == nil {
		err = failure
	}
	return errors.Join(err, s.Close())
}

// Parsed implements [flags.Hooked].
func (c *serveCommand) Parsed() flags.Hook { return flags.Hook{Of: c, Do: c.parsed} }

// parsed takes the models of the arguments, which count before those of the variable.
func (c *serveCommand) parsed(line *kong.Context) error {
	if len(c.Models) == 0 {
		return nil
	}
	if !flags.OnLine(line, "model") {
		c.Model = nil
	}
	c.Model = append(c.Model, c.Models...)
	return nil
}

// checkDirs refuses a directory of sessions or of adapters that does not exist, and makes that of prefixes.
func (c *serveCommand) checkDirs() error {
	if c.PrefixDir != "" {
		if err := os.MkdirAll(c.PrefixDir, 0o700); err != nil {
			return &grove.OptionError{Err: fmt.Errorf("grove: --prefix-dir: %w", err)}
		}
	}
	for flag, dir := range map[string]string{"--session-dir": c.SessionDir, "--lora-dir": c.LoraDir, "--prefix-dir": c.PrefixDir} {
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is not a directory", dir)
		}
		if err != nil && dir != "" {
			return &grove.OptionError{Err: fmt.Errorf("grove: %s: %w", flag, err)}
		}
	}
	sessions, err := os.Stat(c.SessionDir)
	if prefixes, e := os.Stat(c.PrefixDir); err == nil && e == nil && os.SameFile(sessions, prefixes) {
		return &grove.OptionError{Err: fmt.Errorf("grove: --prefix-dir: %s is --session-dir too; name another", c.PrefixDir)}
	}
	for _, dir := range []string{c.SessionDir, c.PrefixDir} {
		if dir == "" {
			continue
		}
		if err := terminal.CheckFile(filepath.Join(dir, "session")); err != nil {
			return err
		}
	}
	return nil
}

// queue returns how many requests may queue, as the library takes it.
func (c *serveCommand) queue() int {
	if c.Queue == 0 {
		return grove.NoQueue
	}
	return int(c.Queue)
}

// source returns the source that opens a model.
func (c *serveCommand) source(n Model) server.Entry {
	return server.Entry{Name: n.Name, Path: cmp.Or(n.Path, gopher.Name), Settings: c.Settings(n), Open: func(_ context.Context, memory uint64) (*grove.Model, error) {
		return c.open(n, memory)
	}}
}

// open opens a model in memory bytes for weights and cache; 0: as many as the machine has.
func (c *serveCommand) open(n Model, memory uint64) (*grove.Model, error) {
	adapters, err := c.Adapters.Files(c.LoraIdle)
	if err != nil {
		return nil, err
	}
	o := grove.Options{Adapters: adapters, Queue: c.queue(), Memory: memory}
	log := c.logger(os.Stderr)
	o.Prefixes.Dir, o.Prefixes.Bytes, o.Prefixes.Log = c.PrefixDir, int64(min(c.MaxPrefix, math.MaxInt64)), log
	return c.Open(n, o, log)
}
