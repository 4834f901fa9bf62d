package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

// stdout is standard output. A reader that went away ends the program in silence, as usual.
var stdout = output{os.Stdout}

// output is a file for results, whose errors are outputErrors.
type output struct{ file *os.File }

// Write implements [io.Writer].
func (o output) Write(b []byte) (int, error) {
	n, err := o.file.Write(b)
	return n, asOutputError(err)
}

// Close implements [io.Closer].
func (o output) Close() error { return asOutputError(o.file.Close()) }

func asOutputError(err error) error {
	if err == nil {
		return nil
	}
	return outputError{err}
}

// readInput returns all of standard input, and says that it waits for what where a person must type it.
func readInput(what string) (string, error) {
	if isTerminal(os.Stdin) {
		fmt.Fprintf(os.Stderr, "grove: reading %s from standard input\n", what)
	}
	b, err := io.ReadAll(os.Stdin)
	if err != nil {
		return "", fmt.Errorf("standard input: %w", err)
	}
	return string(b), nil
}

// isTerminal reports whether f is a character device and not the null device.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// columns tells whether standard output is a terminal, and how wide it is now, 0 where that is not known.
func columns() (terminal bool, width int) {
	if !isTerminal(stdout.file) {
		return false, 0
	}
	width, _, err := term.GetSize(int(stdout.file.Fd()))
	if err != nil {
		return true, 0
	}
	return true, width
}

// untilSignal returns a context that ends, with a signalError as its cause, when the process is
// interrupted or told to terminate. A second signal ends the process.
func untilSignal() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(signalError{s.(syscall.Signal)})
		case <-ctx.Done():
			signal.Stop(signals)
		}
	}()
	return ctx, func() { cancel(nil) }
}
