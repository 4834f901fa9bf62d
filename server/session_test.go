package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"grove/gopher"
	"grove/server"
	"grove/server/serving"
	"grove/weights/gguf"
)

// keeping is a server that keeps sessions in a folder.
func keeping(t testing.TB, dir string) *site {
	t.Helper()
	file := edited(t, gopher.Model(), template, gguf.KV{Key: "llama.context_length", Value: gguf.Of(uint32(1024))})
	return serveModels(t, server.Config{Config: serving.Config{Sessions: dir}}, source(modelName, file, options))
}

// text is a prompt of some hundred tokens.
var text = strings.Repeat("func f(x int) int { return x }\n", 16)

// TestSession: another server does not compute the text of a session again, and answers are the same.
func TestSession(t *testing.T) {
	dir := t.TempDir()
	begin := func(session string) string {
		return fmt.Sprintf(`{"prompt":%q,"max_tokens":70,"temperature":0,"ignore_eos":true%s}`, text, session)
	}
	bare := keeping(t, "")
	answer := bare.post(t, "/v1/completions", begin("")).at("choices/0/text").(string)
	first := keeping(t, dir).post(t, "/v1/completions", begin(`,"session":"a_1.x-Y"`))
	if got := first.at("choices/0/text"); got != answer || first.at("usage/prompt_tokens_details/cached_tokens") != 0.0 {
		t.Errorf("the first turn: %v, want %q", first, answer)
	}
	kept := fileSize(t, filepath.Join(dir, "a_1.x-Y"))
	further := fmt.Sprintf(`"prompt":%q,"max_tokens":9,"temperature":0`, text+answer+"func g")
	want := bare.post(t, "/v1/completions", "{"+further+"}").at("choices/0/text")
	s := keeping(t, dir)
	second := s.post(t, "/v1/completions", "{"+further+`,"session":"a_1.x-Y"}`)
	cached, prompt := second.at("usage/prompt_tokens_details/cached_tokens").(float64), second.at("usage/prompt_tokens").(float64)
	if got := second.at("choices/0/text"); got != want || cached < 192 || cached < prompt-128 {
		t.Errorf("the second turn: %v, want %q with all but the last tokens cached", second, want)
	}
	if fileSize(t, filepath.Join(dir, "a_1.x-Y")) < kept {
		t.Error("the session does not hold the second turn")
	}
	for path, body := range map[string]string{
		"/v1/chat/completions": hello + `,"max_tokens":3`, "/v1/responses": `"input":"x","max_output_tokens":3`,
		"/completion": `"prompt":"x","n_predict":3`,
	} {
		name := "of" + strings.ReplaceAll(path, "/", "-")
		s.post(t, path, "{"+body+`,"session":"`+name+`"}`)
		fileSize(t, filepath.Join(dir, name))
	}
	s.events(t, "/v1/completions", `{"prompt":"x","max_tokens":3,"stream":true,"session":"streamed"}`)
	fileSize(t, filepath.Join(dir, "streamed"))
}

func fileSize(t testing.TB, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// TestSessionRefused: names that lead elsewhere, files that are no sessions of the model, and requests that no session can
// keep are refused; the files stay as they are.
func TestSessionRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sessions")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	keeping(t, dir).post(t, "/v1/completions", fmt.Sprintf(`{"prompt":%q,"max_tokens":3,"session":"good"}`, text))
	s := keeping(t, dir) // that has computed nothing
	good, err := os.ReadFile(filepath.Join(dir, "good"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"good": string(good), "empty": "", "cut": string(good[:len(good)-1]), "longer": string(good) + "x",
		"changed": string(good[:len(good)/2]) + "x" + string(good[len(good)/2+1:]), "foreign": string(gopher.Model()[:4096]),
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	none := serve(t, server.Config{})
	const invalid = "not a session of this model"
	for _, tt := range []struct {
		s              *site
		session, more  string
		status         int
		code, contains string
	}{
		{none, "a", "", 400, "unsupported_parameter", "the server keeps none"},
		{s, "../a", "", 400, "", "is no name for one"},
		{s, "/tmp/a", "", 400, "", "is no name for one"},
		{s, `..\a`, "", 400, "", "is no name for one"},
		{s, "..", "", 400, "", "is no name for one"},
		{s, ".hidden", "", 400, "", "is no name for one"},
		{s, "a/b", "", 400, "", "is no name for one"},
		{s, "a\x00b", "", 400, "", "is no name for one"},
		{s, "a:b", "", 400, "", "is no name for one"},
		{s, "good.tmp-1", "", 400, "", "is no name for one"},
		{s, strings.Repeat("a", 101), "", 400, "string_above_max_length", "101 bytes; at most 100"},
		{s, "a", `,"n":2`, 400, "", "a session keeps one answer"},
		{s, "a", `,"prompt":["a","b"]`, 400, "", "a session keeps one answer"},
		{s, "a", `,"cache_prompt":false`, 400, "", "nothing is kept"},
		{s, "a", `,"max_tokens":0,"echo":true`, 400, "", "nothing is generated"},
		{s, "empty", "", 400, "session_invalid", invalid},
		{s, "cut", "", 400, "session_invalid", invalid},
		{s, "longer", "", 400, "session_invalid", invalid},
		{s, "changed", "", 400, "session_invalid", invalid},
		{s, "foreign", "", 400, "session_invalid", invalid},
		{s, "good", `,"cache_salt":"x"`, 400, "session_invalid", invalid},
		{s, "folder", "", 500, "session_failed", "cannot be read or written"},
	} {
		for _, stream := range []string{"", `,"stream":true`} {
			prompt := fmt.Sprintf(`,"prompt":%q`, text)
			if strings.Contains(tt.more, `"prompt":[`) {
				prompt = ""
			}
			limit := `,"max_tokens":3`
			if strings.Contains(tt.more, "max_tokens") {
				limit = ""
			}
			status, body, _ := tt.s.do(t, "POST", "/v1/completions", `{"session":`+quote(tt.session)+prompt+limit+tt.more+stream+"}")
			message, _, param, code := wantError(t, body)
			if status != tt.status || param != "session" || code != tt.code || !strings.Contains(message, tt.contains) || strings.Contains(message, dir) {
				t.Errorf("%q%s%s: %d %s", tt.session, tt.more, stream, status, body)
			}
		}
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s has changed: %v", name, err)
		}
	}
	for path, want := range map[string]int{dir: len(files) + 1, filepath.Dir(dir): 1} {
		if all, err := os.ReadDir(path); err != nil || len(all) != want {
			t.Errorf("%s has %v, %v", path, all, err)
		}
	}
}

// TestSlotActions: llama.cpp's actions on slots are refused with an error that names sessions.
func TestSlotActions(t *testing.T) {
	s := keeping(t, t.TempDir())
	for _, action := range []string{"save", "restore", "erase"} {
		status, body, _ := s.do(t, "POST", "/slots/0?action="+action, `{"filename":"a"}`)
		if message, _, param, code := wantError(t, body); status != 501 || param != "action" || code != "unsupported_action" || !strings.Contains(message, "field session") {
			t.Errorf("%s: %d %s", action, status, body)
		}
	}
}
