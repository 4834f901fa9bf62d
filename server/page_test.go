package server_test

import (
	"strings"
	"testing"

	"grove"
	"grove/server"
)

// TestPage: the chat page is there for anyone at any time, and asks for the key and the models itself.
func TestPage(t *testing.T) {
	s := serve(t, server.Config{Keys: []string{"k"}})
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

// TestPropsMethods: /props lists the values of the field method for the page.
func TestPropsMethods(t *testing.T) {
	status, body, _ := serve(t, server.Config{}).do(t, "GET", "/props", "")
	if status != 200 {
		t.Fatal(status, body)
	}
	var names []string
	for _, m := range parse(t, body)["methods"].([]any) {
		names = append(names, m.(map[string]any)["name"].(string))
	}
	for i, m := range grove.Methods() {
		if i >= len(names) || names[i] != m.Name {
			t.Fatalf("%v; %s is missing", names, m.Name)
		}
	}
}
