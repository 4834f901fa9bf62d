package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"grove"
	"grove/cmd/grove/internal/exit"
	"grove/cmd/grove/internal/flags"
	"grove/cmd/grove/internal/terminal"
	"grove/gopher"
	"grove/internal/machine"
	"grove/server"
	"grove/server/access"
	"grove/server/catalog"
	"grove/server/serving"
	"grove/server/traces"
	"grove/server/wire"
	"grove/weights/find"
)

// serveCommand serves models over HTTP.
type serveCommand struct {
	flags.Context
	flags.Threads
	flags.Cache
	flags.Repack
	flags.Draft
	flags.Guides
	flags.Adapters
	flags.Skip
	flags.Reasoning
	flags.Address
	callers
	logging
	verifier

	Models      []string      `arg:"" optional:"" name:"model" help:"Models to serve, as for --model."`
	Model       []string      `short:"m" sep:"none" placeholder:"[NAME=]MODEL" var:"GROVE_MODEL" help:"A model to serve, as other commands take it, and its name in requests; may be given several times. Without it, the model inside this program."`
	Template    []string      `name:"chat-template" sep:"none" placeholder:"[NAME=]TEMPLATE" var:"GROVE_CHAT_TEMPLATE" help:"Chat template of the model that is served as NAME, or of all models; may be given several times. TEMPLATE is as for grove chat. Without it, each model's own."`
	AnyModel    bool          `var:"GROVE_ANY_MODEL" help:"Answer requests for unknown models with the first model. Without it, they get 404."`
	Parallel    flags.Count   `placeholder:"N" default:"4" var:"GROVE_PARALLEL" help:"Texts of a model that are computed at a time. Default: ${default}."`
	MemoryLimit flags.Bytes   `placeholder:"BYTES" var:"GROVE_MEMORY_LIMIT" help:"Memory for weights, caches and requests, such as 6GiB; without it, the memory of the machine."`
	Queue       flags.Count   `placeholder:"N" default:"256" var:"GROVE_QUEUE" help:"Requests to a model that may queue; further ones get 429. Default: ${default}."`
	LoraDir     string        `name:"lora-dir" placeholder:"DIR" var:"GROVE_LORA_DIR" help:"Let clients open and close adapters, those of DIR. Without it, they may not."`
	LoraIdle    bool          `name:"lora-init-without-apply" var:"GROVE_LORA_INIT_WITHOUT_APPLY" help:"Open the adapters of --lora with scale 0: they work for requests that ask for them."`
	Drain       time.Duration `placeholder:"TIME" default:"30s" var:"GROVE_DRAIN" help:"Time that answers have to end when the server stops. Default: ${default}."`
	Metrics     []string      `enum:"grove,llamacpp,vllm" default:"grove" var:"GROVE_METRICS" help:"Names of the metrics: grove, llamacpp or vllm, or several with commas between. Default: ${default}."`
	SessionDir  string        `name:"session-dir" placeholder:"DIR" var:"GROVE_SESSION_DIR" help:"Directory of session files, which requests name in the field session. Without it, requests may not name any."`
	MaxSessions flags.Count   `placeholder:"N" default:"1000" var:"GROVE_MAX_SESSIONS" help:"Sessions of a key, or of all clients without keys, that are kept; further ones are refused. 0: any number. Default: ${default}."`
	MaxBytes    flags.Bytes   `name:"max-session-bytes" placeholder:"BYTES" default:"16GiB" var:"GROVE_MAX_SESSION_BYTES" help:"Bytes of all session files; while there are as many, sessions are refused. Default: ${default}."`
	Forget      bool          `var:"GROVE_FORGET" help:"Do not read or write what drafting learns of the texts of clients without keys and salts, in the cache directory of the user."`
	Strict      bool          `var:"GROVE_STRICT" help:"Refuse requests with fields that their route does not read, also where they cannot change the answer."`
	Lenient     bool          `var:"GROVE_LENIENT" help:"Leave unknown fields of requests out and log them. Without it, they are refused."`
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
	named, err := c.models()
	if err != nil {
		return err
	}
	gate, err := c.gate(c.HostPort)
	if err != nil {
		return err
	}
	for name, n := range map[string]flags.Count{"--parallel": c.Parallel, "--max-connections": c.MaxConnections} {
		if n == 0 {
			return &grove.OptionError{Err: errors.New("grove: " + name + ": 0; it must be 1 or more")}
		}
	}
	if err := c.checkDirs(); err != nil {
		return err
	}
	fields, err := c.fields()
	if err != nil {
		return err
	}
	proxy, err := c.verifier.proxy()
	if err != nil {
		return err
	}
	log := c.logger(os.Stderr)
	tracer, err := traces.Open(context.Background(), c.Traces, log)
	if err != nil {
		return err
	}
	defer tracer.Close()
	c.limitMemory()
	config := server.Config{Traces: tracer, Pull: c.AllowPull, AdapterDir: c.LoraDir, Access: gate, Fields: fields, Connections: int(c.MaxConnections), Config: serving.Config{
		OnDemand: c.OnDemand, AnyModel: c.AnyModel || c.Fallback, Idle: c.Idle, Memory: uint64(c.MemoryLimit),
		Sessions: access.Sessions{Dir: c.SessionDir, Most: int(c.MaxSessions), Bytes: int64(min(c.MaxBytes, math.MaxInt64))},
		Log:      log,
	}, Verifies: c.TakeDrafts, Verifier: proxy}
	if c.All {
		config.Catalog = &catalog.Catalog{Store: find.System(), Open: func(m find.Model, memory uint64) (*grove.Model, error) {
			n := namedModel{name: m.Name, path: m.Path}
			n.template = c.template(append(named[:len(named):len(named)], n), n.name)
			return c.open(n, memory)
		}}
	}
	for _, names := range c.Metrics {
		config.Metrics = append(config.Metrics, serving.MetricNames(names))
	}
	s := server.New(config)
	for _, n := range named {
		if err := s.Add(c.source(n)); err != nil {
			return &grove.OptionError{Err: err}
		}
	}
	listener, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w; another program listens there: --port names another port, 0 any that is free", err)
	}
	if err != nil {
		return exit.With(exit.CodeAddress, err)
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
	c.report(os.Stderr, "listening on http://"+listener.Addr().String())
	defer c.follow(gate, config.Log)()
	err = s.Serve(ctx, listener, c.Drain)
	cancel(nil)
	if failure := <-loaded; failure != nil && signalled.Err() == nil {
		err = failure
	}
	return errors.Join(err, s.Close())
}

