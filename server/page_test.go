package server_test

import (
	"strings"
	"testing"

	"grove"
	"grove/server"
)

// TestPage: the chat page is there for anyone at any time, and asks for the key and the models itself.
func TestPage(t *testing.T) {
	s := serve(t, server.Config{Access: keyed(t, "k")})
	status, body, header := s.do(t, "GET", "/", "")
	if status != 200 || !strings.HasPrefix(body, "<!doctype html>") || header.Get("Content-Security-Policy") == "" {
		t.Errorf("%d %.80q %v", status, body, header)
	}
	if status, _, header := s.do(t, "POST", "/", "{}"); status != 405 || header.Get("Allow") != "GET, OPTIONS" {
		t.Errorf("POST: %d %v", status, header)
	}
	if status, _, _ := s.do(t, "GET", "/index.html", ""); status != 404 {
		t.Errorf("another path: %d", status)
	}
}

// TestPropsMethods: /props lists the values of the field method for the page, and says which of them a request can use.
func TestPropsMethods(t *testing.T) {
	s := serve(t, server.Config{})
	status, body, _ := s.do(t, "GET", "/props", "")
	if status != 200 {
		t.Fatal(status, body)
	}
	listed := parse(t, body)["methods"].([]any)
	for i, m := range grove.Methods() {
		if i >= len(listed) || listed[i].(map[string]any)["name"] != m.Name {
			t.Fatalf("%v; %s is missing", listed, m.Name)
		}
		has := listed[i].(map[string]any)
		reason, refused := has["reason"].(string)
		if available := has["available"].(bool); available == refused || refused && !strings.Contains(reason, m.Needs) {
			t.Errorf("%s: available %v, reason %q", m.Name, available, reason)
		}
		status, body, _ := s.do(t, "POST", "/v1/completions", `{"prompt": "a", "max_tokens": 1, "method": "`+m.Name+`", "prediction": {"type": "content", "content": "b"}}`)
		if (status != 400) != has["available"].(bool) { // a method of another test answers 500
			t.Errorf("%s: available %v, and a request gets %d %s", m.Name, has["available"], status, body)
		}
	}
}
