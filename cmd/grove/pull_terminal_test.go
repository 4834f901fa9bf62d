//go:build linux

package main

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestOffer: at a terminal, a model that can be pulled is offered, pulled with a bar, and used. A refusal ends the program, and
// nothing is asked without a terminal, or without a network.
func TestOffer(t *testing.T) {
	server := httptest.NewServer(registryHandler())
	defer server.Close()
	home, host := t.TempDir(), strings.TrimPrefix(server.URL, "http://")
	start := func(arguments ...string) (*console, func() error) {
		term, tty := openTerminal(t, 100)
		cmd := exec.CommandContext(t.Context(), "grove", arguments...)
		cmd.Env = append(os.Environ(), "HF_ENDPOINT="+server.URL, "HF_HUB_CACHE="+home, "LLAMA_CACHE="+home, "OLLAMA_MODELS="+home)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return term, cmd.Wait
	}
	term, wait := start("run", "-m", "org/tiny:Q8_0", "-n", "2", "--temp", "0", "package ")
	term.sees("grove: org/tiny:Q8_0 is not on this machine; pull it from " + host + "? [Y/n] ")
	term.types("n\r")
	term.sees("'grove pull org/tiny:Q8_0' looks for it at " + host)
	if wait() == nil {
		t.Error("the program succeeds without a model")
	}
	term, wait = start("run", "-m", "org/tiny:Q8_0", "--offline", "package ")
	if said := term.sees("'grove pull org/tiny:Q8_0'"); strings.Contains(said, "[Y/n]") || wait() == nil {
		t.Errorf("the terminal shows %q", said)
	}
	term, wait = start("run", "-m", "hf.co/org/tiny:Q8_0", "-n", "2", "--temp", "0", "package ")
	term.sees("[Y/n] ")
	term.types("\r")
	term.sees("grove: pulling org/tiny:Q8_0 from " + host)
	term.sees(`left out, because grove reads text alone: "mmproj-tiny.gguf"`)
	term.sees("package ")
	if err := wait(); err != nil {
		t.Error(err)
	}
	term, wait = start("run", "hf.co/org/tiny:Q8_0", "-n", "2", "--temp", "0", "package ")
	if said := term.sees("package "); strings.Contains(said, "[Y/n]") || wait() != nil {
		t.Errorf("the terminal shows %q", said)
	}
}
