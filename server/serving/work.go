package serving

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	gauges "runtime/metrics"
	"sync"
	"time"

	"grove/server/wire"
)

// The bounds of the work on requests before their texts are computed: of their bodies, prompts and tokens.
const (
	smallBody = 64 << 10         // bytes; the work on such a body waits for no larger one
	bodyHeld  = 2                // bytes that are held for each byte of a body, until its request is answered
	bodyWork  = 8                // of these while it is worked on
	workWait  = 10 * time.Second // for memory
	leastWork = 64 << 20         // bytes of memory that models leave to requests, unless that is more than an eighth of the limit
)

// Work bounds the memory of bodies, and the number of those that are worked on at a time. It is safe for concurrent use.
type Work struct {
	memory       *Quota
	small, large chan struct{} // have a value for each body that is worked on

	mu      sync.Mutex
	tidying int // large bodies that are worked on
	usual   int // percentage of garbage otherwise
}

// newWork returns the work of requests that may hold most bytes.
func newWork(most func() int64) *Work {
	threads := runtime.GOMAXPROCS(0)
	return &Work{memory: NewQuota(most, bodyWork*smallBody), small: make(chan struct{}, 2*threads), large: make(chan struct{}, max(1, threads/2))}
}

// Held is the memory that one request holds. It is for one goroutine.
type Held struct {
	work   *Work
	memory *QuotaHeld
	body   int64
}

// Hold returns the memory of a request, which holds nothing yet.
func (w *Work) Hold() *Held { return &Held{work: w, memory: w.memory.Hold()} }

// Release gives the memory back.
func (h *Held) Release() { h.memory.Shrink(0) }

// errMemory refuses a request for which there is no memory in time.
var errMemory = &wire.Error{
	Status: http.StatusServiceUnavailable, Retry: 1, Message: "the memory for requests is in use", Type: wire.TypeUnavailable, Code: "request_memory_full",
}

// Body waits until the request may hold a body of n bytes.
func (h *Held) Body(ctx context.Context, n int64) error {
	h.body = n
	return h.set(ctx, bodyHeld*n)
}

// Do waits for memory and for its turn to work on the body, and calls f.
func (h *Held) Do(ctx context.Context, f func() error) error {
	if err := h.set(ctx, bodyWork*h.body); err != nil {
		return err
	}
	defer h.memory.Shrink(bodyHeld * h.body)
	turns := h.work.large
	if h.body <= smallBody {
		turns = h.work.small
	}
	select {
	case turns <- struct{}{}:
		defer func() { <-turns }()
		if h.body > smallBody {
			defer h.work.tidy(h.body)()
		}
		return f()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// tidy lets no more garbage pile up than the bytes of a body, as far as [garbage] allows, until the function that it returns is called: dead copies of a large
// body take memory, too. It begins without those that reading the body has left.
func (w *Work) tidy(body int64) (done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tidying++; w.tidying == 1 {
		runtime.GC()
		most := garbage(liveHeap(), body)
		if w.usual = debug.SetGCPercent(most); w.usual < most { // less, or off: as the user has it
			debug.SetGCPercent(w.usual)
		}
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.tidying--; w.tidying == 0 {
			debug.SetGCPercent(w.usual)
		}
	}
}

// garbage returns the percentage of garbage for work on a body, which makes up to 7 times its bytes live besides those that are: at least 5, so that models of
// gigabytes are not looked through for each copy.
func garbage(live, body int64) int { return int(min(50, max(5, 100*body/(live+7*body)))) }

// liveHeap returns the bytes that the last collection of garbage found alive.
func liveHeap() int64 {
	s := []gauges.Sample{{Name: "/gc/heap/live:bytes"}}
	gauges.Read(s)
	return int64(s[0].Value.Uint64())
}

// set waits until the request may hold n bytes.
func (h *Held) set(ctx context.Context, n int64) error {
	if most := h.work.memory.Each(); n > most {
		return &wire.Error{
			Status: http.StatusRequestEntityTooLarge, Type: wire.TypeInvalid, Code: "memory_limit",
			Message: fmt.Sprintf("the body has %d bytes or more, for which %d bytes of memory are needed; the models leave %d to one request", h.body, n, most),
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, workWait, errMemory)
	defer cancel()
	return h.memory.Set(ctx, n)
}

// requestMemory returns the bytes that requests may hold: those that the limit, or the machine's memory, has beside the models.
func (p *Pool) requestMemory() int64 {
	return int64(max(p.memory-min(p.memory, p.models()), p.reserve()))
}

// reserve is the memory that models leave to requests.
func (p *Pool) reserve() uint64 {
	if p.config.Memory == 0 {
		return leastWork
	}
	return min(leastWork, p.config.Memory/8)
}
