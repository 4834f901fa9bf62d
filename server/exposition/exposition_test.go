package exposition

import (
	"compress/gzip"
	"io"
	"math"
	"net/http/httptest"
	"regexp"
	"testing"
)

type fixed struct{}

func (fixed) Metrics(tell func(Metric)) {
	tell(Metric{"z_total", "All.", Counter, 3, nil})
	tell(Metric{"a:info", "A\\b\nc.", Gauge, 0.25, []Label{{"two", "x\"\\\n"}, {"one", ""}}})
}

func registry() *Registry {
	r := new(Registry)
	r.Register(fixed{})
	h := r.Histogram("h_seconds", "Times.", Exponential(0.5, 2))
	h.Observe(0.5, nil)
	h.Observe(0.75, []Label{{"trace_id", "ab"}})
	h.Observe(7, nil)
	return r
}

// TestText writes both formats.
func TestText(t *testing.T) {
	const plain = `# HELP a:info A\\b\nc.
# TYPE a:info gauge
a:info{one="",two="x\"\\\n"} 0.25
# HELP h_seconds Times.
# TYPE h_seconds histogram
h_seconds_bucket{le="0.5"} 1
h_seconds_bucket{le="1"} 2
h_seconds_bucket{le="+Inf"} 3
h_seconds_sum 8.25
h_seconds_count 3
# HELP z_total All.
# TYPE z_total counter
z_total 3
`
	const open = `# HELP a:info A\\b\nc.
# TYPE a:info gauge
a:info{one="",two="x\"\\\n"} 0.25
# HELP h_seconds Times.
# TYPE h_seconds histogram
h_seconds_bucket{le="0.5"} 1
h_seconds_bucket{le="1.0"} 2 # {trace_id="ab"} 0.75 TIME
h_seconds_bucket{le="+Inf"} 3
h_seconds_sum 8.25
h_seconds_count 3
# HELP z All.
# TYPE z counter
z_total 3.0
# EOF
`
	for _, tt := range []struct{ accept, kind, want string }{
		{"", "text/plain; version=0.0.4; charset=utf-8", plain},
		{"*/*", "text/plain; version=0.0.4; charset=utf-8", plain},
		{"application/openmetrics-text;version=9.0.0,text/plain;version=0.0.4", "text/plain; version=0.0.4; charset=utf-8", plain},
		{"application/openmetrics-text;q=0.2,text/plain;q=0.5", "text/plain; version=0.0.4; charset=utf-8", plain},
		{"application/openmetrics-text; version=1.0.0", "application/openmetrics-text; version=1.0.0; charset=utf-8", open},
		{"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.4,*/*;q=0.2", "application/openmetrics-text; version=1.0.0; charset=utf-8", open},
	} {
		w, q := httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil)
		q.Header.Set("Accept", tt.accept)
		registry().ServeHTTP(w, q)
		got := regexp.MustCompile(`\d{10}\.\d{6}`).ReplaceAllString(w.Body.String(), "TIME")
		if got != tt.want || w.Header().Get("Content-Type") != tt.kind {
			t.Errorf("%q: %s\n%s; want %s\n%s", tt.accept, w.Header().Get("Content-Type"), got, tt.kind, tt.want)
		}
	}
}

// TestGzip compresses where the request accepts it.
func TestGzip(t *testing.T) {
	for accept, want := range map[string]string{"gzip": "gzip", "br, gzip;q=0.5": "gzip", "gzip;q=0": "", "br": "", "": ""} {
		w, q := httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil)
		q.Header.Set("Accept-Encoding", accept)
		registry().ServeHTTP(w, q)
		if got := w.Header().Get("Content-Encoding"); got != want {
			t.Errorf("%q gives %q; want %q", accept, got, want)
		}
		var body io.Reader = w.Body
		if want != "" {
			var err error
			if body, err = gzip.NewReader(body); err != nil {
				t.Fatal(err)
			}
		}
		if b, err := io.ReadAll(body); err != nil || string(b) != string(registry().text(false)) {
			t.Errorf("%q: %v, %q", accept, err, b)
		}
	}
}

// TestNumber writes the numbers that are none.
func TestNumber(t *testing.T) {
	for _, tt := range []struct {
		v    float64
		want string
	}{{math.Inf(1), "+Inf"}, {math.Inf(-1), "-Inf"}, {math.NaN(), "NaN"}, {1e21, "1e+21"}, {2, "2.0"}} {
		if got := number(tt.v, true); got != tt.want {
			t.Errorf("%v is %s; want %s", tt.v, got, tt.want)
		}
	}
}
