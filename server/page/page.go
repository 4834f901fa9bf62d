// Package page is the server's chat page: one HTML file that loads nothing else and sends requests to its server alone.
package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"
	"time"
)

//go:embed index.html
var index []byte

var (
	policy = contentPolicy(string(index))
	etag   = entityTag(index)
)

// ServeHTTP answers with the page. Its policy allows browsers the scripts and styles in the page, and connections to the page's own server,
// and nothing else.
func ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache") // browsers keep the page and ask whether its tag has changed
	h.Set("ETag", etag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(index))
}

// contentPolicy allows the scripts and styles inside a page by their hashes.
func contentPolicy(html string) string {
	return strings.Join([]string{
		"default-src 'none'",
		"script-src" + hashes(html, "script"),
		"style-src" + hashes(html, "style"),
		"connect-src 'self'",
		"img-src data:", // its icon
		"base-uri 'none'",
		"form-action 'none'",
		"frame-ancestors 'none'",
		"require-trusted-types-for 'script'", // no text becomes HTML
		"trusted-types 'none'",
	}, "; ")
}

// hashes returns the sources of a policy that stand for the elements of a name.
func hashes(html, element string) string {
	var sources strings.Builder
	for {
		_, rest, found := strings.Cut(html, "<"+element+">")
		if !found {
			return sources.String()
		}
		body, after, _ := strings.Cut(rest, "</"+element+">")
		sum := sha256.Sum256([]byte(body))
		sources.WriteString(" 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'")
		html = after
	}
}

func entityTag(content []byte) string {
	sum := sha256.Sum256(content)
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}
