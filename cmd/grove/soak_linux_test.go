package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The bounds of the soak.
const (
	soakMemory   = 384 << 20 // --memory-limit
	soakDisk     = 24 << 20  // of the file system of sessions
	soakHonest   = 12        // clients whose answers are compared
	soakPatience = 60 * time.Second
)

// TestSoak runs a server for the time GROVE_SOAK, such as 30m, under clients that behave and clients that do not, with faults from outside: kill -9,
// a stopped process (for it, the clock jumps), a full disk, bodies that want more memory than there is. Each answer equals the one that the request got alone and
// without drafts; memory stays within its limit; goroutines, descriptors and memory are at the end what they were. It runs in namespaces of its
// own, for a disk of its own.
func TestSoak(t *testing.T) {
	if os.Getenv("GROVE_SOAK") == "" {
		t.Skip("GROVE_SOAK is not set; a time, such as 30m, runs the soak")
	}
	total, err := time.ParseDuration(os.Getenv("GROVE_SOAK"))
	if err != nil {
		t.Fatal(err)
	}
	if dir := os.Getenv("GROVE_TEST_DIR"); dir != "" {
		soak(t, dir, total)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSoak$", "-test.v", "-test.timeout=0")
	cmd.Env = append(os.Environ(), "GROVE_TEST_DIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{ // the right to mount comes with user and mount namespaces
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
}

// soaked is a soak under way.
type soaked struct {
	t        *testing.T
	dir      string
	sessions string
	cases    []soakCase
	want     []string

	server  atomic.Pointer[soakServer]
	full    atomic.Bool // the disk is full, or was a moment ago
	honest  atomic.Int64
	refused atomic.Int64
	faulty  atomic.Int64
	peak    atomic.Int64 // bytes of memory
	byCode  sync.Map     // HTTP status of faulty clients' requests: *atomic.Int64
}

// soakServer is one life of the server.
type soakServer struct {
	cmd    *exec.Cmd
	addr   string
	stderr *os.File
	dying  atomic.Bool // it is killed: its clients may get errors
}

// soakCase is a request and how its answer is read.
type soakCase struct {
	path, body string
	read       func([]byte) (string, error)
	session    bool
}

func soak(t *testing.T, dir string, total time.Duration) {
	s := &soaked{t: t, dir: dir, sessions: filepath.Join(dir, "sessions"), cases: soakCases()}
	if err := os.Mkdir(s.sessions, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", s.sessions, "tmpfs", 0, fmt.Sprintf("size=%d", soakDisk)); err != nil {
		t.Fatalf("a file system of its own is not to be had: %v", err)
	}
	// What each request gets alone and without drafts.
	s.start()
	s.warm(true)
	goroutines, descriptors, _ := s.quiet()
	t.Logf("a server that has served each request once: %d goroutines, %d descriptors", goroutines, descriptors)

	unit := total / 12
	short := int64(0)
	for i, epoch := range []struct {
		units int
		kill  bool
	}{{1, true}, {1, true}, {1, false}, {1, true}, {1, true}, {1, true}, {1, true}, {5, false}} {
		s.start()
		s.warm(false)
		s.load(time.Duration(epoch.units)*unit, epoch.kill)
		if epoch.kill {
			continue
		}
		g, d, memory := s.quiet()
		t.Logf("epoch %d: %d goroutines, %d descriptors, %d MiB", i, g, d, memory>>20)
		if g > goroutines+8 || d > descriptors+8 {
			t.Errorf("epoch %d ends with %d goroutines and %d descriptors; a server at rest has %d and %d", i, g, d, goroutines, descriptors)
		}
		if short == 0 {
			short = memory
		} else if memory > short+short/4+16<<20 {
			t.Errorf("epoch %d, of %d times the length, ends with %d MiB of memory, a short one with %d", i, epoch.units, memory>>20, short>>20)
		}
	}
	t.Logf("%d answers equal, %d refused for want of a place or of disk, %d requests of faulty clients, peak of memory %d MiB of %d", s.honest.Load(), s.refused.Load(), s.faulty.Load(), s.peak.Load()>>20, soakMemory>>20)
	s.byCode.Range(func(code, n any) bool {
		t.Logf("faulty clients got %v %d times", code, n.(*atomic.Int64).Load())
		return true
	})
	if s.peak.Load() > soakMemory {
		t.Errorf("the server took %d MiB; its limit is %d", s.peak.Load()>>20, soakMemory>>20)
	}
	if s.honest.Load() == 0 {
		t.Error("no answer was compared")
	}
}

// start starts a server.
func (s *soaked) start() {
	s.t.Helper()
	cmd := exec.Command("grove", "serve", "--addr", "127.0.0.1:0", "--session-dir", s.sessions, "--parallel", "4", "-c", "256", "--memory-limit", strconv.Itoa(soakMemory),
		"--on-demand", "--idle", "5s", "--log-level", "info", "-m", "gopher=gopher-target", "--chat-template", "gopher=chatml", "-m", "other="+filepath.Join(goldens, "llama-gqa.gguf"))
	cmd.Env = append(os.Environ(), "GOTRACEBACK=all")
	stderr, err := os.Create(filepath.Join(s.dir, "stderr"))
	if err != nil {
		s.t.Fatal(err)
	}
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = cmd.Process.Kill() })
	v := &soakServer{cmd: cmd, stderr: stderr}
	for end := time.Now().Add(soakPatience); v.addr == ""; time.Sleep(5 * time.Millisecond) {
		text, err := os.ReadFile(stderr.Name())
		if err != nil || time.Now().After(end) {
			s.t.Fatalf("the server does not listen: %s, %v", text, err)
		}
		if _, rest, ok := strings.Cut(string(text), "listening on http://"); ok && strings.Contains(rest, "\n") {
			v.addr, _, _ = strings.Cut(rest, "\n")
		}
	}
	s.server.Store(v)
}

