package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// proxy passes an agent's requests to the server, with the answer that the script has for them.
type proxy struct {
	server, record, dir string
	agent               agent

	mu       sync.Mutex
	requests int
	refused  []string
}

// generates are the ends of the routes whose answers are held to the script.
var generates = []string{"/v1/messages", "/v1/responses", "/v1/chat/completions", "/v1/completions", "/api/chat"}

// ServeHTTP implements [http.Handler].
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	sent := body
	for _, end := range generates {
		if r.Method == http.MethodPost && r.URL.Path == end {
			if sent, err = p.scripted(end, body); err != nil {
				p.refuse(err.Error())
				sent = body
			}
		}
	}
	q, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+p.server+r.URL.RequestURI(), bytes.NewReader(sent))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	q.Header = r.Header.Clone()
	q.Header.Del("Accept-Encoding")
	answer, err := http.DefaultTransport.RoundTrip(q)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	number := p.note(r, body, answer)
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.StatusCode)
	var kept bytes.Buffer
	if _, err := io.Copy(flushing{w}, io.TeeReader(answer.Body, &kept)); err == nil && answer.StatusCode >= http.StatusBadRequest && r.Method == http.MethodPost {
		p.refuse(fmt.Sprintf("request %d, %s: %d %.200s", number, r.URL.Path, answer.StatusCode, kept.String()))
	}
}

// note counts a request and records its body.
func (p *proxy) note(r *http.Request, body []byte, answer *http.Response) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	if p.record != "" && len(body) > 0 {
		name := fmt.Sprintf("%s-%02d%s.json", p.agent.name, p.requests, strings.ReplaceAll(r.URL.Path, "/", "-"))
		if err := os.WriteFile(filepath.Join(p.record, name), body, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		if ignored := answer.Header.Values("Grove-Ignored"); len(ignored) > 0 {
			fmt.Fprintf(os.Stderr, "%s: Grove-Ignored: %s\n", name, strings.Join(ignored, ", "))
		}
	}
	return p.requests
}

func (p *proxy) refuse(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = append(p.refused, strings.ReplaceAll(text, "\n", " "))
}

// scripted returns a body with the answer that comes next: a forced call whose schema has one value for each argument, or a text. A request
// without tools, such as for a title, gets a text.
func (p *proxy) scripted(route string, body []byte) ([]byte, error) {
	var fields map[string]any
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, err
	}
	offered := toolNames(fields["tools"])
	if steps, done := p.agent.steps(p.dir), results(body); len(offered) > 0 && done < len(steps) {
		name, err := steps[done].of(offered)
		if err != nil {
			return nil, err
		}
		force(fields, name, steps[done].schema(name))
		return json.Marshal(fields)
	}
	if len(offered) > 0 {
		fields["tool_choice"] = "none"
		if route == "/v1/messages" {
			fields["tool_choice"] = map[string]string{"type": "none"}
		}
	}
	fields["structured_outputs"] = map[string][]string{"choice": {"Done: the sum was a difference."}}
	delete(fields, "response_format")
	delete(fields, "output_config")
	return json.Marshal(fields)
}

// force lets the model call one tool, with arguments of one schema. The form of the tools says whose API it is.
func force(fields map[string]any, name string, schema map[string]any) {
	for _, t := range fields["tools"].([]any) {
		t := t.(map[string]any)
		if f, chat := t["function"].(map[string]any); chat && f["name"] == name {
			f["parameters"] = schema
			fields["tool_choice"], fields["parallel_tool_calls"] = map[string]any{"type": "function", "function": map[string]any{"name": name}}, false
		}
		switch {
		case t["name"] != name:
		case t["input_schema"] != nil:
			t["input_schema"] = schema
			fields["tool_choice"] = map[string]any{"type": "tool", "name": name, "disable_parallel_tool_use": true}
		default:
			t["parameters"] = schema
			fields["tool_choice"], fields["parallel_tool_calls"] = map[string]any{"type": "function", "name": name}, false
		}
	}
}

// toolNames returns the names of the tools of a request in the form of any API.
func toolNames(tools any) (names []string) {
	list, _ := tools.([]any)
	for _, t := range list {
		t, _ := t.(map[string]any)
		f, _ := t["function"].(map[string]any)
		for _, name := range []any{f["name"], t["name"]} {
			if name, is := name.(string); is {
				names = append(names, name)
			}
		}
	}
	return names
}

// results counts the results of calls in a conversation.
func results(body []byte) (n int) {
	var q struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
		Input json.RawMessage
	}
	_ = json.Unmarshal(body, &q) // another form has none of them
	for _, m := range q.Messages {
		if m.Role == "tool" {
			n++
		}
		var blocks []struct{ Type string }
		_ = json.Unmarshal(m.Content, &blocks) // a text has none
		for _, b := range blocks {
			if b.Type == "tool_result" {
				n++
			}
		}
	}
	var items []struct{ Type string }
	_ = json.Unmarshal(q.Input, &items) // a text has none
	for _, i := range items {
		if strings.HasSuffix(i.Type, "_call_output") {
			n++
		}
	}
	return n
}

// flushing writes at once what a stream brings.
type flushing struct{ w http.ResponseWriter }

// Write implements [io.Writer].
func (f flushing) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	_ = http.NewResponseController(f.w).Flush() // a writer that cannot keeps it
	return n, err
}
