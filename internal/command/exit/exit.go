// Package exit turns the error of a command into a line on standard error and an exit code. docs/cli.md lists the codes.
package exit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"grove"
	"grove/internal/command/harmless"
	"grove/internal/mmap"
	"grove/internal/text/jinja"
)

// The exit codes.
const (
	CodeOK       = 0
	CodeFailed   = 1
	CodeUsage    = 2
	CodeFile     = 65
	CodeAddress  = 69
	CodeInternal = 70
	CodeOutput   = 73
	CodeVariable = 78
	CodeSignal   = 128 // plus the number of the signal
)

// Error is an error with its exit code.
type Error struct {
	Code int
	Err  error
}

// Error returns the reason.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// ParseError is the error of a command line that is refused.
type ParseError struct {
	Err  error
	Line *kong.Context // as far as it was read
}

// Error returns the reason.
func (e *ParseError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *ParseError) Unwrap() error { return e.Err }

// With returns an error with an exit code; nil stays nil.
func With(code int, err error) error {
	if err == nil {
		return nil
	}
	return &Error{code, err}
}

// File returns the error of a file that cannot be used; nil stays nil.
func File(err error) error { return With(CodeFile, err) }

// Output returns the error of a result that cannot be written; nil stays nil.
func Output(err error) error { return With(CodeOutput, err) }

// OutputTo returns a writer that writes to w and whose errors have the code of [Output]. It is an [io.WriterAt] where w is one.
func OutputTo(w io.Writer) io.Writer {
	if at, ok := w.(io.WriterAt); ok {
		return outputAt{outputTo{w}, at}
	}
	return outputTo{w}
}

type outputAt struct {
	io.Writer
	at io.WriterAt
}

// WriteAt implements [io.WriterAt].
func (o outputAt) WriteAt(b []byte, off int64) (int, error) {
	n, err := o.at.WriteAt(b, off)
	return n, Output(err)
}

type outputTo struct{ w io.Writer }

// Write implements [io.Writer].
func (o outputTo) Write(b []byte) (int, error) {
	n, err := o.w.Write(b)
	return n, Output(err)
}

// VariableError reports an environment variable whose value is refused.
type VariableError struct {
	Name string
	Err  error
}

// Error returns the name of the variable and the reason.
func (e *VariableError) Error() string { return e.Name + ": " + e.Err.Error() }

// SignalError reports that a signal ended the work. It prints nothing.
type SignalError struct{ syscall.Signal }

// Error returns the name of the signal.
func (e SignalError) Error() string { return e.String() }

// Cause returns the cause of a context that has ended, a [SignalError] for instance, and err otherwise.
func Cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Report writes an error as one line to w and returns its exit code.
func Report(w io.Writer, err error) int {
	code := Code(err)
	if code == CodeOK || code > CodeSignal {
		return code
	}
	text := err.Error()
	if v := new(VariableError); errors.As(err, &v) {
		text = v.Error() // without the flag that takes its value
	}
	text = strings.ReplaceAll(strings.TrimPrefix(text, "grove: "), ": grove: ", ": ") // the prefix stands once
	lines := slices.Compact(strings.Split(text, "\n"))                                // joined errors may say the same twice
	fmt.Fprintln(w, "grove:", harmless.Line(strings.Join(lines, "; ")))
	return code
}

// Code returns the exit code of an error. A signal counts before all else; the options of a model before its file.
func Code(err error) int {
	var (
		signal   SignalError
		coded    *Error
		variable *VariableError
		parse    *ParseError
		option   *grove.OptionError
		spec     *grove.SpecError
		fault    *mmap.FaultError
		template *jinja.Error
	)
	switch {
	case err == nil:
		return CodeOK
	case errors.As(err, &signal):
		return CodeSignal + int(signal.Signal)
	case errors.As(err, &coded) && coded.Code != CodeFile:
		return coded.Code
	case errors.As(err, &variable):
		return CodeVariable
	case errors.As(err, &spec):
		return CodeFile
	case errors.As(err, &parse), errors.As(err, &option):
		return CodeUsage
	case coded == nil && (errors.Is(err, grove.ErrSession) || errors.Is(err, grove.ErrCost)):
		return CodeOutput
	case coded != nil, errors.As(err, &fault), errors.As(err, &template),
		errors.Is(err, grove.ErrNotFinite), errors.Is(err, grove.ErrSessionFile):
		return CodeFile
	}
	return CodeFailed
}

// ReportFault writes the value of a panic as one line to w, followed by the stack if the variable GROVE_DEBUG is 1, and
// returns the exit code.
func ReportFault(w io.Writer, fault any) int {
	text := harmless.Line(strings.ReplaceAll(fmt.Sprint(fault), "\n", "; "))
	fmt.Fprintf(w, "grove: internal error: %s; please report it, with the stack that GROVE_DEBUG=1 prints\n", text)
	if os.Getenv("GROVE_DEBUG") == "1" {
		w.Write(debug.Stack())
	}
	return CodeInternal
}
