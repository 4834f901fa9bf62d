package access

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/time/rate"

	"grove"
	"grove/internal/turns"
	"grove/server/wire"
)

// Caller is the owner of a key, with its rights and what is left of its limits, or who calls a server without keys. It is safe for
// concurrent use. nil has all rights and no limits.
type Caller struct {
	gate             *Gate
	name, folder     string
	priority         *int
	operator         bool
	sum              [sha256.Size]byte // of the key
	requests, tokens *limit            // nil: no bound
}

func newCaller(k Key, unnamed string) *Caller {
	c := &Caller{priority: k.Priority, operator: k.Operator || k.Name == "", name: k.Name, folder: folderOf(k), sum: sha256.Sum256([]byte(k.Secret)), requests: newLimit(k.Requests), tokens: newLimit(k.Tokens)}
	if c.name == "" {
		c.name = unnamed
	}
	return c
}

// Name returns the name of the key, for logs; "": the server has no keys.
func (c *Caller) Name() string {
	if c == nil {
		return ""
	}
	return c.name
}

// Folder returns the name of the folder of the key's sessions within that of all sessions; "": the server has no keys.
func (c *Caller) Folder() string {
	if c == nil {
		return ""
	}
	return c.folder
}

// Salt returns the salt of a request's cached prefixes, for the salt that the request names: where keys do not share, each has its own.
func (c *Caller) Salt(named string) string {
	if c.Folder() == "" || c.gate.share {
		return named
	}
	return c.folder + "\x00" + named
}

// Operates returns an error where the caller may not see what all keys do together.
func (c *Caller) Operates() error {
	if c.Folder() == "" || c.operator {
		return nil
	}
	return &wire.Error{
		Status: http.StatusForbidden, Type: wire.TypeInvalid, Code: "operator_only",
		Message: fmt.Sprintf("the key %s may not see what all keys do together; add operator to its line in the file of keys", c.name),
	}
}

// The range of priorities, the lowest first, as vLLM has it.
const (
	mostUrgent  = -grove.MaxPriority
	leastUrgent = -grove.MinPriority
)

// CheckPriority returns an [ErrConfig] for a priority that is out of range.
func CheckPriority(n int) error {
	if n < mostUrgent || n > leastUrgent {
		return fmt.Errorf("%w: --max-priority: %d; it must be from %d (the most urgent) to %d", ErrConfig, n, mostUrgent, leastUrgent)
	}
	return nil
}

// MayAsk returns an error where a request is more urgent than the caller's may be.
func (c *Caller) MayAsk(priority int) error {
	if c == nil {
		return nil
	}
	most := c.gate.priority
	if c.priority != nil {
		most = *c.priority
	}
	if priority >= most {
		return nil
	}
	return &wire.Error{
		Status: http.StatusForbidden, Type: wire.TypeInvalid, Param: "priority", Code: "priority_not_allowed",
		Message: fmt.Sprintf("priority is %d; your requests may ask for %d (the most urgent) to %d", priority, most, leastUrgent),
	}
}

// Take counts a request, or refuses it: the key has sent its requests of the minute, or used its tokens. It writes OpenAI's headers with
// the limits and what is left.
func (c *Caller) Take(h http.Header) error {
	if c == nil {
		return nil
	}
	now := time.Now()
	wait, what, l := c.take(now)
	c.requests.tell(h, "requests", now)
	c.tokens.tell(h, "tokens", now)
	if wait == 0 {
		return nil
	}
	seconds := int(math.Ceil(wait.Seconds()))
	return &wire.Error{
		Status: http.StatusTooManyRequests, Retry: seconds, Type: wire.TypeBusy, Code: "rate_limit_exceeded",
		Message: fmt.Sprintf("the key %s has used its %s of the minute (%s=%d/min); try again in %d s", c.name, what, what, l.most, seconds),
	}
}