// AfterApply takes the models of the arguments, which count before those of the variable.
func (c *serveCommand) AfterApply(line *kong.Context) error {
	if len(c.Models) == 0 {
		return nil
	}
	if !flags.OnLine(line, "model") {
		c.Model = nil
	}
	c.Model = append(c.Model, c.Models...)
	return nil
}

// namedModel is a model to serve. Path "" is the model inside the program, template "" the model's own.
type namedModel struct{ name, path, template string }

// models returns the models of the flags.
func (c *serveCommand) models() (all []namedModel, err error) {
	if len(c.Model) == 0 {
		all = []namedModel{{name: gopher.Name}}
		if c.JSON() {
			all[0].path = gopher.Name // named, for without a name a line of text reports it
		}
	}
	for _, m := range c.Model {
		name, path, named := strings.Cut(m, "=")
		if _, err := os.Stat(m); err == nil || !named || strings.Contains(name, "://") {
			name, path = "", m
		}
		given := path
		if path, err = flags.Find(path); err != nil {
			return nil, err
		}
		if err := readHeader(path); err != nil {
			return nil, err
		}
		if name == "" {
			name = servedName(given, path)
		}
		all = append(all, namedModel{name: name, path: path})
	}
	if _, err := c.Adapters.Files(false); err != nil {
		return nil, err
	}
	if len(all) > 1 || c.All {
		if err := c.ofOne(); err != nil {
			return nil, err
		}
	}
	for i := range all {
		all[i].template = c.template(all, all[i].name)
	}
	return all, nil
}

