package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"grove"
	"grove/compute"
	"grove/internal/mmap"
	"grove/kv"
	"grove/text/jinja"
)

// The exit codes, as docs/cli.md lists them.
const (
	exitOK       = 0
	exitFailed   = 1
	exitUsage    = 2
	exitFile     = 65
	exitAddress  = 69
	exitInternal = 70
	exitOutput   = 73
	exitVariable = 78
	exitSignal   = 128 // and the signal's number
)

// fileError says that a model file cannot be used.
type fileError struct{ error }

func (e fileError) Unwrap() error { return e.error }

// outputError says that a result could not be written.
type outputError struct{ error }

func (e outputError) Unwrap() error { return e.error }

// variableError says that an environment variable makes no sense.
type variableError struct {
	name string
	err  error
}

func (e *variableError) Error() string { return e.name + ": " + e.err.Error() }

// signalError says that a signal has ended the work, which left nothing to explain.
type signalError struct{ syscall.Signal }

func (e signalError) Error() string { return e.String() }

// report writes an error as one line to w and returns the exit code that it stands for.
func report(w io.Writer, err error) int {
	code := exitCode(err)
	if code == exitOK || code > exitSignal {
		return code
	}
	text := err.Error()
	if v := new(variableError); errors.As(err, &v) {
		text = v.Error() // without the flag that it stands for
	}
	text = strings.ReplaceAll(strings.TrimPrefix(text, "grove: "), ": grove: ", ": ") // named once
	text = strings.ReplaceAll(text, "\n", "; ")
	fmt.Fprintln(w, "grove:", text)
	return code
}

func exitCode(err error) int {
	var (
		parse    *kong.ParseError
		option   *grove.OptionError
		variable *variableError
		file     fileError
		output   outputError
		signal   signalError
		fault    *mmap.FaultError
		address  listenError
		template *jinja.Error
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &signal):
		return exitSignal + int(signal.Signal)
	case errors.As(err, &address):
		return exitAddress
	case errors.As(err, &output):
		return exitOutput
	case errors.As(err, &variable):
		return exitVariable
	case errors.As(err, &parse), errors.As(err, &option):
		return exitUsage
	case errors.As(err, &file), errors.As(err, &fault), errors.As(err, &template), errors.Is(err, compute.ErrNotFinite), errors.Is(err, kv.ErrFile):
		return exitFile
	}
	return exitFailed
}

// reportFault writes what a panic left behind, with the stack where GROVE_DEBUG is 1, and returns the exit
// code.
func reportFault(w io.Writer, fault any) int {
	text := strings.ReplaceAll(fmt.Sprint(fault), "\n", "; ")
	fmt.Fprintf(w, "grove: internal error: %s; please report this with what GROVE_DEBUG=1 adds to it\n", text)
	if os.Getenv("GROVE_DEBUG") == "1" {
		w.Write(debug.Stack())
	}
	return exitInternal
}
