//go:build unix

package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// TestServeLogsJSON: with --log-format json each line of standard error is an object, from the first to the last; a request's line has
// the id that its client gave it.
func TestServeLogsJSON(t *testing.T) {
	s := startServer(t, "--log-format", "json", "--log-level", "info")
	s.url = strings.TrimSuffix(s.url, `"}`)
	s.ready(t)
	r, err := http.NewRequest("GET", s.url+"/v1/models", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Request-Id", "mine")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if got := answer.Header.Get("X-Request-Id"); got != "mine" {
		t.Errorf("the answer has the id %q", got)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			break
		}
		var fields struct{ Time, Level, Msg, ID, Path string }
		if err := json.Unmarshal([]byte(line), &fields); err != nil || fields.Time == "" || fields.Level == "" {
			t.Errorf("%q: %v", line, err)
		}
		found[fields.Msg] = true
		found[fields.Path+" "+fields.ID] = true
	}
	for _, want := range []string{"ready", "request", "/v1/models mine", "draining"} {
		if !found[want] {
			t.Errorf("the log has no line of %q: %v", want, found)
		}
	}
}
