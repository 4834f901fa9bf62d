// Package pull fetches models by name: from Hugging Face's hub, from ollama's registry and others of its form, and from plain
// addresses. Each goes into the cache that owns its name, in the layout of the program to which the cache belongs, so that
// package find finds it, and that program too.
//
// A program that has the name of a model calls [Run] and opens the path that it returns with grove.Open. Package grove itself
// never uses the network.
//
// Names, manifests, listings and servers may be hostile. What bounds them is in packages transfer, hub and registry, and listed
// in docs/models.md. Nothing is written outside the cache.
package pull

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"grove/internal/fileio"
	"grove/internal/weights/find"
)

// Options says how a model is pulled. The zero value is the usual case.
type Options struct {
	Progress  func(Event)       // called for each step, by one goroutine at a time; nil: not at all
	Token     string            // for the hub; "": that of the environment, see docs/models.md
	Endpoint  string            // of the hub; "": HF_ENDPOINT, else https://huggingface.co
	Insecure  bool              // http for registries, instead of https; for loopback hosts http is always used
	Offline   bool              // refuse; so do the variables GROVE_OFFLINE and HF_HUB_OFFLINE
	Parallel  int               // requests at a time, from 1 to 16; 0: 4
	Store     *find.Store       // whose caches are filled; nil: find.System()
	Transport http.RoundTripper // nil: that of net/http, with the proxies of the environment
	Backoff   time.Duration     // before the second attempt of a request; 0: half a second
}

// Result is a model that was pulled.
type Result struct {
	Path     string   // for grove.Open: a file, the first of a split one, or a folder of Hugging Face
	Files    []string // all files that the name stands for
	Received int64    // bytes that came over the network; 0: all was there
}

// ErrOffline reports that the network may not be used.
var ErrOffline = errors.New("pull: the network is off by --offline, GROVE_OFFLINE or HF_HUB_OFFLINE")

// Offline reports whether the variable GROVE_OFFLINE or HF_HUB_OFFLINE forbids the network: any value but an empty one, 0, no, off
// and false.
func Offline() bool {
	for _, name := range []string{"GROVE_OFFLINE", "HF_HUB_OFFLINE"} {
		switch strings.ToLower(os.Getenv(name)) {
		case "", "0", "no", "off", "false":
		default:
			return true
		}
	}
	return false
}

// Run pulls a model. What is in the cache already is not fetched again; a partial file is continued; another process that pulls
// the same file is waited for. When the context ends, partial files stay. Errors: [ErrOffline], *[StatusError],
// *[SpaceError], among others; each says what to do where something can be done.
func Run(ctx context.Context, ref Ref, o Options) (r Result, err error) {
	if o.Offline || Offline() {
		return r, fmt.Errorf("%w; %s is on %s", ErrOffline, ref, ref.From())
	}
	if o.Store == nil {
		o.Store = find.System()
	}
	client, err := NewTransfer(TransferConfig{Parallel: o.Parallel, Progress: o.Progress, Transport: o.Transport, Backoff: o.Backoff})
	if err == nil {
		r, err = o.run(ctx, client, ref)
	}
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return r, fmt.Errorf("pull: %w", err)
	}
	client.Report(Event{State: Done})
	return r, nil
}

func (o *Options) run(ctx context.Context, client *Client, ref Ref) (r Result, err error) {
	source := map[Kind]string{Hub: find.HuggingFace, Registry: find.Ollama, URL: find.LlamaCpp}[ref.Kind]
	if source == "" {
		return r, errors.New("the name is empty; make it with Parse")
	}
	cache, err := OpenCache(o.Store.Cache(source))
	if err != nil {
		return r, err
	}
	defer cache.Close()
	switch ref.Kind {
	case Hub:
		h, err := o.hub(client, cache)
		if err != nil {
			return r, err
		}
		got, err := h.Pull(ctx, ref.Hub)
		return Result(got), err
	case Registry:
		got, err := (&RegistryClient{Client: client, Cache: cache, Insecure: o.Insecure}).Pull(ctx, ref.Model)
		return Result(got), err
	}
	return fetchURL(ctx, client, cache, ref.URL)
}

// hub returns the hub of the options and of the environment.
func (o *Options) hub(client *Client, cache *Cache) (h *HubClient, err error) {
	h = &HubClient{Client: client, Cache: cache}
	if h.Endpoint, err = ParseEndpoint(first(o.Endpoint, os.Getenv("HF_ENDPOINT"), DefaultEndpoint)); err != nil {
		return nil, err
	}
	if h.Token, err = o.token(); err != nil {
		return nil, err
	}
	if h.Token != "" && h.Endpoint.Scheme == "http" && !loopback(h.Endpoint.Hostname()) {
		client.Report(Event{State: Note, Text: "the token is not sent, because " + h.Endpoint.Host + " is asked without https"})
		h.Token = ""
	}
	return h, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func first(choices ...string) string {
	for _, c := range choices {
		if c != "" {
			return c
		}
	}
	return ""
}

const maxToken = 4 << 10 // bytes

// token returns the token for the hub, from the places in which huggingface_hub keeps it; "": there is none.
func (o *Options) token() (string, error) {
	home, _ := os.UserHomeDir()
	cache := first(os.Getenv("XDG_CACHE_HOME"), filepath.Join(home, ".cache"))
	file := first(os.Getenv("HF_TOKEN_PATH"), filepath.Join(first(os.Getenv("HF_HOME"), filepath.Join(cache, "huggingface")), "token"))
	text, from := first(o.Token, os.Getenv("HF_TOKEN"), os.Getenv("HUGGING_FACE_HUB_TOKEN")), "HF_TOKEN"
	if text == "" {
		from = file
		b, err := fileio.ReadRegular(file, maxToken)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // else nobody has logged in
			return "", fmt.Errorf("%s holds no token: %w", file, err)
		}
		text = string(b)
	}
	text = strings.TrimSpace(text)
	bad := func(r rune) bool { return r <= ' ' || r > '~' }
	if len(text) > maxToken || strings.ContainsFunc(text, bad) {
		return "", fmt.Errorf("%s holds no token: %d bytes; a token is one word of at most %d bytes", from, len(text), maxToken)
	}
	return text, nil
}

// maxParts bounds the parts of a split file.
const maxParts = 1000

var splitFile = regexp.MustCompile(`^(.*)-00001-of-(\d{5})\.gguf$`)

// fetchURL fetches the file of an address, or all parts of a split one, into the cache of llama.cpp.
func fetchURL(ctx context.Context, client *Client, cache *Cache, u *url.URL) (r Result, err error) {
	names := []string{path.Base(u.Path)}
	if m := splitFile.FindStringSubmatch(names[0]); m != nil {
		parts, _ := strconv.Atoi(m[2])
		if parts < 1 || parts > maxParts {
			return r, fmt.Errorf("%s: %d parts; 1 to %d are taken", names[0], parts, maxParts)
		}
		for i := 2; i <= parts; i++ {
			names = append(names, fmt.Sprintf("%s-%05d-of-%s.gguf", m[1], i, m[2]))
		}
	}
	var files []File
	for _, name := range names {
		if err := CheckName(name); err != nil {
			return r, err
		}
		address := *u
		address.Path, address.RawPath = path.Join(path.Dir(u.Path), name), ""
		files = append(files, File{Name: name, URL: address.String(), Path: name, Lock: ".locks/" + name + ".lock", Size: -1, Magic: "GGUF"})
		r.Files = append(r.Files, cache.Path(name))
	}
	r.Path = r.Files[0]
	r.Received, err = client.FetchAll(ctx, cache, files)
	return r, err
}
