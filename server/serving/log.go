package serving

import (
	"context"
	"log/slog"
)

// requestID is the key of a request's id in its context.
type requestID struct{}

// WithRequestID returns the context of the request of an id. Lines that are logged with the context have the id.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestID{}, id)
}

// requestLog adds to each line the id of the request that it belongs to.
type requestLog struct{ slog.Handler }

// RequestLog returns a logger like l whose lines have the attribute id where they are logged with the context of a request.
func RequestLog(l *slog.Logger) *slog.Logger {
	if _, ok := l.Handler().(requestLog); ok {
		return l
	}
	return slog.New(requestLog{l.Handler()})
}

// Handle implements [slog.Handler].
func (h requestLog) Handle(ctx context.Context, r slog.Record) error {
	if id, ok := ctx.Value(requestID{}).(string); ok {
		r = r.Clone()
		r.AddAttrs(slog.String("id", id))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h requestLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return requestLog{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (h requestLog) WithGroup(name string) slog.Handler {
	return requestLog{h.Handler.WithGroup(name)}
}
