package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"grove"
	"grove/gopher"
	"grove/server"
	"grove/server/serving"
)

// serveCommand serves models over HTTP.
type serveCommand struct {
	Model       []string      `short:"m" sep:"none" placeholder:"[NAME=]MODEL" var:"GROVE_MODEL" help:"A model to serve, as other commands take it, and the name it is served by; may be given several times. Without it, the model inside this program."`
	Draft       string        `placeholder:"FILE" var:"GROVE_DRAFT" help:"GGUF file of a smaller model with the same vocabulary, to draft with; for one model."`
	Template    []string      `name:"chat-template" sep:"none" placeholder:"[NAME=]TEMPLATE" var:"GROVE_CHAT_TEMPLATE" help:"Chat template of the model that is served as NAME, or of all: a further one of the model's, one of this program's, or a Jinja file; may be given several times. Without it, each model's own."`
	AnyModel    bool          `var:"GROVE_ANY_MODEL" help:"Answer requests for models that are not served by the first one. Without it, they get 404."`
	Addr        string        `placeholder:"HOST:PORT" default:"127.0.0.1:8080" var:"GROVE_ADDR" help:"Address to listen on. Default: ${default}."`
	APIKey      []string      `name:"api-key" sep:"none" placeholder:"KEY" var:"GROVE_API_KEY" help:"Key that requests must show; may be given several times. Without it, they need none."`
	APIKeyFile  string        `name:"api-key-file" placeholder:"FILE" var:"GROVE_API_KEY_FILE" help:"File of such keys, one a line."`
	Parallel    count         `placeholder:"N" default:"4" var:"GROVE_PARALLEL" help:"Texts of a model that are computed at a time. Default: ${default}."`
	Context     count         `short:"c" placeholder:"N" var:"GROVE_CONTEXT" help:"Tokens of a text, prompt included; 0: the model's own, 4096 at most."`
	MemoryLimit byteCount     `placeholder:"BYTES" var:"GROVE_MEMORY_LIMIT" help:"Memory that weights and caches may take, such as 6GiB; without it, the machine's."`
	Threads     count         `short:"t" placeholder:"N" var:"GROVE_THREADS" help:"Threads; 0: one for each core that may be used."`
	CacheType   cacheType     `placeholder:"TYPE" default:"f16" var:"GROVE_CACHE_TYPE" help:"Type of cached keys and values: f32, f16 or q8_0. Default: ${default}."`
	NoRepack    bool          `var:"GROVE_NO_REPACK" help:"Read weights where the file has them: less memory while loading, slower, the same answers."`
	Queue       count         `placeholder:"N" default:"256" var:"GROVE_QUEUE" help:"Requests that may wait for their turn; more are answered with 429. Default: ${default}."`
	Drain       time.Duration `placeholder:"TIME" default:"30s" var:"GROVE_DRAIN" help:"Time that answers may take to end when the server is told to. Default: ${default}."`
	Metrics     []string      `enum:"grove,llamacpp,vllm" default:"grove" var:"GROVE_METRICS" help:"Names of the metrics: those of grove, llamacpp or vllm, or several with commas between. Default: ${default}."`
	SessionDir  string        `name:"session-dir" placeholder:"DIR" var:"GROVE_SESSION_DIR" help:"Folder of the files in which requests may keep what they compute, by their field session. Without it, they may not."`
	OnDemand    bool          `var:"GROVE_ON_DEMAND" help:"Open a model when a request first asks for it, and not before."`
	Idle        time.Duration `placeholder:"TIME" var:"GROVE_IDLE" help:"Close a model that nobody has asked for in this time; the next request opens it again. Without it, models stay."`
	LogRequests bool          `var:"GROVE_LOG_REQUESTS" help:"Write a line for each request on standard error."`
}

// listenError says that an address cannot be listened on.
type listenError struct{ error }

// Unwrap returns what is wrong.
func (e listenError) Unwrap() error { return e.error }

