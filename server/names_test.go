package server_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"grove/internal/gopher"
	"grove/server"
	"grove/server/access"
)

// TestNames: a name that a client makes of a model gives all routes' requests its system text, its messages and its parameters.
func TestNames(t *testing.T) {
	s := serveChat(t)
	const parameters = `"parameters":{"temperature":0,"num_predict":5,"stop":["zzz"],"repeat_penalty":1.3,"num_ctx":120,"num_thread":4}`
	all := s.lines(t, "/api/create", `{"model":"mario:latest","from":"gopher","system":"You are Mario","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"license":"MIT",`+parameters+`}`)
	if last := all[len(all)-1]; last["status"] != "success" {
		t.Errorf("%v", all)
	}
	const begins = `{"role":"system","content":"You are Mario"},{"role":"user","content":"a"},{"role":"assistant","content":"b"},`
	const question = `{"role":"user","content":"c"}`
	want := s.post(t, "/v1/chat/completions", `{"messages":[`+begins+question+`],"temperature":0,"max_tokens":5,"repeat_penalty":1.3}`)
	text := want.at("choices/0/message/content")
	for path, tt := range map[string]struct{ fields, at string }{
		"/v1/chat/completions": {`"messages":[` + question + `]`, "choices/0/message/content"},
		"/v1/responses":        {`"input":"c"`, "output/0/content/0/text"},
		"/v1/messages":         {`"messages":[` + question + `],"max_tokens":5`, "content/0/text"},
		"/api/chat":            {`"stream":false,"options":{"repeat_last_n":-1,"top_k":0},"messages":[` + question + `]`, "message/content"},
		"/api/generate":        {`"stream":false,"options":{"repeat_last_n":-1},"prompt":"c"`, "response"},
	} {
		o := s.post(t, path, `{"model":"mario",`+tt.fields+`}`)
		if o.at(tt.at) != text || o["model"] != "mario" {
			t.Errorf("%s: %v of %v, want %v", path, o.at(tt.at), o["model"], text)
		}
	}
	plain := s.post(t, "/completion", `{"prompt":"func main() {","temperature":0,"n_predict":5,"repeat_penalty":1.3}`)["content"]
	if got := s.post(t, "/completion", `{"model":"mario","prompt":"func main() {"}`)["content"]; got != plain {
		t.Errorf("/completion: %q, want %q", got, plain)
	}
	if got := s.post(t, "/v1/completions", `{"model":"mario","prompt":"func main() {"}`); got.at("usage/completion_tokens") != 5.0 {
		t.Errorf("/v1/completions: %v", got)
	}
	counted := s.post(t, "/v1/messages/count_tokens", `{"messages":[`+begins[strings.Index(begins, `{"role":"user"`):]+question+`],"system":"You are Mario"}`)["input_tokens"]
	if got := s.post(t, "/v1/messages/count_tokens", `{"model":"mario","messages":[`+question+`]}`)["input_tokens"]; got != counted {
		t.Errorf("count_tokens: %v, want %v", got, counted)
	}
	// A request's own fields come first.
	own := s.post(t, "/api/chat", `{"model":"mario","stream":false,"messages":[{"role":"system","content":"s"},`+question+`],"options":{"num_predict":3}}`)
	if other := s.post(t, "/v1/chat/completions", `{"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"assistant","content":"b"},`+question+`],"max_tokens":1}`); own["eval_count"] != 3.0 || own["prompt_eval_count"] != other.at("usage/prompt_tokens") {
		t.Errorf("%v", own)
	}
	if status, text, _ := s.do(t, "POST", "/api/generate", `{"model":"mario","stream":false,"raw":true,"prompt":"`+strings.Repeat("word ", 150)+`"}`); status != 400 || !strings.Contains(text, "120 tokens") {
		t.Errorf("num_ctx of the name: %d %s", status, text)
	}
	status, text400, _ := s.do(t, "POST", "/api/chat", `{"model":"mario","messages":[{"role":"user","content":"a"},{"role":"king","content":"a"}]}`)
	if status != 400 || !strings.Contains(text400, "messages[1]") {
		t.Errorf("a bad message: %d %s", status, text400)
	}
}

