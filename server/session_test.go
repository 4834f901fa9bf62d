package server_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"grove/internal/gopher"
	"grove/internal/weights/gguf"
	"grove/server"
	"grove/server/access"
	"grove/server/serving"
)

// keeping is a server that keeps sessions in a folder.
func keeping(t testing.TB, dir string) *site {
	t.Helper()
	file := edited(t, gopher.Model(), template, gguf.KV{Key: "llama.context_length", Value: gguf.Of(uint32(1024))})
	return serveModels(t, server.Config{Config: serving.Config{Sessions: access.Sessions{Dir: dir}}}, source(modelName, file, options))
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
		"vocabulary": beyond(string(good)),
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	none := serveTarget(t, server.Config{})
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
		{s, "vocabulary", "", 400, "session_invalid", invalid},
		{s, "folder", "", 500, "session_failed", "no regular file"},
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

// beyond gives a session's first token an id that no vocabulary has, and the file its digest.
func beyond(file string) string {
	const first = 8 + sha256.Size + 4
	body := file[:first] + "\xff\xff\xff\x7f" + file[first+4:len(file)-sha256.Size]
	sum := sha256.Sum256([]byte(body))
	return body + string(sum[:])
}

// TestSessionsBounded: beyond the bounds of their number and bytes sessions are refused before anything is computed, those that are
// there stay and can be used, and what is deleted makes room. Files of writers under way are no sessions.
func TestSessionsBounded(t *testing.T) {
	dir := t.TempDir()
	file := edited(t, gopher.Model(), template, gguf.KV{Key: "llama.context_length", Value: gguf.Of(uint32(1024))})
	s := serveModels(t, server.Config{Config: serving.Config{Sessions: access.Sessions{Dir: dir, Most: 2, Bytes: 3000}}}, source(modelName, file, options))
	ask := func(name string) (int, string) {
		status, body, _ := s.do(t, "POST", "/v1/completions", `{"prompt":"x","max_tokens":2,"session":"`+name+`"}`)
		return status, body
	}
	refused := func(name, contains string) {
		t.Helper()
		status, body := ask(name)
		if message, _, param, code := wantError(t, body); status != 507 || param != "session" || code != "sessions_full" || !strings.Contains(message, contains) {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	listed := func(want ...string) {
		t.Helper()
		var names []string
		_, body, _ := s.do(t, "GET", "/sessions", "")
		for _, v := range parse(t, body).at("data").([]any) {
			names = append(names, v.(map[string]any)["name"].(string))
		}
		if !slices.Equal(names, want) {
			t.Errorf("the sessions are %v, want %v", names, want)
		}
	}
	listed()
	for _, name := range []string{"a", "b"} {
		if status, body := ask(name); status != 200 {
			t.Fatal(status, body)
		}
	}
	for _, name := range []string{"c.tmp-1", ".hidden"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	refused("c", "there are 2, and the server keeps at most 2 (--max-sessions); DELETE /sessions/NAME makes room")
	if status, body := ask("a"); status != 200 {
		t.Errorf("one that is there: %d %s", status, body)
	}
	listed("a", "b")
	for _, tt := range []struct {
		name   string
		status int
	}{{"b", 200}, {"b", 404}, {"c.tmp-1", 400}, {"..%2Fx", 400}} {
		if status, body, _ := s.do(t, "DELETE", "/sessions/"+tt.name, ""); status != tt.status {
			t.Errorf("deleting %s: %d %s", tt.name, status, body)
		}
	}
	listed("a")
	if err := os.WriteFile(filepath.Join(dir, "large"), make([]byte, 3000), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("a", "all others have 3000 bytes, and the server keeps at most 3000 (--max-session-bytes)")
	if status, _, _ := s.do(t, "DELETE", "/sessions/large", ""); status != 200 {
		t.Errorf("deleting: %d", status)
	}
	if status, body := ask("c"); status != 200 {
		t.Errorf("once there is room: %d %s", status, body)
	}
	none := serveTarget(t, server.Config{})
	for _, tt := range [][2]string{{"GET", "/sessions"}, {"DELETE", "/sessions/a"}} {
		if status, body, _ := none.do(t, tt[0], tt[1], ""); status != 400 || !strings.Contains(body, "the server keeps none") {
			t.Errorf("%s without a folder: %d %s", tt[0], status, body)
		}
	}
}

// TestSessionsTogether: many more requests with sessions than there are slots, several of one session among them, and others without, on a server
// that has to read the files: each gets its answer.
func TestSessionsTogether(t *testing.T) {
	dir := t.TempDir()
	ask := func(s *site, i int) (string, string) {
		session := ""
		if i%4 > 0 {
			session = fmt.Sprintf(`,"session":"s%d"`, i%3)
		}
		prompt := strings.Repeat("func f(x int) int { return x }\n", 6+i%3*3)
		status, body, _ := s.do(t, "POST", "/v1/completions", fmt.Sprintf(`{"prompt":%q,"max_tokens":4,"temperature":0%s}`, prompt, session))
		if status != 200 {
			return "", fmt.Sprintf("request %d: %d %s", i, status, body)
		}
		return parse(t, body).at("choices/0/text").(string), ""
	}
	var want [3]string
	for range 2 {
		s := keeping(t, dir)
		var all sync.WaitGroup
		got, faults := make([]string, 20), make([]string, 20)
		for i := range got {
			all.Go(func() { got[i], faults[i] = ask(s, i) })
		}
		all.Wait()
		for i := range got {
			if faults[i] != "" {
				t.Fatal(faults[i])
			}
			if want[i%3] == "" {
				want[i%3] = got[i]
			}
			if got[i] != want[i%3] {
				t.Errorf("request %d: %q, want %q", i, got[i], want[i%3])
			}
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 3 {
		t.Errorf("the folder holds %v, %v", left, err)
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
