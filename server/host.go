package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"grove"
	"grove/token"
)

// host is a model that is served, and the room for its texts.
type host struct {
	name    string
	model   *grove.Model
	info    grove.Info
	created time.Time
	free    chan int // numbers of slots

	renderer renderer // nil: the model has no template

	mu    sync.Mutex
	slots []slot
}

// slot is what is known of the text that is computed in a place.
type slot struct {
	busy      bool
	request   string // the id of the request
	prompt    int    // tokens
	generated int
}

func newHost(name string, m *grove.Model, parallel int) *host {
	h := &host{
		name: name, model: m, info: m.Info(), created: time.Now(),
		free: make(chan int, parallel), slots: make([]slot, parallel),
	}
	for i := range parallel {
		h.free <- i
	}
	return h
}

// take waits for a slot. Who waits longest is next.
func (h *host) take(ctx context.Context, request string, prompt int) (int, error) {
	select {
	case i := <-h.free:
		h.note(i, slot{busy: true, request: request, prompt: prompt})
		return i, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// give returns a slot.
func (h *host) give(i int) {
	h.note(i, slot{})
	h.free <- i
}

func (h *host) note(i int, s slot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.slots[i] = s
}

func (h *host) count(i int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.slots[i].generated++
}

// states returns what the slots are at.
func (h *host) states() []slot {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]slot(nil), h.slots...)
}

// check refuses an id that is none of the vocabulary; field is what it was given in.
func (h *host) check(field string, id int64) error {
	if id < 0 || id >= int64(h.info.Vocabulary) {
		return refuse(field, "token id %d is out of range: the vocabulary has %d", id, h.info.Vocabulary)
	}
	return nil
}

// piece returns a token as text: as bytes where it is not whole characters.
func (h *host) piece(id token.ID) (text string, raw []byte) {
	raw, err := h.model.Piece(id)
	if err != nil {
		return "", nil // the model gave it: it is of the vocabulary
	}
	if valid := strings.ToValidUTF8(string(raw), "\ufffd"); valid != string(raw) {
		return valid, raw
	}
	return string(raw), raw
}

// ErrModel reports models that cannot be served together.
var ErrModel = errors.New("server: a model cannot be served")

// Add begins to serve a model under a name; parallel is the number of texts that it was opened for. The first model
// answers requests that name none. It is called before [Server.Ready].
func (s *Server) Add(name string, m *grove.Model, parallel int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == "" || parallel < 1 {
		return fmt.Errorf("%w: name %q, %d texts at a time", ErrModel, name, parallel)
	}
	for _, h := range s.hosts {
		if h.name == name {
			return fmt.Errorf("%w: two are called %q", ErrModel, name)
		}
	}
	s.hosts = append(s.hosts, newHost(name, m, parallel))
	return nil
}

// all returns the models that are served.
func (s *Server) all() []*host {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hosts[:len(s.hosts):len(s.hosts)]
}

// host returns the model of a name, or of none.
func (s *Server) host(name string) (*host, error) {
	all := s.all()
	for _, h := range all {
		if h.name == name || name == "" {
			return h, nil
		}
	}
	names := make([]string, len(all))
	for i, h := range all {
		names[i] = h.name
	}
	return nil, &apiError{
		status: 404, Type: typeInvalid, Param: "model", Code: "model_not_found",
		Message: fmt.Sprintf("the model %q is not served; %s", clip(name), strings.Join(names, ", ")+" is"),
	}
}
