package driver

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"grove/server/wire"
)

// TestRetryAfter: each answer that asks to try again says when.
func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		status, retry int
		want          string
	}{{429, 0, "1"}, {429, 7, "7"}, {503, 0, "1"}, {503, 5, "5"}, {409, 2, "2"}, {400, 0, ""}, {500, 0, ""}} {
		w := httptest.NewRecorder()
		x := &Request{W: w, R: httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)}
		x.refuse(&wire.Error{Status: c.status, Retry: c.retry, Message: "m", Type: wire.TypeBusy})
		if got := w.Header().Get("Retry-After"); got != c.want || w.Code != c.status {
			t.Errorf("%d after %d: %d, Retry-After %q, want %q", c.status, c.retry, w.Code, got, c.want)
		}
	}
}
