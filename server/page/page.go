// Package page is the server's chat page: one HTML document, made of the files of this directory, that loads nothing else and sends
// requests to its server alone.
package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
)

//go:embed index.html page.css script libraries
var files embed.FS

// document is the page as it is served.
type document struct {
	html   []byte
	policy string
	tag    string
}

// served is made at the first request: a program that serves no page does without it.
var served = sync.OnceValue(func() document {
	html, err := assemble(files)
	if err != nil {
		panic(err) // the files are part of the program, and a test assembles them
	}
	return document{html, contentPolicy(string(html)), entityTag(html)}
})

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

// part is an element of index.html that stands for the content of a file.
var part = regexp.MustCompile(`<link rel="stylesheet" href="([^"]*)">|<script src="([^"]*)"></script>`)

// assemble returns index.html with the files that it names in the places of their elements. It returns an error for a file that is
// missing, and for one whose content would end its element or begin another.
func assemble(from fs.FS) (html []byte, err error) {
	index, err := fs.ReadFile(from, "index.html")
	if err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	html = part.ReplaceAllFunc(index, func(element []byte) []byte {
		name, tag := part.FindSubmatch(element)[1], "style"
		if len(name) == 0 {
			name, tag = part.FindSubmatch(element)[2], "script"
		}
		content, failed := fs.ReadFile(from, string(name))
		lower := bytes.ToLower(content)
		switch {
		case failed != nil:
			err = fmt.Errorf("page: %w", failed)
		case bytes.Contains(lower, []byte("</"+tag)), bytes.Contains(lower, []byte("<!--")) && bytes.Contains(lower, []byte("<script ")):
			err = fmt.Errorf("page: %s: the content ends the element %s or begins another; write it otherwise", name, tag)
		}
		return []byte("<" + tag + ">" + string(content) + "</" + tag + ">")
	})
	return html, err
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
