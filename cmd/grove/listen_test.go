//go:build unix

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io/fs"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// runProgram runs the program with variables, and returns what it writes and its exit code.
func runProgram(t *testing.T, env []string, args ...string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "grove", args...)
	cmd.Env = append(os.Environ(), env...)
	out, _ := cmd.CombinedOutput() // the exit code tells
	return string(out), cmd.ProcessState.ExitCode()
}

// awaitHealth waits until the server of some flags takes requests.
func awaitHealth(t *testing.T, env []string, args ...string) {
	t.Helper()
	text, code := "", -1
	for end := time.Now().Add(time.Minute); code != 0 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		text, code = runProgram(t, env, append([]string{"health"}, args...)...)
	}
	if code != 0 {
		t.Fatalf("grove health %v: %s", args, text)
	}
}

// TestServeSocket serves on Unix sockets: their modes, the commands that ask there, and a socket that is left by another server, or has one.
func TestServeSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "grove-test") // a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "a.sock")
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	if err := stale.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		mode fs.FileMode
		args []string
		env  []string
		url  string
	}{
		{0o600, []string{"--addr", "unix:" + path}, []string{"GROVE_ADDR=unix:" + path}, "unix:" + path},
		{0o600, []string{"--uds", path}, []string{"GROVE_ADDR=" + path}, "unix:" + path},
		{0o660, []string{"--host", path, "--socket-mode", "0660", "--api-prefix", "/llm"}, []string{"GROVE_HOST=" + path, "GROVE_PATH_PREFIX=/llm"}, "unix:" + path + ":/llm"},
	} {
		s := startServer(t, append(c.args, "-m", "small="+goldens+"/llama-gqa.gguf")...)
		if s.url != c.url {
			t.Errorf("it listens on %s, want %s", s.url, c.url)
		}
		info, err := os.Lstat(path)
		if err != nil || info.Mode() != fs.ModeSocket|c.mode {
			t.Errorf("%v %v, want mode %v", info, err, c.mode)
		}
		awaitHealth(t, c.env)
		for _, args := range [][]string{{"ps"}, {"stop", "small"}, {"ps", "--url", c.url}} {
			if text, code := runProgram(t, c.env, args...); code != 0 || !strings.Contains(text, "small") {
				t.Errorf("grove %v: %d %s", args, code, text)
			}
		}
		if text, code := runProgram(t, nil, "serve", "--addr", "unix:"+path); code != 69 || !strings.Contains(text, "another program listens there") {
			t.Errorf("a second server: %d %s", code, text)
		}
		if code := s.stop(t, syscall.SIGTERM); code != 0 {
			t.Errorf("exit code %d", code)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("it leaves %v %v", left, err)
		}
		if text, code := runProgram(t, c.env, "ps"); code == 0 || !strings.Contains(text, "no server answers at unix:"+path) {
			t.Errorf("no server: %d %s", code, text)
		}
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		wants string
		args  []string
	}{
		{"there is a file that is no socket", []string{"--addr", "unix:" + path}},
		{"no such file or directory", []string{"--addr", "unix:" + dir + "/none/a.sock"}},
		{"too long for a socket", []string{"--addr", "unix:" + dir + "/" + strings.Repeat("a", 200)}},
		{"has none", []string{"--addr", "unix:" + dir + "/b", "--port", "1"}},
		{"is not an address", []string{"--addr", "unix:"}},
		{`--socket-mode: "rw" is not a mode`, []string{"--addr", "unix:" + dir + "/b", "--socket-mode", "rw"}},
		{`is not a path such as /llm`, []string{"--path-prefix", "llm"}},
		{`is not a path such as /llm`, []string{"--path-prefix", "/a/../b"}},
		{`is not a path such as /llm`, []string{"--path-prefix", "/a b"}},
		{"is a Unix socket", []string{}},
	} {
		args := append([]string{"serve"}, c.args...)
		if len(c.args) == 0 {
			args = []string{"bench", "serve", "--url", "unix:" + path}
		}
		if text, code := runProgram(t, nil, args...); code == 0 || !strings.Contains(text, c.wants) {
			t.Errorf("%v: %d %s", args, code, text)
		}
	}
}

