package driver

import (
	"context"

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

// Receive reads the body, as there is memory for it.
func (x *Request) Receive() ([]byte, error) {
	ctx, cancel := x.Server.Pool.Within(x.R.Context())
	defer cancel(nil)
	return wire.ReadBody(x.W, x.R, x.Server.Body, func(n int64) error { return x.held.Body(ctx, n) })
}

// decode decodes the body.
func (x *Request) decode(body []byte, into any) error {
	const most = 16 // that are logged, of a body that may have any number
	var skipped []string
	d := wire.Decoder{Mode: x.Server.Fields, Skipped: func(name string) { skipped = append(skipped, name) }}
	err := d.Decode(body, into)
	if n := len(skipped); n > 0 {
		x.Server.Log.WarnContext(x.R.Context(), "unknown fields are left out", "number", n, "fields", skipped[:min(n, most)])
	}
	return err
}
