// Package traces reports requests and their answers as spans of OpenTelemetry, by its conventions for HTTP and for generative AI. No
// span has a text of a prompt or of an answer.
//
// A request is a span of the kind server; it goes on from the header traceparent. Each answer is a span below it, with one for its
// time in the queue, one for its prompt and one for its rounds. These are made when the answer has ended, from its statistics,
// so that nothing is done for a token.
package traces

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"grove/internal/options"
)

// scope names the source of the spans.
const scope = "grove/server"

// closeTime is how long the last spans may take to be sent.
const closeTime = 5 * time.Second

// Tracer makes spans. It is safe for concurrent use. A nil Tracer makes none and costs nothing.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	context  propagation.TraceContext
	log      *slog.Logger
}

// Open returns a tracer that sends spans to a collector by OTLP over HTTP, in the background; nil for an endpoint of "". An endpoint
// without a path has /v1/traces. The variables OTEL_EXPORTER_OTLP_*, OTEL_TRACES_SAMPLER, OTEL_BSP_*, OTEL_SERVICE_NAME and
// OTEL_RESOURCE_ATTRIBUTES count as OpenTelemetry has it. What cannot be sent is logged and dropped; of spans that wait, the sender
// keeps 2,048. Errors: an [*options.Error] for an endpoint that is none
// and for a variable OTEL_EXPORTER_OTLP_* that cannot be used.
func Open(endpoint string, log *slog.Logger) (*Tracer, error) {
	if endpoint == "" {
		return nil, nil
	}
	u, err := url.Parse(endpoint)
	if err == nil && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		err = errors.New("it must be an address such as http://localhost:4318")
	}
	if err != nil {
		return nil, &options.Error{Err: fmt.Errorf("traces: %.200q: %w", endpoint, err)}
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	exporter, err := newExporter(u.String())
	if err != nil {
		return nil, &options.Error{Err: fmt.Errorf("traces: %w", err)}
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("spans are lost", "error", err) }))
	return New(exporter, log), nil
}

// New returns a tracer that gives spans to an exporter.
func New(e sdk.SpanExporter, log *slog.Logger) *Tracer {
	own := resource.NewSchemaless(attribute.String("service.name", "grove"))
	all, err := resource.Merge(own, resource.Environment())
	if err != nil { // the variables are damaged, and resource.Environment has reported it
		all = own
	}
	p := sdk.NewTracerProvider(sdk.WithBatcher(e), sdk.WithResource(all))
	return &Tracer{provider: p, tracer: p.Tracer(scope), log: log}
}

// Close sends the spans that wait, within five seconds, and ends the tracer. What cannot be sent is logged.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.log.Warn("spans are lost", "error", err)
	}
}

// Request begins the span of a request that a mux has given to its route, and returns the request with it. The function ends the span, with
// the status of the answer and the code of an error, "" where there was none. It must be called once. Requests that compute nothing,
// which are all but POST, have no span.
func (t *Tracer) Request(r *http.Request) (traced *http.Request, end func(status int, code string)) {
	if t == nil || r.Method != http.MethodPost {
		return r, func(int, string) {}
	}
	route := strings.TrimPrefix(r.Pattern, "POST ")
	ctx := t.context.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := t.tracer.Start(ctx, r.Method+" "+route, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("http.request.method", r.Method), attribute.String("http.route", route), attribute.String("network.protocol.version", fmt.Sprintf("%d.%d", r.ProtoMajor, r.ProtoMinor)),
	))
	return r.WithContext(ctx), func(status int, code string) {
		span.SetAttributes(attribute.Int("http.response.status_code", status))
		if code != "" {
			span.SetAttributes(attribute.String("error.type", code))
		}
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, code)
		}
		span.End()
	}
}

// ID returns the id of the trace that the span of a context belongs to, where that is recorded; else "".
func ID(ctx context.Context) string {
	if s := trace.SpanContextFromContext(ctx); s.IsSampled() {
		return s.TraceID().String()
	}
	return ""
}

// Call notes that an answer calls a tool, on the span of a request.
func Call(ctx context.Context, id, name string) {
	if s := trace.SpanFromContext(ctx); s.IsRecording() {
		s.AddEvent("gen_ai.tool.call", trace.WithAttributes(
			attribute.String("gen_ai.tool.call.id", id), attribute.String("gen_ai.tool.name", name), attribute.String("gen_ai.tool.type", "function"),
		))
	}
}
