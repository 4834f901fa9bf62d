package exit

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"grove"
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
		{"control characters", errors.New("a\x1b[2J\u009bb"), 1, "grove: a␛[2J\ufffdb\n"},
		{"option", &grove.OptionError{Err: errors.New("engine: no")}, 2, "grove: engine: no\n"},
		{"option in a file", File(&grove.OptionError{Err: errors.New("engine: no")}), 2, "grove: engine: no\n"},
		{"not finite", fmt.Errorf("layer 1: %w", grove.ErrNotFinite), 65, ""},
		{"shrunk", fmt.Errorf("x: %w", &mmap.FaultError{Path: "f", Offset: 3}), 65, "grove: x: mmap: f shrank while mapped, or cannot be read, at byte 3\n"},
		{"output", Output(errors.New("disk full")), 73, "grove: disk full\n"},
		{"signal", SignalError{syscall.SIGTERM}, 143, ""},
		{"signal and output", errors.Join(SignalError{syscall.SIGINT}, Output(errors.New("x"))), 130, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			if got := Report(&b, c.err); got != c.code {
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
	if got := ReportFault(&b, "index out of range\n[3]"); got != 70 {
		t.Errorf("exit code %d, want 70", got)
	}
	const want = "grove: internal error: index out of range; [3]; please report it, with the stack that GROVE_DEBUG=1 prints\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
	t.Setenv("GROVE_DEBUG", "1")
	ReportFault(&b, "again")
	if !strings.Contains(b.String(), "goroutine ") {
		t.Errorf("no stack in %q", b.String())
	}
}
