package traces

import (
	"compress/gzip"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	spans "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// TestExport sends spans with each kind of attribute to a collector that is busy at first, and reads them with the code that is
// generated from OpenTelemetry's definitions.
func TestExport(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, other=c")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "zone=north")
	var got collector.ExportTraceServiceRequest
	requests := 0
	c := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests++; requests == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		for key, want := range map[string]string{"Api-Key": "a b", "Other": "c", "Content-Type": "application/x-protobuf"} {
			if v := r.Header.Get(key); v != want {
				t.Errorf("%s is %q; want %q", key, v, want)
			}
		}
		body, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		b, err := io.ReadAll(body)
		if err == nil {
			err = proto.Unmarshal(b, &got)
		}
		if err != nil {
			t.Error(err)
		}
	}))
	defer c.Close()
	e, err := newExporter(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	e.wait = time.Millisecond
	tracer := New(e, slog.New(slog.NewTextHandler(t.Output(), nil)))
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1, 2}, SpanID: trace.SpanID{3}, TraceFlags: trace.FlagsSampled, Remote: true})
	at := time.Unix(1, 5)
	ctx, span := tracer.tracer.Start(trace.ContextWithSpanContext(t.Context(), parent), "outer", trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(at),
		trace.WithAttributes(attribute.String("s", "x"), attribute.String("empty", ""), attribute.Int("i", -3), attribute.Int("zero", 0), attribute.Float64("f", 0.5), attribute.Bool("no", false),
			attribute.Bool("yes", true), attribute.StringSlice("l", []string{"a", ""}), attribute.IntSlice("others", []int{1, 2})))
	_, inner := tracer.tracer.Start(ctx, "inner")
	inner.AddEvent("event", trace.WithTimestamp(at), trace.WithAttributes(attribute.Int("n", 1)))
	inner.SetStatus(codes.Error, "broken")
	inner.End()
	span.SetStatus(codes.Ok, "")
	span.End(trace.WithTimestamp(at.Add(time.Second)))
	tracer.Close()
	if requests != 2 || len(got.ResourceSpans) != 1 || len(got.ResourceSpans[0].ScopeSpans) != 1 || len(got.ResourceSpans[0].ScopeSpans[0].Spans) != 2 {
		t.Fatalf("%d requests, the last with %v", requests, &got)
	}
	text := func(s string) *common.AnyValue {
		return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: s}}
	}
	number := func(n int64) *common.AnyValue {
		return &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: n}}
	}
	truth := func(b bool) *common.AnyValue {
		return &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: b}}
	}
	of := got.ResourceSpans[0].ScopeSpans[0]
	in, out := of.Spans[0], of.Spans[1]
	want := &spans.Span{
		TraceId: append([]byte{1, 2}, make([]byte, 14)...), SpanId: in.ParentSpanId, ParentSpanId: []byte{3, 0, 0, 0, 0, 0, 0, 0}, Flags: 0x301,
		Name: "outer", Kind: spans.Span_SPAN_KIND_SERVER, StartTimeUnixNano: 1e9 + 5, EndTimeUnixNano: 2e9 + 5, Status: &spans.Status{Code: spans.Status_STATUS_CODE_OK},
		Attributes: []*common.KeyValue{
			{Key: "s", Value: text("x")}, {Key: "empty", Value: text("")}, {Key: "i", Value: number(-3)}, {Key: "zero", Value: number(0)},
			{Key: "f", Value: &common.AnyValue{Value: &common.AnyValue_DoubleValue{DoubleValue: 0.5}}}, {Key: "no", Value: truth(false)}, {Key: "yes", Value: truth(true)},
			{Key: "l", Value: &common.AnyValue{Value: &common.AnyValue_ArrayValue{ArrayValue: &common.ArrayValue{Values: []*common.AnyValue{text("a"), text("")}}}}},
			{Key: "others", Value: text("[1,2]")},
		},
	}
	if !proto.Equal(out, want) {
		t.Errorf("the outer span is\n%v; want\n%v", out, want)
	}
	want = &spans.Span{
		TraceId: out.TraceId, SpanId: in.SpanId, ParentSpanId: out.SpanId, Flags: 0x101, Name: "inner", Kind: spans.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: in.StartTimeUnixNano, EndTimeUnixNano: in.EndTimeUnixNano, Status: &spans.Status{Code: spans.Status_STATUS_CODE_ERROR, Message: "broken"},
		Events: []*spans.Span_Event{{TimeUnixNano: 1e9 + 5, Name: "event", Attributes: []*common.KeyValue{{Key: "n", Value: number(1)}}}},
	}
	if len(in.SpanId) != 8 || !proto.Equal(in, want) {
		t.Errorf("the inner span is\n%v; want\n%v", in, want)
	}
	about := map[string]string{}
	for _, a := range got.ResourceSpans[0].Resource.Attributes {
		about[a.Key] = a.Value.GetStringValue()
	}
	if about["service.name"] != "grove" || about["zone"] != "north" || of.Scope.Name != scope {
		t.Errorf("the spans are of %v, %v", about, of.Scope)
	}
}

// TestExportRefused: an answer that spans are refused is an error, and they are not sent again.
func TestExportRefused(t *testing.T) {
	reply, err := proto.Marshal(&collector.ExportTraceServiceResponse{PartialSuccess: &collector.ExportTracePartialSuccess{RejectedSpans: 2, ErrorMessage: "too old"}})
	if err != nil {
		t.Fatal(err)
	}
	status := http.StatusOK
	c := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-protobuf")
		w.WriteHeader(status)
		w.Write(reply)
	}))
	defer c.Close()
	e, err := newExporter(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`the collector refuses 2 spans: "too old"`, `the collector answers 400 Bad Request: "no"`} {
		if again, err := e.send(t.Context(), nil); again >= 0 || err == nil || err.Error() != want {
			t.Errorf("the error is %v, again after %v; want %s", err, again, want)
		}
		status, reply = http.StatusBadRequest, []byte("no")
	}
	status, reply = http.StatusOK, []byte{0x0a, 0xff}
	if _, err := e.send(t.Context(), nil); err != nil {
		t.Errorf("an answer that is damaged: %v", err)
	}
}

// TestExportSettings refuses variables that cannot be used, and names them.
func TestExportSettings(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"HEADERS": "secret", "COMPRESSION": "zip", "TIMEOUT": "1s", "CERTIFICATE": empty, "CLIENT_KEY": empty}
	got := map[string]bool{}
	for name, value := range all {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_"+name, value)
			_, err := newExporter("http://localhost:4318/v1/traces")
			got[name] = err != nil && strings.Contains(err.Error(), "OTEL_EXPORTER_OTLP_"+name) && !strings.Contains(err.Error(), "secret")
		})
	}
	if want := map[string]bool{"HEADERS": true, "COMPRESSION": true, "TIMEOUT": true, "CERTIFICATE": true, "CLIENT_KEY": true}; !cmp.Equal(got, want) {
		t.Errorf("refused: %v; want %v", got, want)
	}
}
