package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"grove/internal/gopher"
	"grove/internal/weights/gguf"
	"grove/server"
	"grove/server/access"
	"grove/server/serving"
)

// sharing is a server that shares a folder of prefixes; it uses the folder already.
func sharing(t testing.TB, dir string, c server.Config) *site {
	t.Helper()
	o := options
	o.Prefixes.Dir, o.Forget = dir, true // what the tests here teach would change how others draft
	file := edited(t, gopher.Model(), template, gguf.KV{Key: "llama.context_length", Value: gguf.Of(uint32(1024))})
	c.Metrics = []serving.MetricNames{serving.MetricsGrove}
	s := serveModels(t, c, source(modelName, file, o))
	if dir != "" && c.Access == nil {
		eventually(t, "the folder of prefixes is not used", func() bool { return s.count(t, "grove_prefix_models") == 1 })
	}
	return s
}

// settled waits until a server has written all texts.
func (s *site) settled(t testing.TB) {
	t.Helper()
	eventually(t, "texts are not written", func() bool { return s.count(t, "grove_prefix_texts_queued") == 0 })
}

// TestPrefixes: a conversation goes from one of three servers to the next, which share a folder, and names no session: the answers are those of one server,
// and each computes what is new.
func TestPrefixes(t *testing.T) {
	dir := t.TempDir()
	var all []*site
	for range 3 {
		all = append(all, sharing(t, dir, server.Config{}))
	}
	alone := sharing(t, "", server.Config{})
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	messages := []message{{"user", text[:len(text)/2]}}
	before := 0.0
	for turn := range 6 {
		form, err := json.Marshal(messages)
		if err != nil {
			t.Fatal(err)
		}
		body := fmt.Sprintf(`{"messages":%s,"max_tokens":20,"temperature":1,"seed":%d}`, form, turn)
		want := alone.post(t, "/v1/chat/completions", body).at("choices/0/message/content")
		s := all[turn%3]
		got := s.post(t, "/v1/chat/completions", body)
		cached, prompt := got.at("usage/prompt_tokens_details/cached_tokens").(float64), got.at("usage/prompt_tokens").(float64)
		if got.at("choices/0/message/content") != want || turn > 0 && cached < before {
			t.Errorf("turn %d: %v, want %q, and %v of %v tokens cached at least", turn, got, want, before, prompt)
		}
		before = float64(int(prompt)-1) - float64((int(prompt)-1)%64)
		s.settled(t)
		messages = append(messages, message{"assistant", want.(string)}, message{"user", "func g() {}"})
	}
	for i, s := range all {
		if s.count(t, "grove_prefix_files_refused_total")+s.count(t, "grove_prefix_texts_failed_total")+s.count(t, "grove_prefix_texts_dropped_total") != 0 {
			t.Errorf("server %d has faults", i)
		}
		found, tokens, files, written := s.count(t, "grove_prefix_texts_found_total"), s.count(t, "grove_prefix_tokens_found_total"), s.count(t, "grove_prefix_files_read_total"), s.count(t, "grove_prefix_files_written_total")
		if want := 2 - (3-i)/3; found != want || tokens < 64*found || files == 0 || written == 0 {
			t.Errorf("server %d: %d texts found, want %d; %d tokens, %d files read, %d written", i, found, want, tokens, files, written)
		}
	}
}

