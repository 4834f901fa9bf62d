package traces

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/protobuf/encoding/protowire"
)

const (
	sendTime  = 10 * time.Second // of one request, where no variable says another
	firstWait = 5 * time.Second  // [exporter.wait]
	lastWait  = 30 * time.Second // the longest of these
	retryTime = time.Minute      // over which a batch is sent again
	maxReply  = 1 << 20          // bytes of a collector's answer
)

// exporter sends spans to a collector by OTLP over HTTP, in the form of protocol buffers.
type exporter struct {
	url     string
	client  *http.Client
	headers map[string]string
	gzip    bool
	wait    time.Duration // before a request is sent again; each further wait is half as long again
}

// setting returns a variable of the exporter of traces, or else that of all exporters.
func setting(name string) string {
	return strings.TrimSpace(cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), os.Getenv("OTEL_EXPORTER_OTLP_"+name)))
}

// newExporter returns an exporter to a URL, with the settings of the variables OTEL_EXPORTER_OTLP_*.
func newExporter(to string) (*exporter, error) {
	e := &exporter{url: to, headers: map[string]string{}, wait: firstWait}
	for pair := range strings.SplitSeq(setting("HEADERS"), ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if key = strings.TrimSpace(key); !ok || key == "" || err != nil {
			return nil, errors.New("OTEL_EXPORTER_OTLP_HEADERS: it must be KEY=VALUE,KEY=VALUE") // a value may be a secret
		}
		e.headers[key] = value
	}
	switch s := setting("COMPRESSION"); s {
	case "", "none":
	case "gzip":
		e.gzip = true
	default:
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_COMPRESSION: %.200q; it must be gzip or none", s)
	}
	wait := sendTime
	if s := setting("TIMEOUT"); s != "" {
		ms, err := strconv.Atoi(s)
		if err != nil || ms <= 0 {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_TIMEOUT: %.200q; it must be a number of milliseconds above 0", s)
		}
		wait = time.Duration(ms) * time.Millisecond
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	var err error
	if t.TLSClientConfig, err = certificates(); err != nil {
		return nil, err
	}
	e.client = &http.Client{Transport: t, Timeout: wait}
	return e, nil
}

// certificates returns the settings of TLS: whom the collector must be, and who this side is; nil: as the system has it.
func certificates() (*tls.Config, error) {
	roots, cert, key := setting("CERTIFICATE"), setting("CLIENT_CERTIFICATE"), setting("CLIENT_KEY")
	if roots == "" && cert == "" && key == "" {
		return nil, nil
	}
	c := new(tls.Config)
	if roots != "" {
		b, err := os.ReadFile(roots)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(b) {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %s has no certificate", roots)
		}
	}
	if cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE, OTEL_EXPORTER_OTLP_CLIENT_KEY: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// ExportSpans implements [sdk.SpanExporter]. Where the collector is busy or cannot be reached, it sends the spans again.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	body := encode(spans)
	if e.gzip {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write(body); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		body = b.Bytes()
	}
	end := time.Now().Add(retryTime)
	for wait := e.wait; ; wait = min(wait+wait/2, lastWait) {
		again, err := e.send(ctx, body)
		if err == nil || again < 0 {
			return err
		}
		pause := max(again, wait/2+rand.N(wait))
		if time.Now().Add(pause).After(end) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

// send sends a batch once. Where that fails, again is how long to wait at least before it is sent again; below 0: it must not be.
func (e *exporter) send(ctx context.Context, body []byte) (again time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return -1, err
	}
	r.Header.Set("User-Agent", "grove")
	for key, value := range e.headers {
		r.Header.Set(key, value)
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	if e.gzip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	a, err := e.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer a.Body.Close()
	reply, err := io.ReadAll(io.LimitReader(a.Body, maxReply))
	switch a.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(a.Header.Get("Retry-After")) // 0 where it is a date
		return max(0, time.Duration(seconds)*time.Second), fmt.Errorf("the collector answers %s", a.Status)
	}
	if a.StatusCode/100 != 2 {
		return -1, fmt.Errorf("the collector answers %s: %.200q", a.Status, reply)
	}
	if err == nil && a.Header.Get("Content-Type") == "application/x-protobuf" {
		err = partial(reply)
	}
	return -1, err
}

// partial returns an error where an ExportTraceServiceResponse says that spans were refused. An answer that is damaged says nothing:
// the spans have arrived.
func partial(reply []byte) error {
	var refused uint64
	var why string
	fields(reply, func(field protowire.Number, _ uint64, b []byte) {
		if field != 1 {
			return
		}
		fields(b, func(field protowire.Number, n uint64, b []byte) {
			switch field {
			case 1:
				refused = n
			case 2:
				why = string(b)
			}
		})
	})
	if refused == 0 && why == "" {
		return nil
	}
	return fmt.Errorf("the collector refuses %d spans: %.200q", refused, why)
}

// fields calls f with each field of a message that is a number or bytes, up to the first that is damaged.
func fields(b []byte, f func(field protowire.Number, n uint64, b []byte)) {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return
		}
		b = b[n:]
		var number uint64
		var inner []byte
		switch kind {
		case protowire.VarintType:
			number, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			inner, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(field, kind, b)
		}
		if n < 0 {
			return
		}
		f(field, number, inner)
		b = b[n:]
	}
}

// Shutdown implements [sdk.SpanExporter].
func (e *exporter) Shutdown(context.Context) error {
	e.client.CloseIdleConnections()
	return nil
}
