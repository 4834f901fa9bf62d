package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"grove"
	"grove/compute"
	"grove/internal/kernel"
	"grove/internal/mmap"
)

// TestReport covers the exit codes that scripts cannot reach, and the shape of messages.
func TestReport(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		code int
		line string
	}{
		{"none", nil, 0, ""},
		{"plain", errors.New("it failed"), 1, "grove: it failed\n"},
		{"prefix once", errors.New("grove: it failed"), 1, "grove: it failed\n"},
		{"one line", errors.Join(errors.New("it failed"), errors.New("so did that")), 1, "grove: it failed; so did that\n"},
		{"option", &grove.OptionError{Err: errors.New("engine: no")}, 2, "grove: engine: no\n"},
		{"option in a file", fileError{&grove.OptionError{Err: errors.New("engine: no")}}, 2, "grove: engine: no\n"},
		{"not finite", fmt.Errorf("layer 1: %w", compute.ErrNotFinite), 65, ""},
		{"shrunk", fmt.Errorf("x: %w", &mmap.FaultError{Path: "f", Offset: 3}), 65, "grove: x: mmap: f shrank while mapped, or cannot be read, at byte 3\n"},
		{"output", outputError{errors.New("disk full")}, 73, "grove: disk full\n"},
		{"signal", signalError{syscall.SIGTERM}, 143, ""},
		{"signal and output", errors.Join(signalError{syscall.SIGINT}, outputError{errors.New("x")}), 130, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			if got := report(&b, c.err); got != c.code {
				t.Errorf("exit code %d, want %d", got, c.code)
			}
			if c.line != "" && b.String() != c.line {
				t.Errorf("got %q, want %q", b.String(), c.line)
			}
			if n := strings.Count(b.String(), "\n"); n > 1 {
				t.Errorf("%d lines", n)
			}
		})
	}
}

// TestReportFault asks for one line, and for the stack where that is wanted.
func TestReportFault(t *testing.T) {
	var b bytes.Buffer
	if got := reportFault(&b, "index out of range\n[3]"); got != 70 {
		t.Errorf("exit code %d, want 70", got)
	}
	const want = "grove: internal error: index out of range; [3]; please report this with what GROVE_DEBUG=1 adds to it\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
	t.Setenv("GROVE_DEBUG", "1")
	reportFault(&b, "again")
	if !strings.Contains(b.String(), "goroutine ") {
		t.Errorf("no stack in %q", b.String())
	}
}

// TestChooseKernels: an unknown name is refused with those that are known, which all can be chosen.
func TestChooseKernels(t *testing.T) {
	defer kernel.Use(kernel.Implementation())
	err := chooseKernels("sse9")
	want := `GROVE_KERNELS: "sse9" is not among the kernels of this machine: ` + strings.Join(kernel.Implementations(), ", ")
	if err == nil || err.Error() != want || exitCode(err) != exitVariable {
		t.Errorf("got %v, exit code %d, want %s, %d", err, exitCode(err), want, exitVariable)
	}
	for _, name := range kernel.Implementations() {
		if err := chooseKernels(name); err != nil || kernel.Implementation() != name {
			t.Errorf("choosing %s: %v, in use is %s", name, err, kernel.Implementation())
		}
	}
}