// ofOne returns an error where something is given that is for exactly one model.
func (c *serveCommand) ofOne() error {
	for _, f := range []struct {
		flag, needs string
		given       bool
	}{
		{"lora", "adapters need", len(c.Lora) > 0}, {"draft", "a draft model needs", c.Draft.Path != ""}, {"judge", "a head needs", c.Judge != ""},
		{"middle", "a middle model needs", c.Middle != ""}, {"guide", "a guide needs", len(c.Guide) > 0}, {"datastore", "a datastore needs", c.Store != ""},
		{"heads", "heads need", c.Heads != "" && c.Heads != grove.NoHeads}, {"skip-adapters", "adapters need", c.SkipAdapters != ""},
	} {
		if f.given {
			return &grove.OptionError{Err: fmt.Errorf("grove: --%s: several models are served; %s exactly one", f.flag, f.needs)}
		}
	}
	return nil
}

// readHeader refuses a model that is missing, or whose header is broken, before the server listens.
func readHeader(path string) error {
	f, err := flags.Model{Path: path}.File()
	if err != nil {
		return err
	}
	return exit.File(f.Close())
}

// servedName returns the name in requests of a model that was given by a path or a name: that of its file; of a blob of ollama or a snapshot of
// Hugging Face, whose names are hashes, the name by which it was given.
func servedName(given, path string) string {
	name, isGGUF := strings.CutSuffix(filepath.Base(path), ".gguf")
	if _, err := os.Stat(given); err != nil && !isGGUF {
		return given
	}
	return name
}

// template returns the chat template of a model: that of the last flag that names the model, else of the last that names no model.
func (c *serveCommand) template(all []namedModel, model string) string {
	own, any := "", ""
	for _, text := range c.Template {
		name, template, _ := strings.Cut(text, "=")
		switch {
		case name == model:
			own = template
		case !slices.ContainsFunc(all, func(m namedModel) bool { return m.name == name }):
			any = text
		}
	}
	return cmp.Or(own, any)
}

// fields returns what becomes of fields that a route does not read.
func (c *serveCommand) fields() (wire.Mode, error) {
	switch {
	case c.Strict && c.Lenient:
		return wire.Usual, &grove.OptionError{Err: errors.New("grove: --lenient: --strict is given too; leave one of them out")}
	case c.Strict:
		return wire.Strict, nil
	case c.Lenient:
		return wire.Lenient, nil
	}
	return wire.Usual, nil
}

// checkDirs refuses a directory of sessions or of adapters that does not exist.
func (c *serveCommand) checkDirs() error {
	for flag, dir := range map[string]string{"--session-dir": c.SessionDir, "--lora-dir": c.LoraDir} {
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is not a directory", dir)
		}
		if err != nil && dir != "" {
			return &grove.OptionError{Err: fmt.Errorf("grove: %s: %w", flag, err)}
		}
	}
	if c.SessionDir == "" {
		return nil
	}
	return terminal.CheckFile(filepath.Join(c.SessionDir, "session"))
}

// queue returns how many requests may queue, as the library takes it.
func (c *serveCommand) queue() int {
	if c.Queue == 0 {
		return grove.NoQueue
	}
	return int(c.Queue)
}

// source returns the source that opens a model.
func (c *serveCommand) source(n namedModel) server.Entry {
	return server.Entry{Name: n.name, Path: cmp.Or(n.path, gopher.Name), Open: func(_ context.Context, memory uint64) (*grove.Model, error) {
		return c.open(n, memory)
	}}
}

// open opens a model in memory bytes for weights and cache; 0: as many as the machine has. It logs recommendations of the
// model that are not used.
func (c *serveCommand) open(n namedModel, memory uint64) (*grove.Model, error) {
	adapters, err := c.Adapters.Files(c.LoraIdle)
	if err != nil {
		return nil, err
	}
	o := grove.Options{
		Adapters: adapters,
		Context:  int(c.Context.N), CacheType: string(c.Cache.Type), Threads: int(c.Threads.N), Parallel: int(c.Parallel),
		Queue: c.queue(), NoRepack: c.Repack.Off, Memory: memory, ChatTemplate: n.template,
		Reasoning: grove.Reasoning(c.Reasoning.How), Forget: c.Forget, SkipAdapters: c.SkipAdapters, Guides: c.Guide, Log: c.logger(os.Stderr),
	}
	c.Beside(&o)
	m, err := flags.Model{Path: n.path}.Open(o)
	if err != nil {
		return nil, err
	}
	for _, line := range m.Advice().Ignored {
		c.logger(os.Stderr).Warn("a setting that the model recommends is not used", "model", n.name, "reason", line)
	}
	return m, nil
}
