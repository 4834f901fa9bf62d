package driver

import (
	"context"
	"strings"

	"grove/server/serving"
	"grove/server/wire"
)

// Read decodes the body, when it is its turn.
func (x *Request) Read(into any) error {
	body, err := x.Receive()
	if err != nil {
		return err
	}
	return x.Work(func(context.Context) error { return x.decode(body, into) })
}

// Work calls f, which works on the body or on texts in it, when it is the request's turn and there is memory for it. f must not wait for
// anything else, and ends with its context.
func (x *Request) Work(f func(ctx context.Context) error) error {
	ctx, cancel := x.Server.Pool.Within(x.R.Context())
	defer cancel(nil)
	return x.held.Do(ctx, func() error { return serving.CauseOf(ctx, f(ctx)) })
}

// Detach returns the memory that the request holds for its body, for a request that goes on with it behind this one: see [Request.Adopt].
func (x *Request) Detach() *serving.Held {
	h := x.held
	x.held = x.Server.Pool.Work().Hold()
	return h
}

// Adopt takes over memory of another request.
func (x *Request) Adopt(h *serving.Held) {
	x.held.Release()
	x.held = h
}

// Receive reads the body, as there is memory for it.
func (x *Request) Receive() ([]byte, error) {
	ctx, cancel := x.Server.Pool.Within(x.R.Context())
	defer cancel(nil)
	return wire.ReadBody(x.W, x.R, x.Server.Body, func(n int64) error { return x.held.Body(ctx, n) })
}

// ignoredHeader names, in an answer, what the request asks for and the answer does without.
const ignoredHeader = "Grove-Ignored"

// maxIgnored bounds how many names of what is ignored are logged and sent: a body may have any number.
const maxIgnored = 16

// decode decodes the body. The fields of tables that it leaves out are logged at the level debug, unknown ones as a warning, and their names sent.
func (x *Request) decode(body []byte, into any) error {
	var known, unknown []string
	d := wire.Decoder{Strict: x.Server.Strict, Skipped: func(name string, isKnown bool) {
		if isKnown {
			known = append(known, name)
		} else {
			unknown = append(unknown, name)
		}
	}}
	err := d.Decode(body, into)
	if n := len(known); n > 0 {
		x.Server.Log.DebugContext(x.R.Context(), "fields that change no answer are left out", "number", n, "fields", known[:min(n, maxIgnored)])
	}
	if n := len(unknown); n > 0 && err == nil {
		x.Server.Log.WarnContext(x.R.Context(), "unknown fields are left out", "number", n, "fields", unknown[:min(n, maxIgnored)])
		for _, name := range unknown[:min(n, maxIgnored)] {
			x.Ignored(name)
		}
	}
	return err
}

// LeaveOut logs parts of the request that the answer does without, and names them in its header; a part is a place, and behind a blank what is
// there. A strict server refuses them.
func (x *Request) LeaveOut(parts []string) error {
	n := len(parts)
	if n == 0 {
		return nil
	}
	if x.Server.Strict {
		var refused []error
		for _, part := range parts {
			place, _, _ := strings.Cut(part, " ")
			e := wire.Unsupported(place, "the server does without it, and takes no such parts (--strict)")
			e.Message = part + strings.TrimPrefix(e.Message, place)
			refused = append(refused, e)
		}
		return wire.All(refused...)
	}
	named := parts[:min(n, maxIgnored)]
	x.Server.Log.InfoContext(x.R.Context(), "parts of the request are left out", "number", n, "parts", named)
	for _, part := range named {
		x.Ignored(part)
	}
	return nil
}

// Ignored adds a part of the request to those that a header of the answer names, because the answer does without it. Bytes that a header cannot
// have are replaced.
func (x *Request) Ignored(part string) {
	safe := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == ',' {
			return '_'
		}
		return r
	}, wire.Clip(part))
	if h := x.W.Header(); len(h.Values(ignoredHeader)) < maxIgnored {
		h.Add(ignoredHeader, safe)
	}
}
