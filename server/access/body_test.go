package access_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"grove/server/access"
	"grove/server/wire"
)

// TestCheckBody: a body is declared as JSON. What a page may send without asking is refused wherever a page may be behind a request.
func TestCheckBody(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	for _, tt := range []struct {
		name    string
		types   []string
		headers []string
		wants   string // of the message; "": the request is taken
	}{
		{"JSON", []string{"application/json"}, nil, ""},
		{"JSON of a page", []string{"application/json"}, []string{"Origin", "http://localhost", "Sec-Fetch-Site", "same-origin"}, ""},
		{"UTF-8", []string{"application/json; charset=utf-8"}, nil, ""},
		{"UTF-8 in another case", []string{`Application/JSON ;charset="UTF-8"`}, nil, ""},
		{"a form of JSON", []string{"application/vnd.api+json"}, nil, ""},
		{"another charset", []string{"application/json; charset=utf-16"}, nil, "charset=utf-16"},
		{"another charset first", []string{"application/json; charset=utf-16; charset=utf-8"}, nil, "utf-16"},
		{"text that ends like JSON", []string{"text/plain+json"}, nil, "text/plain+json"},
		{"text with JSON behind", []string{"text/plain; application/json"}, nil, "text/plain"},
		{"text", []string{"text/plain"}, nil, "send Content-Type: application/json"},
		{"text of a page", []string{"text/plain;charset=UTF-8"}, []string{"Origin", "http://localhost"}, "text/plain"},
		{"parts", []string{"multipart/form-data; boundary=x"}, nil, "multipart/form-data"},
		{"bytes", []string{"application/octet-stream"}, nil, "octet-stream"},
		{"no type of its own", []string{""}, nil, `the content type ""`},
		{"no sense", []string{"application/json/x"}, nil, "application/json/x"},
		{"two types", []string{"application/json", "text/plain"}, nil, "application/json, text/plain"},
		{"JSON twice", []string{"application/json", "application/json"}, nil, "application/json, application/json"},
		{"two types in one", []string{"application/json, text/plain"}, nil, "application/json, text/plain"},
		{"a long one", []string{strings.Repeat("a", 1<<16)}, nil, "aaa"},
		{"curl -d", []string{form}, []string{"User-Agent", "curl/8.5.0", "Accept", "*/*"}, ""},
		{"a form of a page", []string{form}, []string{"Origin", "http://localhost"}, "the header Origin of a browser"},
		{"a form of a sandboxed page", []string{form + "; charset=utf-8"}, []string{"Origin", "null"}, "Origin"},
		{"a form of an old browser", []string{form}, []string{"Referer", "http://evil.example/"}, "Referer"},
		{"a form with cookies", []string{form}, []string{"Cookie", "a=b"}, "Cookie"},
		{"a form without an origin", []string{form}, []string{"Sec-Fetch-Mode", "no-cors"}, "Sec-Fetch-Mode"},
		{"a form of the page itself", []string{form}, []string{"Sec-Fetch-Site", "same-origin"}, "Sec-Fetch-Site"},
		{"a program without a type", nil, nil, ""},
		{"a page without a type", nil, []string{"Origin", ""}, "no content type and the header Origin"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := request("localhost", tt.headers...)
			r.Method, r.Header["Content-Type"] = http.MethodPost, tt.types
			if tt.types == nil {
				r.Header.Del("Content-Type")
			}
			err := access.CheckBody(r)
			var e *wire.Error
			switch {
			case tt.wants == "" && err != nil:
				t.Error(err)
			case tt.wants != "" && (!errors.As(err, &e) || e.Status != http.StatusUnsupportedMediaType || e.Code != "unsupported_media_type" || !strings.Contains(e.Message, tt.wants) || len(e.Message) > 250):
				t.Errorf("%#v, want %q", err, tt.wants)
			}
		})
	}
	for _, method := range []string{"GET", "DELETE"} {
		if err := access.CheckBody(httptest.NewRequest(method, "/", nil)); err != nil {
			t.Errorf("%s without a body: %v", method, err)
		}
	}
	r := httptest.NewRequest("DELETE", "/", strings.NewReader("{}"))
	r.Header.Set("Content-Type", "text/plain")
	if access.CheckBody(r) == nil {
		t.Error("a body of DELETE is not checked")
	}
}
