package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"grove/server"
	"grove/server/batches"
)

// TestMessageBatches: a batch of messages is answered as its requests are alone, and its routes speak as Anthropic's API does.
func TestMessageBatches(t *testing.T) {
	kept, err := batches.Open(batches.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s := serveModels(t, server.Config{Batches: kept}, source(modelName, edited(t, served(), template), options))
	const params = `{"model":"gopher","max_tokens":5,"temperature":0,"messages":[{"role":"user","content":"a"}]}`
	alone := s.post(t, "/v1/messages", params)
	made := s.post(t, "/v1/messages/batches", `{"requests":[{"custom_id":"one","params":`+params+`},{"custom_id":"two","params":{"max_tokens":0}}]}`)
	id, _ := made["id"].(string)
	if !strings.HasPrefix(id, "msgbatch_") || made["type"] != "message_batch" || made.at("request_counts/processing") != 2.0 {
		t.Fatalf("%v", made)
	}
	get := func(path string) (int, string) {
		status, text, _ := s.do(t, "GET", "/v1/messages/batches"+path, "")
		return status, text
	}
	var ended object
	for end := time.Now().Add(30 * time.Second); ended["processing_status"] != "ended"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it has not ended: %v", ended)
		}
		_, text := get("/" + id)
		ended = parse(t, text)
	}
	for path, want := range map[string]any{"request_counts/succeeded": 1.0, "request_counts/errored": 1.0, "request_counts/processing": 0.0, "results_url": "/v1/messages/batches/" + id + "/results"} {
		if got := ended.at(path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	_, text := get("/" + id + "/results")
	results := map[string]object{}
	for line := range strings.Lines(text) {
		var r object
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		results[fmt.Sprint(r["custom_id"])] = r
	}
	if one := results["one"]; one.at("result/type") != "succeeded" || one.at("result/message/content/0/text") != alone.at("content/0/text") {
		t.Errorf("%v, alone %v", one, alone)
	}
	if two := results["two"]; two.at("result/type") != "errored" || two.at("result/error/error/type") != "invalid_request_error" {
		t.Errorf("%v", two)
	}
	if _, text := get("?limit=1"); parse(t, text).at("data/0/id") != id {
		t.Errorf("the list: %s", text)
	}
	if _, text, _ := s.do(t, "GET", "/v1/batches", ""); strings.Contains(text, id) {
		t.Errorf("OpenAI's list has it: %s", text)
	}
	for _, c := range []struct{ body, want string }{
		{`{"requests":[]}`, "there is none"}, {`{"requests":[{"params":{}}]}`, "custom_id is missing"}, {`{"requests":[{"custom_id":"a","params":[]}]}`, "must be an object"},
		{`{"requests":[{"custom_id":"a","params":{}},{"custom_id":"a","params":{}}]}`, "twice"},
	} {
		if status, text, _ := s.do(t, "POST", "/v1/messages/batches", c.body); status != 400 || !strings.Contains(text, c.want) || parse(t, text)["type"] != "error" {
			t.Errorf("%s: %d %s", c.body, status, text)
		}
	}
	if status, text := get("/msgbatch_x"); status != 404 || parse(t, text).at("error/type") != "not_found_error" {
		t.Errorf("%d %s", status, text)
	}
	if status, text, _ := s.do(t, "DELETE", "/v1/messages/batches/"+id, ""); status != 200 || parse(t, text)["type"] != "message_batch_deleted" {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := get("/" + id); status != 404 {
		t.Errorf("behind its end: %d", status)
	}
}

// TestCancelledMessages: what was not answered when a batch was cancelled is named as that.
func TestCancelledMessages(t *testing.T) {
	kept, err := batches.Open(batches.Config{Dir: t.TempDir(), Flight: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := serveModels(t, server.Config{Batches: kept}, source(modelName, edited(t, served(), template), options))
	var requests []string
	for i := range 300 {
		requests = append(requests, fmt.Sprintf(`{"custom_id":"r%d","params":{"max_tokens":100,"messages":[{"role":"user","content":"a"}]}}`, i))
	}
	id := s.post(t, "/v1/messages/batches", `{"requests":[`+strings.Join(requests, ",")+`]}`)["id"].(string)
	if o := s.post(t, "/v1/messages/batches/"+id+"/cancel", ""); o["cancel_initiated_at"] == nil {
		t.Errorf("%v", o)
	}
	var o object
	for end := time.Now().Add(30 * time.Second); o["processing_status"] != "ended"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it has not ended: %v", o)
		}
		_, text, _ := s.do(t, "GET", "/v1/messages/batches/"+id, "")
		o = parse(t, text)
	}
	_, text, _ := s.do(t, "GET", "/v1/messages/batches/"+id+"/results", "")
	cancelled := float64(strings.Count(text, `"type":"canceled"`))
	if cancelled == 0 || cancelled != o.at("request_counts/canceled") || strings.Count(text, "\n") != 300 {
		t.Errorf("%v results are cancelled of %d lines: %v", cancelled, strings.Count(text, "\n"), o)
	}
}
