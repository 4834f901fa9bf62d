package server_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"grove"
	"grove/server"
)

// The first session is a page of 128 KiB, the next two: the disk has room for one of them, and not for the new one beside the old.
const roomBytes = 320 << 10

// TestSessionNotRegular: a session's name that is that of a named pipe, which nobody writes, or of a link to a file elsewhere, is refused at once.
func TestSessionNotRegular(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	s := keeping(t, dir)
	err := errors.Join(os.WriteFile(outside, []byte("theirs"), 0o600), os.Symlink(outside, filepath.Join(dir, "link")), syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "pipe"} {
		status, body, _ := s.do(t, "POST", "/v1/completions", `{"prompt":"x","max_tokens":2,"session":"`+name+`"}`)
		if message, _, param, code := wantError(t, body); status != 500 || param != "session" || code != "session_failed" || !strings.HasSuffix(message, "what has its name is no regular file") {
			t.Errorf("%s: %d %s", name, status, body)
		}
		if status, body, _ := s.do(t, "DELETE", "/sessions/"+name, ""); status != 404 {
			t.Errorf("deleting %s: %d %s", name, status, body)
		}
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "theirs" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestDiskFull: a session that does not fit on a disk, a real one with a file system of its own, or that is longer than the
// process may write, is told beside the whole answer, on every route that keeps sessions. The session that was there stays, nothing of the
// new one does, and the server goes on. Limits and mounts belong to a process, so each case has a process of its own.
func TestDiskFull(t *testing.T) {
	if how := os.Getenv("GROVE_TEST_DISK"); how != "" {
		diskFull(t, how, os.Getenv("GROVE_TEST_DIR"))
		return
	}
	for _, how := range []string{"full", "limited"} {
		t.Run(how, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDiskFull$", "-test.v")
			cmd.Env = append(os.Environ(), "GROVE_TEST_DISK="+how, "GROVE_TEST_DIR="+t.TempDir())
			if how == "full" { // the right to mount comes with user and mount namespaces
				cmd.SysProcAttr = &syscall.SysProcAttr{
					Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
					UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
					GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
				}
			}
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Skipf("this system gives processes no namespaces of their own: %v", err)
			}
			err := cmd.Wait()
			switch {
			case strings.Contains(out.String(), "--- SKIP"):
				t.Skip(out.String())
			case err != nil || !strings.Contains(out.String(), "--- PASS: TestDiskFull"):
				t.Errorf("%v\n%s", err, out.String())
			}
		})
	}
}

// diskFull is the test, in a process of its own.
func diskFull(t *testing.T, how, dir string) {
	reason := syscall.ENOSPC
	if how == "full" {
		if err := syscall.Mount("none", dir, "tmpfs", 0, fmt.Sprintf("size=%d", roomBytes)); err != nil {
			t.Skipf("a file system of its own is not to be had: %v", err)
		}
	} else {
		reason = syscall.EFBIG
		var limit syscall.Rlimit
		err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit)
		limit.Cur = 200 << 10
		if err := errors.Join(err, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)); err != nil {
			t.Skipf("the size of files cannot be limited: %v", err)
		}
	}
	s := keeping(t, dir)
	prompt := func(repeats int) string { return strings.Repeat("func f() {}\n", repeats) }
	ask := func(repeats int, more string) (int, string) {
		status, body, _ := s.do(t, "POST", "/v1/completions", fmt.Sprintf(`{"prompt":%q,"max_tokens":3,"temperature":0,"session":"a"%s}`, prompt(repeats), more))
		return status, body
	}
	if status, body := ask(15, ""); status != 200 {
		t.Fatal(status, body)
	}
	path := filepath.Join(dir, "a")
	old, err := os.ReadFile(path)
	if err != nil || len(old) < 128<<10 || len(old) > 130<<10 {
		t.Fatalf("the session has %d bytes, %v", len(old), err)
	}
	kept := func() {
		t.Helper()
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, old) {
			t.Errorf("the session has changed: %v", err)
		}
		if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
			t.Errorf("%v, %v are there", all, err)
		}
	}
	want := fmt.Sprintf(`"message":%q,"type":"server_error","param":"session","code":"session_failed"`, "session: "+grove.ErrSession.Error()+": "+reason.Error())
	long := strings.Repeat("func f() {}\n", 30)
	for path, tt := range map[string]struct{ body, text string }{
		"/v1/completions":      {fmt.Sprintf(`"prompt":%q,"max_tokens":3`, long), `"text":"`},
		"/v1/chat/completions": {fmt.Sprintf(`"messages":[{"role":"user","content":%q}],"max_tokens":3`, long), `"content":"`},
		"/v1/responses":        {fmt.Sprintf(`"input":%q,"max_output_tokens":3`, long), `"output_text"`},
		"/completion":          {fmt.Sprintf(`"prompt":%q,"n_predict":3`, long), `"content":"`},
	} {
		status, body, _ := s.do(t, "POST", path, `{"session":"a","temperature":0,`+tt.body+"}")
		if !json.Valid([]byte(body)) || status != 200 || !strings.HasPrefix(body, `{"session_error":{`+want+`},`) || !strings.Contains(body, tt.text) {
			t.Errorf("%s: %d %s, want %s", path, status, body, want)
		}
		kept()
		status, body, _ = s.do(t, "POST", path, `{"session":"a","temperature":0,"stream":true,`+tt.body+"}")
		first, last := strings.Index(body, tt.text), strings.LastIndex(body, `"code":"session_failed"`)
		if status != 200 || first < 0 || last < first || strings.Contains(body, "[DONE]") {
			t.Errorf("a stream of %s: %d %s", path, status, body)
		}
		kept()
	}
	s.post(t, "/v1/completions", `{"prompt":"a","max_tokens":3}`)
	if how != "full" {
		return
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got, body := ask(30, ""); got != 200 || fileSize(t, path) < 256<<10 {
		t.Errorf("with room again: %d %s", got, body)
	}
	prefixesFull(t, dir)
}

// prefixesFull: a folder of prefixes on a full disk costs no answer; what cannot be written is counted.
func prefixesFull(t *testing.T, dir string) {
	body := fmt.Sprintf(`{"prompt":%q,"max_tokens":3,"temperature":0}`, strings.Repeat("func f() {}\n", 40))
	want := sharing(t, "", server.Config{}).post(t, "/v1/completions", body).at("choices/0/text")
	s := sharing(t, dir, server.Config{})
	for i := range 2 {
		if got := s.post(t, "/v1/completions", body).at("choices/0/text"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		s.settled(t)
		if n := s.count(t, "grove_prefix_texts_failed_total"); n != i+1 {
			t.Errorf("%d texts failed, want %d", n, i+1)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*", "*.tmp-*")); err != nil || len(left) != 0 {
		t.Errorf("%v are left: %v", left, err)
	}
}