// warm sends each request alone. The first server says what the answers are.
func (s *soaked) warm(first bool) {
	s.t.Helper()
	for i, c := range s.cases {
		if first {
			c.body = strings.Replace(c.body, `"method":"auto"`, `"method":"off"`, 1)
		}
		status, body, err := s.send(s.server.Load(), c)
		got, e := "", err
		if err == nil {
			got, e = c.read(body)
		}
		if status != 200 || e != nil {
			s.t.Fatalf("%s %s alone: %d %s, %v", c.path, c.body, status, body, e)
		}
		if first {
			s.want = append(s.want, got)
		} else if d := cmp.Diff(s.want[i], got); d != "" {
			s.t.Fatalf("%s %s alone, with drafts: %s", c.path, c.body, d)
		}
	}
}

// send sends a request and returns the answer.
func (s *soaked) send(v *soakServer, c soakCase) (status int, body []byte, err error) {
	answer, err := soakClient.Post("http://"+v.addr+c.path, "application/json", strings.NewReader(c.body))
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	if answer.StatusCode == 429 || answer.StatusCode == 503 {
		if answer.Header.Get("Retry-After") == "" {
			err = fmt.Errorf("%d without Retry-After: %s", answer.StatusCode, body)
		}
	}
	return answer.StatusCode, body, err
}

var soakClient = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4 * soakHonest}}

// load lets all clients loose on the server for a time. Where it is to be killed, it is while they are at work.
func (s *soaked) load(d time.Duration, kill bool) {
	ctx, cancel := context.WithTimeout(s.t.Context(), d)
	defer cancel()
	v := s.server.Load()
	var clients sync.WaitGroup
	for range soakHonest {
		clients.Go(func() { s.behave(ctx, v) })
	}
	for _, f := range faulty {
		clients.Go(func() {
			for ctx.Err() == nil {
				f(s, ctx, v)
				s.faulty.Add(1)
			}
		})
	}
	for _, f := range []func(context.Context, *soakServer){s.pause, s.fill, s.weigh} {
		clients.Go(func() { f(ctx, v) })
	}
	<-ctx.Done()
	if kill {
		v.dying.Store(true)
		_ = v.cmd.Process.Signal(syscall.SIGCONT)
		_ = v.cmd.Process.Kill()
	}
	clients.Wait()
	if kill {
		_ = v.cmd.Wait()
		v.stderr.Close()
	}
}