// TestPrefixKeys: the text of a key is found by the key at every server, and by no other key; where keys share, by all; with cache_prompt false by none.
func TestPrefixKeys(t *testing.T) {
	keys := []access.Key{{Name: "ann", Secret: "a"}, {Name: "bob", Secret: "b"}, {Name: "op", Secret: "o", Operator: true}}
	for _, share := range []bool{false, true} {
		dir := t.TempDir()
		metric := func(s *site, name string) string {
			_, text, _ := s.do(t, "GET", "/metrics", "", "X-Api-Key", "o")
			_, rest, _ := strings.Cut(text, "\n"+name+" ")
			n, _, _ := strings.Cut(rest, "\n")
			return n
		}
		open := func() *site {
			s := sharing(t, dir, server.Config{Access: gate(t, access.Config{Keys: keys, Share: share})})
			eventually(t, "the folder is not used", func() bool { return metric(s, "grove_prefix_models") == "1" })
			return s
		}
		ask := func(s *site, key, more string) float64 {
			t.Helper()
			status, body, _ := s.do(t, "POST", "/v1/completions", fmt.Sprintf(`{"prompt":%q,"max_tokens":2%s}`, text, more), "X-Api-Key", key)
			if status != 200 {
				t.Fatal(status, body)
			}
			eventually(t, "the text is not written", func() bool { return metric(s, "grove_prefix_texts_queued") == "0" })
			return parse(t, body).at("usage/prompt_tokens_details/cached_tokens").(float64)
		}
		if ask(open(), "a", `,"cache_prompt":false`); len(files(t, dir)) != 0 {
			t.Error("a private text is written")
		}
		if n := ask(open(), "a", ""); n != 0 {
			t.Errorf("the first text has %v tokens", n)
		}
		if n := ask(open(), "a", `,"cache_prompt":false`); n != 0 {
			t.Errorf("a private text finds %v tokens", n)
		}
		if n := ask(open(), "b", ""); n > 0 != share {
			t.Errorf("share %v: another key finds %v tokens", share, n)
		}
		if n := ask(open(), "a", ""); n < 128 {
			t.Errorf("share %v: the key finds %v tokens", share, n)
		}
		if n := ask(open(), "a", `,"cache_salt":"x"`); n != 0 {
			t.Errorf("share %v: another salt finds %v tokens", share, n)
		}
	}
}

// files returns the files below a folder.
func files(t testing.TB, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestPrefixForks: of several answers to a prompt, and of streams and requests that name a session, prompts are found too.
func TestPrefixForks(t *testing.T) {
	dir, sessions := t.TempDir(), t.TempDir()
	config := server.Config{Config: serving.Config{Sessions: access.Sessions{Dir: sessions}}}
	for i, more := range []string{`,"n":3`, `,"stream":true`, `,"session":"a"`} {
		prompt := fmt.Sprintf("// %d\n%s", i, text)
		body := fmt.Sprintf(`{"prompt":%q,"max_tokens":4%s}`, prompt, more)
		s := sharing(t, dir, config)
		if status, answer, _ := s.do(t, "POST", "/v1/completions", body); status != 200 {
			t.Fatal(status, answer)
		}
		s.settled(t)
		again := sharing(t, dir, config).post(t, "/v1/completions", fmt.Sprintf(`{"prompt":%q,"max_tokens":4}`, prompt))
		if n := again.at("usage/prompt_tokens_details/cached_tokens").(float64); n < 128 {
			t.Errorf("%s: %v tokens are found", more, n)
		}
	}
}

// TestSessionOfTwoServers: two servers write one session at a time: the file is that of one of them, whole, and a third goes on from it.
func TestSessionOfTwoServers(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for i := range 2 {
		s := keeping(t, dir)
		for j := range 4 {
			all.Go(func() {
				status, body, _ := s.do(t, "POST", "/v1/completions", fmt.Sprintf(`{"prompt":%q,"max_tokens":2,"session":"a"}`, text+strings.Repeat(fmt.Sprint(i), 60*(j+1))))
				if status != 200 || strings.Contains(body, "session_error") {
					t.Errorf("%d %s", status, body)
				}
			})
		}
	}
	all.Wait()
	third := keeping(t, dir).post(t, "/v1/completions", fmt.Sprintf(`{"prompt":%q,"max_tokens":2,"session":"a"}`, text+" "))
	if n := third.at("usage/prompt_tokens_details/cached_tokens").(float64); n < 128 {
		t.Errorf("%v tokens are found", n)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
}
