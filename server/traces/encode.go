package traces

import (
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/protobuf/encoding/protowire"
)

// The bits of a span's flags that say whether its parent is of another process; the lower eight are those of the trace.
const (
	hasRemote = 1 << 8
	isRemote  = 1 << 9
)

// message is a message of OTLP in the form of protocol buffers, which is written field by field: the generated code of these
// messages, with what it needs, has some megabytes.
type message []byte

func (m *message) bytes(field protowire.Number, b []byte) {
	*m = protowire.AppendBytes(protowire.AppendTag(*m, field, protowire.BytesType), b)
}

// text writes a text, unless it is empty.
func (m *message) text(field protowire.Number, s string) {
	if s != "" {
		*m = protowire.AppendString(protowire.AppendTag(*m, field, protowire.BytesType), s)
	}
}

// number writes a number, unless it is 0.
func (m *message) number(field protowire.Number, n uint64) {
	if n != 0 {
		*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.VarintType), n)
	}
}

func (m *message) fixed(field protowire.Number, n uint64) {
	*m = protowire.AppendFixed64(protowire.AppendTag(*m, field, protowire.Fixed64Type), n)
}

func (m *message) time(field protowire.Number, t time.Time) { m.fixed(field, uint64(t.UnixNano())) }

// in writes a message within the message.
func (m *message) in(field protowire.Number, write func(*message)) {
	var inner message
	write(&inner)
	m.bytes(field, inner)
}

// attributes writes each attribute as a KeyValue.
func (m *message) attributes(field protowire.Number, all []attribute.KeyValue) {
	for _, a := range all {
		m.in(field, func(m *message) {
			m.text(1, string(a.Key))
			m.in(2, func(m *message) { m.value(a.Value) })
		})
	}
}

// value writes an AnyValue: of the kinds that this package has, and of others their text.
func (m *message) value(v attribute.Value) {
	switch v.Type() {
	case attribute.BOOL:
		n := uint64(0)
		if v.AsBool() {
			n = 1
		}
		*m = protowire.AppendVarint(protowire.AppendTag(*m, 2, protowire.VarintType), n)
	case attribute.INT64:
		*m = protowire.AppendVarint(protowire.AppendTag(*m, 3, protowire.VarintType), uint64(v.AsInt64()))
	case attribute.FLOAT64:
		m.fixed(4, math.Float64bits(v.AsFloat64()))
	case attribute.STRINGSLICE:
		m.in(5, func(m *message) {
			for _, s := range v.AsStringSlice() {
				m.in(1, func(m *message) { m.bytes(1, []byte(s)) })
			}
		})
	default:
		m.bytes(1, []byte(v.String()))
	}
}

// encode returns the spans, which are of one provider, as an ExportTraceServiceRequest.
func encode(spans []sdk.ReadOnlySpan) []byte {
	type source struct {
		resource *resource.Resource
		scope    string
	}
	var order []source
	groups := map[source][]sdk.ReadOnlySpan{}
	for _, s := range spans {
		of := source{s.Resource(), s.InstrumentationScope().Name}
		if groups[of] == nil {
			order = append(order, of)
		}
		groups[of] = append(groups[of], s)
	}
	var request message
	for _, of := range order {
		request.in(1, func(m *message) {
			m.in(1, func(m *message) { m.attributes(1, of.resource.Attributes()) })
			m.in(2, func(m *message) {
				m.in(1, func(m *message) { m.text(1, of.scope) })
				for _, s := range groups[of] {
					m.in(2, func(m *message) { m.span(s) })
				}
			})
			m.text(3, of.resource.SchemaURL())
		})
	}
	return request
}

// span writes a Span.
func (m *message) span(s sdk.ReadOnlySpan) {
	own, parent := s.SpanContext(), s.Parent()
	trace, id := own.TraceID(), own.SpanID()
	m.bytes(1, trace[:])
	m.bytes(2, id[:])
	m.text(3, own.TraceState().String())
	if above := parent.SpanID(); above.IsValid() {
		m.bytes(4, above[:])
	}
	m.text(5, s.Name())
	m.number(6, uint64(s.SpanKind()))
	m.time(7, s.StartTime())
	m.time(8, s.EndTime())
	m.attributes(9, s.Attributes())
	m.number(10, uint64(s.DroppedAttributes()))
	for _, e := range s.Events() {
		m.in(11, func(m *message) {
			m.time(1, e.Time)
			m.text(2, e.Name)
			m.attributes(3, e.Attributes)
			m.number(4, uint64(e.DroppedAttributeCount))
		})
	}
	m.number(12, uint64(s.DroppedEvents()))
	m.in(15, func(m *message) {
		m.text(2, s.Status().Description)
		switch s.Status().Code {
		case codes.Ok:
			m.number(3, 1)
		case codes.Error:
			m.number(3, 2)
		}
	})
	flags := uint32(own.TraceFlags()) | hasRemote
	if parent.IsRemote() {
		flags |= isRemote
	}
	*m = protowire.AppendFixed32(protowire.AppendTag(*m, 16, protowire.Fixed32Type), flags)
}
