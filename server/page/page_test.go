package page

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func get(t *testing.T, method, tag string) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "/", nil)
	if tag != "" {
		r.Header.Set("If-None-Match", tag)
	}
	w := httptest.NewRecorder()
	ServeHTTP(w, r)
	return w.Result()
}

// TestServeHTTP holds the headers, and that a browser that has the page is not sent it again.
func TestServeHTTP(t *testing.T) {
	answer := get(t, "GET", "")
	h := answer.Header
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache",
		"Referrer-Policy": "no-referrer",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	body := new(bytes.Buffer)
	if _, err := body.ReadFrom(answer.Body); err != nil || answer.StatusCode != 200 || !bytes.Equal(body.Bytes(), index) {
		t.Errorf("status %d, %d bytes, %v", answer.StatusCode, body.Len(), err)
	}
	if got := get(t, "GET", h.Get("ETag")); got.StatusCode != http.StatusNotModified {
		t.Errorf("with its tag: %d", got.StatusCode)
	}
	if got := get(t, "GET", `"another"`); got.StatusCode != http.StatusOK {
		t.Errorf("with another tag: %d", got.StatusCode)
	}
	if got := get(t, "HEAD", ""); got.StatusCode != http.StatusOK || got.ContentLength != int64(len(index)) {
		t.Errorf("HEAD: %d, %d bytes", got.StatusCode, got.ContentLength)
	}
}

// TestPolicy: the policy names one script and one style, and nothing that would let others in.
func TestPolicy(t *testing.T) {
	got := get(t, "GET", "").Header.Get("Content-Security-Policy")
	for _, element := range []string{"script", "style"} {
		if !regexp.MustCompile(`(^|; )` + element + `-src 'sha256-[A-Za-z0-9+/]{43}='(;|$)`).MatchString(got) {
			t.Errorf("not one hash of a %s: %s", element, got)
		}
	}
	for _, lax := range []string{"unsafe", "*", "http"} {
		if strings.Contains(got, lax) {
			t.Errorf("%s is in %s", lax, got)
		}
	}
	two := contentPolicy("<script>a</script><b><script></script>")
	want := "script-src 'sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs=' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=';"
	if !strings.Contains(two, want) {
		t.Errorf("%s, want %s", two, want)
	}
}

// TestIndex: the page fits its bounds, loads nothing, and has no script or style but those that the policy names.
func TestIndex(t *testing.T) {
	text := string(index)
	if n := strings.Count(text, "\n"); n >= 500 {
		t.Errorf("%d lines", n)
	}
	for _, bad := range []string{
		`https?://[^w]`, `<script[^>]`, `<style[^>]`, `(?i)<[a-z][^>]*\s(style|on[a-z]+)=`, `<(img|iframe|object|embed)`,
		`\ssrc=`, `@import`, `url\(`, `innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|Function\(`,
	} {
		if found := regexp.MustCompile(bad).FindString(text); found != "" {
			t.Errorf("the page has %q", found)
		}
	}
	if found := regexp.MustCompile(`href="[^#d][^"]*"`).FindString(text); found != "" {
		t.Errorf("the page links to %q", found)
	}
}
