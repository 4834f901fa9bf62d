package main

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// checkStatic returns an error where a program needs a loader or libraries.
func checkStatic(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			name := make([]byte, min(p.Filesz, 256))
			_, err := p.ReadAt(name, 0)
			return errors.Join(fmt.Errorf("%s: the loader %s starts the program; it must be static", path, bytes.TrimRight(name, "\x00")), err)
		}
	}
	libraries, err := f.ImportedLibraries()
	if err == nil && len(libraries) > 0 {
		err = fmt.Errorf("%s: the program needs the libraries %v; it must be static", path, libraries)
	}
	return err
}

// TestCheckStatic: programs that are not static are found.
func TestCheckStatic(t *testing.T) {
	for _, path := range []string{"image_linux_test.go", "no such file"} {
		if checkStatic(path) == nil {
			t.Errorf("%s counts as a static program", path)
		}
	}
	const shell = "/bin/bash"
	if out, err := exec.Command("ldd", shell).Output(); err != nil || !bytes.Contains(out, []byte("libc")) {
		t.Skip("no program is known to need libraries")
	}
	if err := checkStatic(shell); err == nil || !strings.Contains(err.Error(), "starts the program") {
		t.Errorf("%s: %v", shell, err)
	}
}

// needBuild skips a test where GROVE_BUILD is not set: building the program takes half a minute, and systemd some seconds.
func needBuild(t *testing.T) {
	t.Helper()
	if os.Getenv("GROVE_BUILD") == "" {
		t.Skip("GROVE_BUILD is not set")
	}
}

// buildCommand is a shell's command that builds the program.
var buildCommand = regexp.MustCompile(`^((?:[A-Z_]+=[\w$]* )+)go build ((?:-\w+(?:="[^"]*")? )*)-o (\S+) \./cmd/grove$`)

// readmeBuild returns README's command that builds the program.
func readmeBuild(t *testing.T) string {
	t.Helper()
	all := builds.FindAllString(readRoot(t, "README.md"), -1)
	if len(all) != 1 {
		t.Fatalf("README.md has the commands %q; it must have one that builds the program", all)
	}
	return strings.TrimSpace(all[0])
}

// built is the program as README's command builds it. The command runs once.
var built = sync.OnceValues(func() (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		return "", err
	}
	command := strings.TrimSpace(builds.FindString(string(text)))
	m := buildCommand.FindStringSubmatch(command)
	if m == nil {
		return "", fmt.Errorf("%q is not VARIABLE=VALUE go build [FLAGS] -o FILE ./cmd/grove", command)
	}
	out := filepath.Join(os.Getenv("HOME"), "built") // the directory of TestMain
	c := exec.Command("sh", "-c", strings.Replace(command, " -o "+m[3]+" ", ` -o "$OUT" `, 1))
	c.Dir = root
	c.Env = append(os.Environ(), "OUT="+out, "CGO_ENABLED=1", "HOME="+realHome, "XDG_CACHE_HOME="+realCache) // the command must say CGO_ENABLED=0
	if text, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", command, err, text)
	}
	return out, nil
})

// The user's directories before TestMain changes them.
var realHome, realCache = os.Getenv("HOME"), os.Getenv("XDG_CACHE_HOME")

// theUser is the user and the group in a root file system.
const theUser = 65532

// inRoot returns a command that runs as an ordinary user with a directory as its root. The process may have to be root, or to
// have the right to make user namespaces.
func inRoot(t *testing.T, dir string, env []string, command ...string) *exec.Cmd {
	t.Helper()
	c := &exec.Cmd{Path: command[0], Args: command, Dir: "/", Env: env, SysProcAttr: &syscall.SysProcAttr{Chroot: dir, Pdeathsig: syscall.SIGKILL}}
	if os.Getuid() == 0 {
		c.SysProcAttr.Credential = &syscall.Credential{Uid: theUser, Gid: theUser}
		return c
	}
	c.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
	c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: theUser, HostID: os.Getuid(), Size: 1}}
	c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: theUser, HostID: os.Getgid(), Size: 1}}
	return c
}