// take counts a request, or returns how long to wait, and for which limit.
func (c *Caller) take(now time.Time) (wait time.Duration, what string, l *limit) {
	if c.tokens != nil {
		if wait = c.tokens.until(now, 1); wait > 0 {
			return wait, "tokens", c.tokens
		}
	}
	if c.requests != nil && !c.requests.AllowN(now, 1) {
		return max(c.requests.until(now, 1), 1), "requests", c.requests
	}
	return 0, "", nil
}

// Wait waits until the key may send a request, and counts it. Errors: the cause of ctx's end.
func (c *Caller) Wait(ctx context.Context) error {
	for c != nil {
		wait, _, _ := c.take(time.Now())
		if wait == 0 {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		if ctx.Err() != nil {
			break
		}
	}
	return context.Cause(ctx)
}

// Spend counts the tokens of a request's prompts and answers once they are known. They may be more than are left: then the key waits
// longer.
func (c *Caller) Spend(tokens int) {
	if c != nil {
		c.tokens.spend(time.Now(), tokens)
	}
}

type callerKey struct{}

// With returns a context that carries a caller, which takes turns with others for slots.
func With(ctx context.Context, c *Caller) context.Context {
	return context.WithValue(turns.With(ctx, c.Folder()), callerKey{}, c)
}

// CallerOf returns the caller that a context carries; nil: none.
func CallerOf(ctx context.Context) *Caller {
	c, _ := ctx.Value(callerKey{}).(*Caller)
	return c
}

type behindKey struct{}

// Behind returns a context for requests that the server sends itself for a caller, behind those of clients: they need no key and are the least urgent, and whoever sends them waits
// for the caller's limits (see [Caller.Wait]).
func Behind(ctx context.Context, c *Caller) context.Context {
	return context.WithValue(ctx, behindKey{}, c)
}

// BehindOf returns the caller of a context of [Behind]; nil: it is none.
func BehindOf(ctx context.Context) *Caller {
	c, _ := ctx.Value(behindKey{}).(*Caller)
	return c
}

// Urgency returns the priority of a request that names one, 0 where it names none: that of [Behind] is the least.
func Urgency(ctx context.Context, named int) int {
	if named == 0 && BehindOf(ctx) != nil {
		return leastUrgent
	}
	return named
}

// limit is a bound a minute: a bucket that holds a minute's share and fills evenly.
type limit struct {
	most int
	*rate.Limiter
}

// newLimit returns a full bucket; nil: no bound.
func newLimit(perMinute int) *limit {
	if perMinute == 0 {
		return nil
	}
	return &limit{perMinute, rate.NewLimiter(rate.Limit(float64(perMinute)/60), perMinute)}
}

func (l *limit) equals(o *limit) bool {
	return l == nil && o == nil || l != nil && o != nil && l.most == o.most
}

// until returns the time until the bucket holds n.
func (l *limit) until(now time.Time, n float64) time.Duration {
	return max(0, time.Duration((n-l.TokensAt(now))/float64(l.Limit())*float64(time.Second)))
}

// spend takes n out of the bucket, more than it holds too. A debt is a day's share at most.
func (l *limit) spend(now time.Time, n int) {
	const day = 24 * 60
	if l == nil {
		return
	}
	for range day {
		if n <= 0 || l.until(now, 0) > 24*time.Hour {
			return
		}
		l.ReserveN(now, min(n, l.most))
		n -= l.most
	}
}

// tell writes OpenAI's headers: the limit, what is left, and the time until all of it is back.
func (l *limit) tell(h http.Header, what string, now time.Time) {
	if l == nil {
		return
	}
	h.Set("X-Ratelimit-Limit-"+what, strconv.Itoa(l.most))
	h.Set("X-Ratelimit-Remaining-"+what, strconv.Itoa(max(0, int(l.TokensAt(now)))))
	h.Set("X-Ratelimit-Reset-"+what, l.until(now, float64(l.most)).Round(time.Millisecond).String())
}
