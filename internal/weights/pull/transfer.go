// transfer.go downloads files over HTTP into a directory of models, from servers that may fail, lie or be hostile.
//
// It is written on net/http. The two maintained clients that were considered, go-huggingface's hub and oras-go, leave to their
// callers what is hard here: hub checks no hash, resumes nothing and refuses the redirects of large files, and oras-go keeps no
// partial file between two runs of a program. A file of a hub, a layer of a registry and a file of a plain URL differ in their
// URL, length and digest alone, so one downloader serves them all.
//
// A file is fetched in segments of [SegmentBytes], several at a time, which are appended in order: the partial file is always a
// beginning of the whole, whenever the process ends. Its name is that of the file with [Suffix]. A later download continues it.
// The file gets its name when its length and its digest are right. A lock admits one download of a file at a time, also between
// processes.

package pull

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// The bounds of a download.
const (
	SegmentBytes = 8 << 20          // of one request; the requests under way hold as much memory each
	MaxFileBytes = 4 << 40          // of a file
	MaxRedirects = 10               // of a request
	MaxAttempts  = 5                // of a request that fails for a reason that may pass
	MaxBackoff   = 30 * time.Second // between two attempts
	MaxWait      = time.Minute      // that a server may ask for with Retry-After
	IdleTimeout  = time.Minute      // without a byte, after which a connection counts as lost
	ReserveBytes = 64 << 20         // that stay free on the disk
	Parallel     = 4                // requests at a time, where the caller names no number
	MaxParallel  = 16
)

// Suffix ends the name of a partial file.
const Suffix = ".incomplete"

// State says what is done with a file.
type State string

// The states of a file, in their order, and those of a whole pull.
const (
	Resolving State = "pulling manifest" // the list of files is asked for
	Waiting   State = "waiting"          // another process downloads the file
	Pulling   State = "pulling"          // the file is downloaded; Completed and Total are bytes
	Verifying State = "verifying"        // the hash of a partial file is computed
	Ready     State = "ready"            // the file is whole and has its name
	Note      State = "note"             // Text says what was chosen or left out
	Writing   State = "writing manifest" // the names of the files are written
	Done      State = "success"          // the model can be opened
)

// Event is a step of a download.
type Event struct {
	State     State  `json:"state"`
	File      string `json:"file,omitempty"`   // name of a file, or the digest of a layer
	Digest    string `json:"digest,omitempty"` // sha256:... of the file; "": unknown
	Completed int64  `json:"completed,omitempty"`
	Total     int64  `json:"total,omitempty"` // bytes of the file
	Text      string `json:"text,omitempty"`
}

// TransferConfig says how files are downloaded. The zero value is the usual case.
type TransferConfig struct {
	Parallel  int               // requests at a time, from 1 to MaxParallel; 0: Parallel
	Progress  func(Event)       // called for each step, by one goroutine at a time; nil: not at all
	Backoff   time.Duration     // before the second attempt; doubled for each further one; 0: half a second
	Transport http.RoundTripper // nil: that of net/http, with the proxies of the environment
	Segment   int64             // bytes of a request; 0: SegmentBytes
}

// Client downloads files. It may be used by several goroutines.
type Client struct {
	config TransferConfig
	http   *http.Client
	slots  chan struct{} // one for each request under way
	said   sync.Mutex    // held while an event is reported
}

// NewTransfer returns a client. It returns an error for a number of requests that is out of range.
func NewTransfer(c TransferConfig) (*Client, error) {
	if c.Parallel < 0 || c.Parallel > MaxParallel {
		return nil, fmt.Errorf("%d requests at a time; it must be 1 to %d", c.Parallel, MaxParallel)
	}
	if c.Parallel == 0 {
		c.Parallel = Parallel
	}
	if c.Backoff == 0 {
		c.Backoff = time.Second / 2
	}
	if c.Segment == 0 {
		c.Segment = SegmentBytes
	}
	if c.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.DisableCompression = true // the length and the hash are those of the file
		t.ResponseHeaderTimeout = IdleTimeout
		t.MaxIdleConnsPerHost = MaxParallel
		t.Protocols = new(http.Protocols)
		t.Protocols.SetHTTP1(true) // a connection for each request: they share the speed of one otherwise
		c.Transport = t
	}
	return &Client{config: c, http: &http.Client{Transport: c.Transport, CheckRedirect: checkRedirect}, slots: make(chan struct{}, c.Parallel)}, nil
}

// Report passes an event on.
func (c *Client) Report(e Event) {
	if c.config.Progress == nil {
		return
	}
	c.said.Lock()
	defer c.said.Unlock()
	c.config.Progress(e)
}

// File is a file to download.
type File struct {
	Name   string // for events and errors
	URL    string
	Token  string // sent to the host of URL, and to no other; "": none
	Path   string // in the cache, with slashes
	Lock   string // file of the lock, in the cache
	Size   int64  // bytes; negative: the server says it
	Digest Digest // zero: unknown
	Magic  string // with which the content must begin
}

// FetchAll downloads files into a cache, several at a time. It reports each as [Ready], those too that were there before. It
// returns the number of bytes that came over the network. An error, or the end of the context, stops all; partial files stay.
func (c *Client) FetchAll(ctx context.Context, cache *Cache, files []File) (received int64, err error) {
	if err := cache.checkSpace(files); err != nil {
		return 0, err
	}
	for _, f := range files {
		if f.Size >= 0 {
			c.Report(Event{State: Pulling, File: f.Name, Digest: f.Digest.String(), Total: f.Size}) // so that the whole is known
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		turn  = make(chan struct{}, c.config.Parallel)
	)
	for _, f := range files {
		select {
		case turn <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		group.Go(func() {
			defer func() { <-turn }()
			n, err := c.Fetch(ctx, cache, f)
			mu.Lock()
			received += n
			mu.Unlock()
			if err != nil {
				cancel(err)
			}
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return received, context.Cause(ctx)
	}
	return received, nil
}

// Fetch downloads a file into a cache and returns the number of bytes that came over the network. It waits for another
// process that downloads the same file.
func (c *Client) Fetch(ctx context.Context, cache *Cache, f File) (received int64, err error) {
	if f.Size > MaxFileBytes {
		return 0, fmt.Errorf("%s: %d bytes; at most %d are taken", f.Name, f.Size, int64(MaxFileBytes))
	}
	unlock, err := cache.Lock(ctx, f.Lock, func() { c.Report(Event{State: Waiting, File: f.Name, Digest: f.Digest.String()}) })
	if err != nil {
		return 0, err
	}
	defer unlock()
	if f.Size >= 0 && cache.has(f.Path, f.Size) {
		c.Report(Event{State: Ready, File: f.Name, Digest: f.Digest.String(), Completed: f.Size, Total: f.Size})
		return 0, nil
	}
	for again := true; ; again = false {
		d := &download{client: c, cache: cache, File: f}
		err = d.run(ctx)
		received += d.received.Load()
		switch {
		case !errors.Is(err, errStale):
			return received, err
		case !again:
			return received, fmt.Errorf("%s: %w", f.Name, err)
		} // else the server's file is not the one of the partial file, which is gone now
	}
}