// behave sends requests one by one and compares the answers.
func (s *soaked) behave(ctx context.Context, v *soakServer) {
	for ctx.Err() == nil && !s.t.Failed() {
		i := rand.IntN(len(s.cases))
		c := s.cases[i]
		full := s.full.Load()
		status, body, err := s.send(v, c)
		full = full || s.full.Load()
		switch {
		case v.dying.Load():
			return
		case err != nil:
			s.t.Errorf("%s %s: %v %s", c.path, c.body, err, body)
		case status == 429 || status == 503:
			s.refused.Add(1)
			time.Sleep(100 * time.Millisecond)
			continue
		case c.session && full && bytes.Contains(body, []byte(`"session_failed"`)):
			s.refused.Add(1)
			continue
		case status != 200:
			s.t.Errorf("%s %s: %d %s", c.path, c.body, status, body)
			continue
		}
		got, err := c.read(body)
		if d := cmp.Diff(s.want[i], got); err != nil || d != "" {
			s.t.Errorf("%s %s under load: %v\n%s", c.path, c.body, err, d)
		}
		s.honest.Add(1)
	}
}

// pause stops the process for some seconds now and then: every clock jumps under it.
func (s *soaked) pause(ctx context.Context, v *soakServer) {
	for wait(ctx, 15*time.Second) {
		_ = v.cmd.Process.Signal(syscall.SIGSTOP)
		wait(ctx, time.Duration(1+rand.IntN(5))*time.Second)
		_ = v.cmd.Process.Signal(syscall.SIGCONT)
	}
}

// fill fills the disk now and then.
func (s *soaked) fill(ctx context.Context, _ *soakServer) {
	ballast := filepath.Join(s.sessions, "0-ballast") // not the name of a session of any request
	for wait(ctx, 10*time.Second) {
		s.full.Store(true)
		_ = os.WriteFile(ballast, make([]byte, soakDisk), 0o644) // it ends where the disk is full
		wait(ctx, 5*time.Second)
		if err := os.Remove(ballast); err != nil {
			s.t.Error(err)
		}
		wait(ctx, 2*time.Second) // of requests that met the full disk
		s.full.Store(false)
	}
}

// weigh watches the memory of the server.
func (s *soaked) weigh(ctx context.Context, v *soakServer) {
	for wait(ctx, 20*time.Millisecond) {
		s.peak.Store(max(s.peak.Load(), v.memory()))
	}
}

// memory returns the bytes that the server takes, without pages of files.
func (v *soakServer) memory() int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.cmd.Process.Pid)) // it may have been killed
	_, rest, _ := strings.Cut(string(text), "RssAnon:")
	field, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, _ := strconv.ParseInt(field, 10, 64)
	return n << 10
}

// quiet waits until the server is at rest, and ends it. It returns the goroutines, the descriptors and the memory that it had.
func (s *soaked) quiet() (goroutines, descriptors int, memory int64) {
	s.t.Helper()
	v := s.server.Load()
	soakClient.CloseIdleConnections()
	least := func() int {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", v.cmd.Process.Pid))
		if err != nil {
			s.t.Fatal(err)
		}
		return len(entries)
	}
	descriptors = least()
	for calm := time.Now(); time.Since(calm) < 8*time.Second; time.Sleep(100 * time.Millisecond) { // models close, connections end
		if n := least(); n < descriptors {
			descriptors, calm = n, time.Now()
		}
	}
	memory = v.memory()
	if err := v.cmd.Process.Signal(syscall.SIGQUIT); err != nil { // the stacks of all goroutines
		s.t.Fatal(err)
	}
	_ = v.cmd.Wait()
	v.stderr.Close()
	text, err := os.ReadFile(v.stderr.Name())
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.Count(string(text), "\ngoroutine "), descriptors, memory
}

// wait waits for a time and reports whether the context lasts.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
