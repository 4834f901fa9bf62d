package access

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"grove/server/wire"
)

// maxLines is how many lines a header may have: a line of six bytes takes some 150 where it is kept.
const maxLines = 256

// CheckHeader refuses a header of many lines.
func CheckHeader(h http.Header) error {
	n := 0
	for _, values := range h {
		n += len(values)
	}
	if n <= maxLines {
		return nil
	}
	return &wire.Error{
		Status: http.StatusRequestHeaderFieldsTooLarge, Type: wire.TypeInvalid, Code: "header_too_large",
		Message: fmt.Sprintf("the header has %d lines; send %d at most", n, maxLines),
	}
}

// BrowserHeaders are headers of requests that a page may be behind. A browser sends Origin with each POST.
var BrowserHeaders = []string{"Origin", "Referer", "Cookie", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest", "Sec-Fetch-User"}

// CheckForm refuses a body that is no form with parts, and one that a page may have sent without asking: where the server has keys, no page can show one so.
func (g *Gate) CheckForm(r *http.Request) error {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	at := slices.IndexFunc(BrowserHeaders, func(name string) bool { return len(r.Header.Values(name)) > 0 })
	switch {
	case err != nil || media != "multipart/form-data" || len(r.Header.Values("Content-Type")) > 1:
		return unsupportedBody("another content type than that of a form", "multipart/form-data with file and purpose")
	case at >= 0 && !g.keyed:
		return unsupportedBody("a form and the header "+BrowserHeaders[at]+" of a browser", "it without that header, or start the server with keys")
	}
	return nil
}

// unsupportedBody is the answer to a body of another type.
func unsupportedBody(given, want string) error {
	return &wire.Error{
		Status: http.StatusUnsupportedMediaType, Type: wire.TypeInvalid, Code: "unsupported_media_type", Message: "the request has " + given + "; send " + want,
	}
}

// CheckBody refuses a body that is not declared as JSON with 415: a page may send text and forms to any server without asking it first. A
// body without a type, and one with the type of forms, which curl -d sends, are taken where no header is one of a browser.
func CheckBody(r *http.Request) error {
	types := r.Header.Values("Content-Type")
	if r.Method != http.MethodPost && r.ContentLength == 0 || len(types) == 1 && isJSON(types[0]) {
		return nil
	}
	given := "no content type"
	if len(types) > 0 {
		given = fmt.Sprintf("the content type %q", wire.Clip(strings.Join(types, ", ")))
	}
	if len(types) == 0 || len(types) == 1 && isForm(types[0]) {
		at := slices.IndexFunc(BrowserHeaders, func(name string) bool { return len(r.Header.Values(name)) > 0 })
		if at < 0 {
			return nil
		}
		given += " and the header " + BrowserHeaders[at] + " of a browser"
	}
	return unsupportedBody(given, "Content-Type: application/json")
}

// isJSON reports whether a content type is that of JSON, or of a form of it, in UTF-8.
func isJSON(text string) bool {
	media, parameters, err := mime.ParseMediaType(text)
	charset, given := parameters["charset"]
	form, isForm := strings.CutSuffix(media, "+json")
	return err == nil && (media == "application/json" || isForm && strings.HasPrefix(form, "application/")) && (!given || strings.EqualFold(charset, "utf-8"))
}

// isForm reports whether a content type is that of a form whose fields are in one line.
func isForm(text string) bool {
	media, _, err := mime.ParseMediaType(text)
	return err == nil && media == "application/x-www-form-urlencoded"
}