// TestNamesOfNames: names are listed, copied, made of each other, and deleted.
func TestNamesOfNames(t *testing.T) {
	file := filepath.Join(t.TempDir(), "names.json")
	s := serveModels(t, server.Config{Names: file}, source("gopher", edited(t, gopher.Model(), template), options))
	s.post(t, "/api/create", `{"model":"a","from":"gopher:latest","system":"s","parameters":{"temperature":0,"top_k":3,"stop":["x","y"]},"stream":false}`)
	s.post(t, "/api/create", `{"model":"b","from":"a","parameters":{"top_k":5},"stream":false}`)
	if status, text, _ := s.do(t, "POST", "/api/copy", `{"source":"b","destination":"c:latest"}`); status != 200 || text != "" {
		t.Errorf("%d %s", status, text)
	}
	get := func(s *site, path string) object {
		_, text, _ := s.do(t, "GET", path, "")
		return parse(t, text)
	}
	check := func(s *site, path string, want any, o object) {
		t.Helper()
		if got := o.at(path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	for _, s := range []*site{s, serveModels(t, server.Config{Names: file}, source("gopher", edited(t, gopher.Model(), template), options))} { // and after a start
		check(s, "models/1/name", "a", get(s, "/api/tags"))
		check(s, "models/3/name", "c", get(s, "/api/tags"))
		check(s, "data/2/id", "b", get(s, "/v1/models"))
		check(s, "data/2/parent", "gopher", get(s, "/v1/models"))
		check(s, "id", "c", get(s, "/v1/models/c"))
		show := s.post(t, "/api/show", `{"model":"c"}`)
		check(s, "system", "s", show)
		check(s, "parameters", "stop                           \"x\"\nstop                           \"y\"\ntemperature                    0\ntop_k                          5", show)
		check(s, "modelfile", "FROM gopher\nSYSTEM \"\"\"s\"\"\"\nPARAMETER stop \"x\"\nPARAMETER stop \"y\"\nPARAMETER temperature 0\nPARAMETER top_k 5\n", show)
		check(s, "capabilities/1", "chat", show)
	}
	s.post(t, "/api/create", `{"model":"a","from":"a","system":"t","stream":false}`)
	check(s, "system", "t", s.post(t, "/api/show", `{"model":"a"}`))
	check(s, "system", "s", s.post(t, "/api/show", `{"model":"b"}`))
	for _, name := range []string{"a", "b:latest", "c"} {
		if status, text, _ := s.do(t, "DELETE", "/api/delete", `{"model":"`+name+`"}`); status != 200 {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if status, text, _ := s.do(t, "POST", "/api/show", `{"model":"b"}`); status != 404 {
		t.Errorf("%d %s", status, text)
	}
	if text, err := os.ReadFile(file); string(text) != "[]" {
		t.Errorf("%s, %v", text, err)
	}
}

// TestNamesFile: a file that is broken, or not of names, ends the start with its name.
func TestNamesFile(t *testing.T) {
	for _, text := range []string{`[{"name":"a"`, `{}`, `[{"name":"a","from":"b"}]`, `[{"name":"a","from":"b","made":"2026-01-02T03:04:05Z","parameters":{"temperature":-1}}]`, `[7]`} {
		file := filepath.Join(t.TempDir(), "names.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := server.New(server.Config{Names: file})
		if err := s.Load(t.Context()); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestNamesFull: names and their texts are bounded; one that is replaced makes room.
func TestNamesFull(t *testing.T) {
	s := serveChat(t)
	text := strings.Repeat("a", 1<<20-500)
	refused := 0
	for i := range 18 {
		status, answer, _ := s.do(t, "POST", "/api/create", `{"model":"m`+string(rune('a'+i))+`","from":"gopher","stream":false,"system":"`+text+`"}`)
		if status != 200 {
			refused++
			if status != 400 || !strings.Contains(answer, "16 MiB") {
				t.Errorf("%d %s", status, answer)
			}
		}
	}
	if refused != 2 {
		t.Errorf("%d of 18 MiB refused", refused)
	}
	status, answer, _ := s.do(t, "POST", "/api/create", `{"model":"ma","from":"gopher","stream":false,"messages":[{"role":"user","content":"`+text+`"},{"role":"user","content":"`+text+`"}]}`)
	if status != 400 || !strings.Contains(answer, "1 MiB") {
		t.Errorf("%d %s", status, answer)
	}
	s.post(t, "/api/create", `{"model":"ma","from":"gopher","stream":false,"system":"short"}`)
	s.post(t, "/api/create", `{"model":"new","from":"gopher","stream":false,"system":"short"}`)
}

// TestNamesOperators: with keys, operators make and delete names.
func TestNamesOperators(t *testing.T) {
	s := serve(t, server.Config{Access: gate(t, access.Config{Keys: []access.Key{{Name: "ann", Secret: "a"}, {Name: "root", Secret: "r", Operator: true}}})})
	for _, step := range []struct {
		key, method, path, body string
		status                  int
	}{
		{"a", "POST", "/api/create", `{"model":"m","from":"gopher","stream":false}`, http.StatusForbidden},
		{"r", "POST", "/api/create", `{"model":"m","from":"gopher","stream":false}`, http.StatusOK},
		{"a", "POST", "/v1/completions", `{"model":"m","prompt":"a","max_tokens":1}`, http.StatusOK},
		{"a", "POST", "/api/copy", `{"source":"m","destination":"n"}`, http.StatusForbidden},
		{"a", "DELETE", "/api/delete", `{"model":"m"}`, http.StatusForbidden},
		{"r", "DELETE", "/api/delete", `{"model":"m"}`, http.StatusOK},
	} {
		if status, text, _ := s.do(t, step.method, step.path, step.body, "Authorization", "Bearer "+step.key); status != step.status {
			t.Errorf("%s of %s: %d %s", step.path, step.key, status, text)
		}
	}
}
