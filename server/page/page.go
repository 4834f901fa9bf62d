// Package page is the server's chat page: one HTML document, made of the files of this directory, that loads nothing else and sends
// requests to its server alone. The program holds it compressed, in page.html.gz, which the package's test writes with GROVE_UPDATE=1.
package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

//go:embed page.html.gz
var packed []byte

// document is the page as it is served.
type document struct {
	html   []byte
	policy string
	tag    string
}

// served is made at the first request: a program that serves no page does without it.
var served = sync.OnceValue(func() document {
	html, err := unpack(packed)
	if err != nil {
		panic(err) // the file is part of the program, and a test compares it with what it is made of
	}
	return document{html, contentPolicy(string(html)), entityTag(html)}
})

func unpack(file []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// ServeHTTP answers with the page. Its policy allows browsers the scripts and styles in the page, and connections to the page's own server,
// and nothing else. ServeHTTP is safe for concurrent use.
func ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d := served()
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", d.policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache") // browsers keep the page and ask whether its tag has changed
	h.Set("ETag", d.tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(d.html))
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
