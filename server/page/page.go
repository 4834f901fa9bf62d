// Package page is the server's chat page: one file of HTML that asks for nothing but what the server answers.
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

// ServeHTTP answers with the page. Browsers are told to run and to style by what is written in it alone, and to
// connect to nobody but the server that it came from.
func ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache") // kept, and asked after by its tag
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

// hashes returns a source of a policy for each element of a name.
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