// start starts a command of inRoot, or skips the test where this machine gives no process a root of its own.
func start(t *testing.T, c *exec.Cmd) {
	t.Helper()
	err := c.Start()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EINVAL) {
		t.Skipf("a process with a root of its own is not to be had: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// copyFile copies a file to a place below a root. Its directories are made.
func copyFile(t *testing.T, from, to string, mode fs.FileMode) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = os.WriteFile(to, b, mode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// maxProgram bounds the bytes of the program, so that a library that doubles it is seen. The goal is 36,000,000.
const maxProgram = 36_500_000

// TestReadmeBuild: the program that README's command builds is static and not larger than it should be. It runs where there is nothing beside it.
func TestReadmeBuild(t *testing.T) {
	needBuild(t)
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	if err := checkStatic(program); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(program); err != nil {
		t.Error(err)
	} else if info.Size() > maxProgram {
		t.Errorf("the program has %d bytes; want at most %d", info.Size(), maxProgram)
	}
	dir := filepath.Join(t.TempDir(), "root")
	copyFile(t, program, filepath.Join(dir, "grove"), 0o755)
	for _, args := range [][]string{{"version"}, {"run", "--temp", "0", "-n", "8", "func main() {"}} {
		var out, errs bytes.Buffer
		c := inRoot(t, dir, nil, append([]string{"/grove"}, args...)...)
		c.Stdout, c.Stderr = &out, &errs
		if start(t, c); c.Wait() != nil {
			t.Fatalf("grove %s: %s\n%s", args, c.ProcessState, errs.Bytes())
		}
		if args[0] == "version" {
			continue
		}
		want, err := exec.Command("grove", args...).Output()
		if err != nil || out.String() != string(want) {
			t.Errorf("grove %s writes %q alone in its root, and %q here (%v)", args, out.Bytes(), want, err)
		}
	}
}

// assemble makes the root file system that the Dockerfile describes, with the program that README's command builds.
func assemble(t *testing.T, stages [][]instruction, im image, program, certificates string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "root")
	made := map[string]string{"/etc/ssl/certs/ca-certificates.crt": certificates} // of the build stage, by their names there
	empty := map[string][]string{}
	readme := buildCommand.FindStringSubmatch(readmeBuild(t))
	for _, i := range stages[0] {
		m := buildCommand.FindStringSubmatch(i.args)
		switch {
		case i.name != "RUN":
		case m != nil:
			if variables := strings.Replace(m[1], "GOOS=$TARGETOS GOARCH=$TARGETARCH ", "", 1); variables != readme[1] || m[2] != readme[2] {
				t.Fatalf("the image is built by %q, and README says %q", m[0], readme[0])
			}
			made[m[3]] = program
		case strings.HasPrefix(i.args, "mkdir -p "):
			for path := range strings.FieldsSeq(i.args[len("mkdir -p "):]) {
				parent, name := filepath.Split(path)
				empty[parent] = append(empty[parent], name)
			}
		case i.args != "go mod download":
			t.Fatalf("RUN %s: this test does not know it", i.args)
		}
	}
	for _, c := range im.copies {
		target := filepath.Join(dir, c.target)
		switch from, known := made[c.source]; {
		case c.from == "":
			copyFile(t, filepath.Join(root, c.source), target, 0o644)
		case known:
			copyFile(t, from, target, 0o755)
		case len(empty[c.source]) > 0:
			for _, name := range empty[c.source] {
				own(t, filepath.Join(target, name), c.owner)
			}
		default:
			t.Fatalf("COPY %s: the build stage does not make it", c.source)
		}
	}
	return dir
}

// own makes a directory that belongs to a user.
func own(t *testing.T, dir, owner string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() != 0 {
		return // in its namespace the test's user is the image's
	}
	user, group, _ := strings.Cut(owner, ":")
	uid, err1 := strconv.Atoi(user)
	gid, err2 := strconv.Atoi(group)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
}

// TestImageRuns: in the root file system of the image, its commands run as its user, and the server answers.
func TestImageRuns(t *testing.T) {
	needBuild(t)
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	stages, im := dockerfile(t)
	hub := newAuthority(t)
	dir := assemble(t, stages, im, program, hub.file)
	env := []string{"GROVE_ADDR=127.0.0.1:0"}
	for name, value := range im.env {
		if name != "GROVE_ADDR" {
			env = append(env, name+"="+value)
		}
	}
	if im.user != fmt.Sprintf("%d:%d", theUser, theUser) {
		t.Fatalf("the image's user is %s; the test runs it as %d", im.user, theUser)
	}
	for _, volume := range im.volumes {
		if info, err := os.Stat(filepath.Join(dir, volume)); err != nil || !info.IsDir() {
			t.Errorf("the volume %s: %v", volume, err)
		}
	}
	pull := inRoot(t, dir, append(env, "HF_ENDPOINT="+hub.URL), "/grove", "pull", "org/model")
	if start(t, pull); pull.Wait() == nil || hub.asked.Load() == 0 {
		t.Errorf("grove pull asks a hub whose certificate the image knows %d times, and ends with %v", hub.asked.Load(), pull.ProcessState)
	}
	c := inRoot(t, dir, env, append(im.entrypoint, im.args...)...)
	errs, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, c)
	t.Cleanup(func() { _ = c.Process.Kill() }) // it may have ended
	s := &running{cmd: c, lines: bufio.NewReader(errs)}
	line, err := s.lines.ReadString('\n')
	_, s.url, _ = strings.Cut(strings.TrimSpace(line), "listening on ")
	if err != nil || s.url == "" {
		t.Fatalf("%q, %v", line, err)
	}
	healthy := func() error {
		check := inRoot(t, dir, append(env, "GROVE_ADDR="+strings.TrimPrefix(s.url, "http://")), im.health...)
		start(t, check)
		return check.Wait()
	}
	for end := time.Now().Add(30 * time.Second); healthy() != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the server does not become healthy")
		}
	}
	s.ready(t) // says the same from outside
	answer, err := http.Post(s.url+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"a","max_tokens":20}`))
	if err != nil || answer.StatusCode != 200 {
		t.Fatalf("%v, %v", answer, err)
	}
	answer.Body.Close()
	if code := s.stop(t, syscall.SIGTERM); code != 0 {
		t.Errorf("the server ends with %d", code)
	}
	if written, err := os.ReadDir(filepath.Join(dir, "cache")); err != nil || len(written) == 0 {
		t.Errorf("the server has written nothing to its cache: %v, %v", written, err)
	}
	if healthy() == nil {
		t.Error("a server that has stopped is healthy")
	}
}

// authority is a server with a certificate that its own file alone vouches for, which stands for the file of the build stage.
type authority struct {
	*httptest.Server
	file  string
	asked atomic.Int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{file: filepath.Join(t.TempDir(), "certificates")}
	a.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		a.asked.Add(1)
		http.Error(w, "no such model", http.StatusNotFound)
	}))
	t.Cleanup(a.Close)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw})
	if err := os.WriteFile(a.file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestUnitVerified asks systemd about the unit.
func TestUnitVerified(t *testing.T) {
	needBuild(t)
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	self, err := os.Executable() // systemd wants a program that there is
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(readRoot(t, "deploy/systemd/grove.service"), "ExecStart=/usr/local/bin/grove ", "ExecStart="+self+" ", 1)
	text = regexp.MustCompile(`(?m)^Documentation=.*\n`).ReplaceAllString(text, "") // it would look for the manual page
	file := filepath.Join(t.TempDir(), "grove.service")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, "verify", file).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	out, err := exec.Command(tool, "security", "--offline=yes", "--no-pager", "--threshold=20", file).CombinedOutput() // of 100
	if err != nil && !strings.Contains(string(out), "unrecognized option") {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
}