// Run implements the command.
func (c *serveCommand) Run() (err error) {
	named, err := c.models()
	if err != nil {
		return err
	}
	keys, err := c.keys()
	if err != nil {
		return err
	}
	if c.Parallel == 0 {
		return &grove.OptionError{Err: errors.New("grove: --parallel is 0")}
	}
	if err := c.checkSessions(); err != nil {
		return err
	}
	level := slog.LevelWarn
	if c.LogRequests {
		level = slog.LevelInfo
	}
	config := server.Config{Keys: keys, Config: serving.Config{
		OnDemand: c.OnDemand, AnyModel: c.AnyModel, Idle: c.Idle, Memory: uint64(c.MemoryLimit), Sessions: c.SessionDir,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})),
	}}
	for _, names := range c.Metrics {
		config.Metrics = append(config.Metrics, serving.MetricNames(names))
	}
	s := server.New(config)
	for _, n := range named {
		if err := s.Add(c.source(n)); err != nil {
			return &grove.OptionError{Err: err}
		}
	}
	listener, err := net.Listen("tcp", c.Addr)
	if err != nil {
		return listenError{err}
	}
	signalled, stop := untilSignal()
	defer stop()
	ctx, cancel := context.WithCancelCause(signalled)
	defer cancel(nil)
	loaded := make(chan error, 1)
	go func() {
		err := s.Load(ctx)
		if err != nil {
			cancel(err)
		} else {
			fmt.Fprintln(os.Stderr, "grove: ready")
		}
		loaded <- err
	}()
	fmt.Fprintf(os.Stderr, "grove: listening on http://%s\n", listener.Addr())
	err = s.Serve(ctx, listener, c.Drain)
	cancel(nil)
	if failure := <-loaded; failure != nil && signalled.Err() == nil {
		err = failure
	}
	return errors.Join(err, s.Close())
}

// namedModel is a model to serve: what it is called, where it is, and its chat template; path "" is the one inside the
// program, template "" the model's own.
type namedModel struct{ name, path, template string }

// models returns the models that the flags name.
func (c *serveCommand) models() (all []namedModel, err error) {
	if len(c.Model) == 0 {
		all = []namedModel{{name: gopher.Name}}
	}
	for _, m := range c.Model {
		name, path, named := strings.Cut(m, "=")
		if _, err := os.Stat(m); err == nil || !named {
			name, path = "", m
		}
		if path, err = findModel(path); err != nil {
			return nil, err
		}
		if name == "" {
			name = strings.TrimSuffix(filepath.Base(path), ".gguf")
		}
		all = append(all, namedModel{name: name, path: path})
	}
	if c.Draft != "" && len(all) > 1 {
		return nil, &grove.OptionError{Err: errors.New("grove: --draft goes with one model")}
	}
	for i := range all {
		all[i].template = c.template(all, all[i].name)
	}
	return all, nil
}

// template returns the chat template that the flags give to a model: the last that names it, or else the last that names none.
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

// keys returns the API keys that there are.
func (c *serveCommand) keys() ([]string, error) {
	keys := c.APIKey
	if c.APIKeyFile != "" {
		text, err := os.ReadFile(c.APIKeyFile)
		if err != nil {
			return nil, &grove.OptionError{Err: fmt.Errorf("grove: --api-key-file: %w", err)}
		}
		n := len(keys)
		for line := range strings.Lines(string(text)) {
			if key := strings.TrimSpace(line); key != "" {
				keys = append(keys, key)
			}
		}
		if len(keys) == n {
			return nil, &grove.OptionError{Err: fmt.Errorf("grove: --api-key-file: %s has no key", c.APIKeyFile)}
		}
	}
	for _, key := range keys {
		if strings.TrimSpace(key) == "" {
			return nil, &grove.OptionError{Err: errors.New("grove: --api-key is empty")}
		}
	}
	return keys, nil
}

// checkSessions refuses a folder of sessions that is none.
func (c *serveCommand) checkSessions() error {
	if c.SessionDir == "" {
		return nil
	}
	info, err := os.Stat(c.SessionDir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is no folder", c.SessionDir)
	}
	if err != nil {
		return &grove.OptionError{Err: fmt.Errorf("grove: --session-dir: %w", err)}
	}
	return nil
}

// source returns how a model is opened.
func (c *serveCommand) source(n namedModel) server.Source {
	return server.Source{Name: n.name, Open: func(_ context.Context, memory uint64) (*grove.Model, error) {
		return modelFlag{n.path}.open(grove.Options{
			Context: int(c.Context), CacheType: string(c.CacheType), Threads: int(c.Threads), Parallel: int(c.Parallel),
			Queue: int(c.Queue), NoRepack: c.NoRepack, Memory: memory, Draft: c.Draft, ChatTemplate: n.template,
		})
	}}
}
