// Package batches is OpenAI's API of files and batches: clients upload a file of requests, the server answers them when it has time, and clients fetch the file of answers. What
// it keeps lies in a directory and outlives the server: a batch that a server began goes on in the next one, by package batch, and each line gets exactly one answer.
package batches

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	"grove/server/access"
	"grove/server/anthropic"
	"grove/server/batch"
	"grove/server/driver"
	"grove/server/wire"
)

// Config says what is kept. A zero bound stands for its usual value.
type Config struct {
	Dir    string // of the state, which is made; no other server may use it. "": nothing is kept, and the routes say so
	Upload int64  // bytes of a file that a client sends; 0: 512 MiB
	Bytes  int64  // of all files of a key, or of all clients without keys; 0: 16 GiB
	Open   int    // batches of a key that have not ended; 0: 100
	Flight int    // requests of a batch under way at a time, from 1 to 4096; 0: 32
	Log    *slog.Logger

	retry time.Duration // after which a batch that an error interrupted goes on; 0: the usual
}

// The bounds without flags.
const (
	maxRecords   = 10_000 // files of a key, and batches
	uploadBytes  = 512 << 20
	storedBytes  = 16 << 30
	openBatches  = 100
	usualFlight  = 32
	maxRunning   = 4   // batches at a time, of different keys
	maxFaults    = 100 // lines that a batch names where it fails
	maxModels    = 100 // of a batch
	usualSeconds = 30 * 24 * 3600
	leastSeconds = 3600
)

// Host is the server around the service.
type Host interface {
	http.Handler                                                   // answers a request whose context has a caller of [access.Behind]
	Owner(folder string) *access.Caller                            // of the files of a key; nil: the key is gone
	Identity(ctx context.Context, models []string) (string, error) // what answers of models depend on; those that are not served are left out
}

// Service keeps files and answers batches. It is safe for concurrent use.
type Service struct {
	config Config
	store  *store // nil: nothing is kept
	usage  usage
	runner runner
}

// Open opens the state. The caller closes the service. Errors: a directory that cannot be used, or that another server uses; state of another version.
func Open(c Config) (s *Service, err error) {
	c.Upload, c.Bytes, c.Open, c.Flight = cmp.Or(c.Upload, uploadBytes), cmp.Or(c.Bytes, storedBytes), cmp.Or(c.Open, openBatches), cmp.Or(c.Flight, usualFlight)
	c.retry = cmp.Or(c.retry, retryAfter)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s = &Service{config: c, usage: usage{most: c.Bytes, bytes: map[string]int64{}}}
	s.runner = runner{Service: s, wake: make(chan struct{}, 1), running: map[string]*run{}}
	if c.Dir == "" {
		return s, nil
	}
	if s.store, err = openStore(c.Dir); err != nil {
		return nil, err
	}
	if err := s.sweep(); err != nil {
		return nil, errors.Join(err, s.store.close())
	}
	return s, nil
}

