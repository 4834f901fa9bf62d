package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"grove"
)

// The first session is a page of 128 KiB, the next two: the disk has room for one of them, and not for the new one beside the old.
const roomBytes = 320 << 10

// TestDiskFull: a session that does not fit on a disk, a real one with a file system of its own, or that is longer than the
// process may write, fails its request with a reason. The session that was there stays, nothing of the new one does, and
// the server goes on. Limits and mounts belong to a process, so each case has a process of its own.
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
	status, reason := http.StatusInsufficientStorage, syscall.ENOSPC
	if how == "full" {
		if err := syscall.Mount("none", dir, "tmpfs", 0, fmt.Sprintf("size=%d", roomBytes)); err != nil {
			t.Skipf("a file system of its own is not to be had: %v", err)
		}
	} else {
		status, reason = http.StatusInternalServerError, syscall.EFBIG
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
	got, body := ask(30, "")
	message, _, param, code := wantError(t, body)
	if want := "session: " + grove.ErrSession.Error() + ": " + reason.Error(); got != status || message != want || param != "session" || code != "session_failed" {
		t.Errorf("%d %s, want %d %s", got, body, status, want)
	}
	kept()
	if got, body := ask(30, `,"stream":true`); got != 200 || !strings.Contains(body, `"text":`) || !strings.Contains(body, `"code":"session_failed"`) || strings.Contains(body, "[DONE]") {
		t.Errorf("a stream: %d %s", got, body)
	}
	kept()
	// A text that could begin a stop string is held back to its end: it stands in the stream before the error, too.
	whole := s.post(t, "/v1/completions", fmt.Sprintf(`{"prompt":%q,"max_tokens":3,"temperature":0}`, prompt(30))).at("choices/0/text").(string)
	if got, body := ask(30, fmt.Sprintf(`,"stream":true,"stop":[%q]`, whole+"...")); got != 200 || !strings.Contains(body, fmt.Sprintf(`"text":%q`, whole)) || !strings.Contains(body, `"code":"session_failed"`) {
		t.Errorf("a stream whose text is held back: %d %s, want %q", got, body, whole)
	}
	kept()
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
}