// writeCertificate writes a certificate that is valid for some time, and its key.
func writeCertificate(t *testing.T, cert, key string, serial int64, valid time.Duration) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "grove"}, NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(valid), DNSNames: []string{"grove.test"},
	}
	text, err := x509.CreateCertificate(rand.Reader, form, form, secret.Public(), secret)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: text}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestServeTLS serves by TLS, asks by the commands, and replaces the certificate while the server runs.
func TestServeTLS(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	writeCertificate(t, at("cert"), at("key"), 1, time.Hour)
	writeCertificate(t, at("other"), at("other.key"), 2, time.Hour)
	writeCertificate(t, at("old"), at("old.key"), 3, -time.Hour)
	for _, c := range []struct {
		wants string
		args  []string
	}{
		{"--tls-cert: " + at("cert") + ": it needs its key", []string{"--tls-cert", at("cert")}},
		{"--tls-key: " + at("key") + ": it needs its certificate", []string{"--tls-key", at("key")}},
		{"--tls-cert: " + at("none") + ": no such file", []string{"--tls-cert", at("none"), "--tls-key", at("key")}},
		{"--tls-key: " + at("none") + ": no such file", []string{"--tls-cert", at("cert"), "--tls-key", at("none")}},
		{"--tls-cert: " + at("key") + ": it has no certificate", []string{"--tls-cert", at("key"), "--tls-key", at("key")}},
		{"--tls-key: " + at("other.key") + ": it is not the key of " + at("cert"), []string{"--tls-cert", at("cert"), "--tls-key", at("other.key")}},
		{"--tls-cert: " + at("old") + ": the certificate was valid until", []string{"--tls-cert", at("old"), "--tls-key", at("old.key")}},
	} {
		text, code := runProgram(t, nil, append([]string{"serve", "--addr", "127.0.0.1:0", "-m", at("no-model")}, c.args...)...)
		if code == 0 || !strings.Contains(text, c.wants) || strings.Contains(text, "no-model") {
			t.Errorf("%v: %d %s", c.args, code, text)
		}
	}
	s := startServer(t, "--tls-cert", at("cert"), "--tls-key", at("key"), "-m", "small="+goldens+"/llama-gqa.gguf")
	address, tls := strings.CutPrefix(s.url, "https://")
	if !tls {
		t.Fatalf("it listens on %s", s.url)
	}
	env := []string{"GROVE_ADDR=" + address, "GROVE_TLS_CERT=" + at("cert")}
	awaitHealth(t, env)
	if text, code := runProgram(t, env, "ps"); code != 0 || !strings.Contains(text, "small") {
		t.Errorf("ps: %d %s", code, text)
	}
	if text, code := runProgram(t, nil, "health", "--addr", address, "--tls-cert", at("other")); code == 0 || !strings.Contains(text, "another certificate") {
		t.Errorf("another certificate: %d %s", code, text)
	}
	if text, code := runProgram(t, nil, "ps", "--url", s.url); code == 0 || !strings.Contains(text, "certificate") {
		t.Errorf("a certificate that no authority knows: %d %s", code, text)
	}
	if text, code := runProgram(t, nil, "ps", "--url", "http://"+address); code == 0 || !strings.Contains(text, "400 Bad Request") {
		t.Errorf("without TLS: %d %s", code, text)
	}
	for _, step := range []struct{ cert, says, shows string }{{"other", "the certificate is read again", "other"}, {"", "the certificate stays as it was", "other"}} {
		for from, to := range map[string]string{step.cert: "cert", step.cert + ".key": "key"} {
			text, _ := os.ReadFile(at(from)) // of no file: an empty one
			if err := os.WriteFile(at(to), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		for line := ""; !strings.Contains(line, step.says); {
			var err error
			if line, err = s.lines.ReadString('\n'); err != nil {
				t.Fatalf("%q is not logged: %v", step.says, err)
			}
		}
		if text, code := runProgram(t, nil, "health", "--addr", address, "--tls-cert", at(step.shows)); code != 0 {
			t.Errorf("it does not show %s: %s", step.shows, text)
		}
	}
	if code := s.stop(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