// sweep counts the bytes of each owner, and removes files that no record names: of uploads and batches that a killed server left.
func (s *Service) sweep() error {
	known := map[string]bool{}
	err := s.store.db.View(func(tx *bolt.Tx) error {
		files, err := list[fileRecord](tx, nil)
		if err != nil {
			return err
		}
		for _, f := range files {
			known[f.ID] = true
			s.usage.add(f.Owner, f.Bytes)
		}
		all, err := list[batchRecord](tx, nil)
		for _, b := range all {
			if !b.Status.ended() {
				known[b.Answers], known[b.Faulty] = true, true
			}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("batches: %s: %w", s.config.Dir, err)
	}
	entries, err := os.ReadDir(filepath.Join(s.config.Dir, filesDir))
	for _, e := range entries {
		id, _, _ := strings.Cut(e.Name(), ".") // behind it is the suffix of a batch's state or lock
		if made := strings.HasPrefix(id, fileID) || strings.HasPrefix(id, uploadName); made && !known[id] {
			err = errors.Join(err, os.Remove(s.store.path(e.Name())))
		}
	}
	return err
}

// Start begins to answer batches by a host.
func (s *Service) Start(h Host) {
	if s.store != nil {
		s.runner.begin(h)
	}
}

// Stop ends the answering of batches, which go on when a service is opened again.
func (s *Service) Stop() {
	if s.store != nil {
		s.runner.end()
	}
}

// Close stops the service and closes the state. It is called once.
func (s *Service) Close() error {
	if s.store == nil {
		return nil
	}
	s.runner.end()
	return s.store.close()
}

// Routes returns the routes.
func (s *Service) Routes() []driver.Route {
	route := func(body any, h driver.Handler, pattern string) driver.Route {
		return driver.Route{Access: driver.Keyed, Patterns: []string{pattern}, Body: body, Handle: func(x *driver.Request) error {
			if s.store == nil {
				return &wire.Error{
					Status: http.StatusNotFound, Type: wire.TypeInvalid, Code: "files_not_kept", Message: "the server keeps no files and runs no batches (grove serve --state-dir DIR)",
				}
			}
			return h(x)
		}}
	}
	messages := func(body any, h driver.Handler, pattern string) driver.Route {
		r := route(body, h, pattern)
		r.Errors = anthropic.ErrorBody
		return r
	}
	upload := route(nil, s.upload, "POST /v1/files")
	upload.Form = true
	return []driver.Route{
		upload,
		route(nil, s.listFiles, "GET /v1/files"),
		route(nil, s.getFile, "GET /v1/files/{id}"),
		route(nil, s.content, "GET /v1/files/{id}/content"),
		route(nil, s.deleteFile, "DELETE /v1/files/{id}"),
		route(new(batchRequest), s.create, "POST /v1/batches"),
		route(nil, s.listBatches, "GET /v1/batches"),
		route(nil, s.getBatch, "GET /v1/batches/{id}"),
		route(nil, s.cancel, "POST /v1/batches/{id}/cancel"),
		messages(new(messagesRequest), s.createMessages, "POST /v1/messages/batches"),
		messages(nil, s.listMessages, "GET /v1/messages/batches"),
		messages(nil, s.getMessages, "GET /v1/messages/batches/{id}"),
		messages(nil, s.results, "GET /v1/messages/batches/{id}/results"),
		messages(nil, s.cancelMessages, "POST /v1/messages/batches/{id}/cancel"),
		messages(nil, s.deleteMessages, "DELETE /v1/messages/batches/{id}"),
	}
}

// newID returns a new id with a prefix, of random bits.
func newID(prefix string) string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // it never fails
	return prefix + hex.EncodeToString(b[:])
}

// ownerOf returns whose files and batches a request may refer to.
func ownerOf(x *driver.Request) string { return access.CallerOf(x.R.Context()).Folder() }

// missing is the answer to an id that the caller has nothing of.
func missing(kind, id string) error {
	return &wire.Error{Status: http.StatusNotFound, Type: wire.TypeInvalid, Param: "id", Code: "not_found", Message: fmt.Sprintf("there is no %s %q", kind, wire.Clip(id))}
}

// full is the answer where a bound of the caller's is reached.
func full(code, format string, args ...any) error {
	return &wire.Error{Status: http.StatusInsufficientStorage, Type: wire.TypeInvalid, Code: code, Message: fmt.Sprintf(format, args...)}
}

// usage counts the bytes of each owner's files. It is safe for concurrent use.
type usage struct {
	most int64

	mu    sync.Mutex
	bytes map[string]int64
}

// add counts bytes, or counts them no more where n is negative.
func (u *usage) add(owner string, n int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.bytes[owner] += n; u.bytes[owner] == 0 {
		delete(u.bytes, owner)
	}
}

// take counts bytes where an owner may have as many more, and reports whether it may.
func (u *usage) take(owner string, n int64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.bytes[owner]+n > u.most {
		return false
	}
	u.bytes[owner] += n
	return true
}

// left returns how many bytes more an owner may have.
func (u *usage) left(owner string) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.most - u.bytes[owner]
}

// clean removes what a batch leaves beside its files, where it is there.
func (s *Service) clean(b *batchRecord) {
	if err := batch.Clean(s.store.path(b.Answers)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.config.Log.Warn("files of a batch cannot be removed", "batch", b.ID, "error", err)
	}
}
