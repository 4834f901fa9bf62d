package server_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/gopher"
	"grove/server"
	"grove/server/serving"
)

// TestModelsList: the list says what a model can do, what it takes and what it computes, for clients of each API.
func TestModelsList(t *testing.T) {
	at := func(name string) server.Entry {
		s := source(name, gopher.Model(), options)
		s.Path = gopher.Name
		return s
	}
	s := serveModels(t, server.Config{Config: serving.Config{OnDemand: true}}, at("a"), at("b"), source("c", edited(t, gopher.Model(), template), options))
	s.post(t, "/models/load", `{"model":"a"}`)
	s.post(t, "/models/load", `{"model":"c"}`)
	for _, path := range []string{"/models", "/v1/models"} {
		_, text, _ := s.do(t, "GET", path, "")
		o := parse(t, text)
		if m, _ := o.at("data/0/memory_bytes").(float64); m < 1<<20 || o.at("data/1/memory_bytes") != nil {
			t.Errorf("memory: %s", text)
		}
		for at, want := range map[string]any{
			"data/0/requests": map[string]any{"running": 0.0, "queued": 0.0}, "data/0/is_sleeping": false, "data/1/is_sleeping": true, "data/0/status/value": "loaded", "data/1/status/value": "unloaded",
			"data/0/capabilities": []any{"completion"}, "data/1/capabilities": []any{"completion"}, "data/2/capabilities": []any{"completion", "chat", "tools"},
			"models/1/name": "b", "models/1/model": "b", "models/1/capabilities": []any{"completion"}, "models/1/type": "model",
		} {
			if d := cmp.Diff(want, o.at(at)); d != "" {
				t.Errorf("%s: %s: %s", path, at, d)
			}
		}
	}
	for path, want := range map[string]any{"/props": false, "/props?model=a&autoload=false": false, "/props?model=b&autoload=false": true} {
		if status, text, _ := s.do(t, "GET", path, ""); status != 200 || parse(t, text)["is_sleeping"] != want {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if s.status(t, "b") != "unloaded" {
		t.Error("asking for the properties opened a model")
	}
}

// TestLoadUnload: models are opened and closed by request, and one that answers is not closed.
func TestLoadUnload(t *testing.T) {
	s := serveModels(t, server.Config{Config: serving.Config{OnDemand: true}}, source("a", served(), options), source("b", served(), options))
	for _, step := range []struct{ path, want string }{
		{"/models/unload", "unloaded"}, {"/models/load", "loaded"}, {"/models/load", "loaded"}, {"/models/unload", "unloaded"}, {"/models/unload", "unloaded"}, {"/models/load", "loaded"},
	} {
		if o := s.post(t, step.path, `{"model":"b"}`); o["success"] != true || s.status(t, "b") != step.want || s.status(t, "a") != "unloaded" {
			t.Errorf("%s: %v, b is %v", step.path, o, s.status(t, "b"))
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/v1/completions", strings.NewReader(`{"model":"b","prompt":"a","stream":true,"max_tokens":254,"ignore_eos":true,"n":20}`))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := answer.Body.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	_, text, _ := s.do(t, "GET", "/models", "")
	if o := parse(t, text); o.at("data/1/requests/running") == 0.0 {
		t.Errorf("nothing runs: %s", text)
	}
	status, text, header := s.do(t, "POST", "/models/unload", `{"model":"b"}`)
	if _, _, param, code := wantError(t, text); status != 409 || code != "model_busy" || param != "model" || header.Get("Retry-After") == "" {
		t.Errorf("a model that answers: %d %s", status, text)
	}
	answer.Body.Close()
	eventually(t, "a model stays open", func() bool {
		status, _, _ := s.do(t, "POST", "/models/unload", `{"model":"b"}`)
		return status == 200
	})
	if _, text, _ := s.do(t, "GET", "/metrics", ""); strings.Contains(text, "grove_steps_total 0\n") {
		t.Error("the steps of a model that was closed are not counted")
	}
	for _, tt := range []struct {
		path, body string
		status     int
		param      string
	}{
		{"/models/load", `{}`, 400, "model"}, {"/models/load", `{"model":""}`, 400, "model"}, {"/models/load", `{"model":"none"}`, 404, "model"}, {"/models/load", `{"model":"a","extra_args":["-c","1"]}`, 400, "extra_args"},
		{"/models/load", `{"model":["a"]}`, 400, "model"}, {"/models/unload", `{"model":"none"}`, 404, "model"}, {"/models/unload", `{}`, 400, "model"}, {"/models/unload", `[]`, 400, ""},
	} {
		status, text, _ := s.do(t, "POST", tt.path, tt.body)
		if _, _, param, _ := wantError(t, text); status != tt.status || param != tt.param {
			t.Errorf("%s %s: %d %s", tt.path, tt.body, status, text)
		}
	}
}

// TestUnloadWhileLoading: a model that is being opened is not closed.
func TestUnloadWhileLoading(t *testing.T) {
	slow := source("slow", served(), options)
	open, opening := slow.Open, make(chan struct{})
	slow.Open = func(ctx context.Context, memory uint64) (*grove.Model, error) {
		close(opening)
		time.Sleep(200 * time.Millisecond)
		return open(ctx, memory)
	}
	s := serveModels(t, server.Config{Config: serving.Config{OnDemand: true}}, slow)
	done := make(chan object)
	go func() { done <- s.post(t, "/models/load", `{"model":"slow"}`) }()
	<-opening
	if status, text, _ := s.do(t, "POST", "/models/unload", `{"model":"slow"}`); status != 409 || !strings.Contains(text, "is being opened") {
		t.Errorf("%d %s", status, text)
	}
	if o := <-done; o["success"] != true || s.status(t, "slow") != "loaded" {
		t.Errorf("%v", o)
	}
}
