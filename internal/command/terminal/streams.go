// Package terminal reads standard input, writes standard output, and turns signals into the ends of contexts, for a
// person at a terminal or for other programs.
package terminal

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"grove/internal/command/exit"
	"grove/internal/fileio"
)

// Stdout is standard output, [os.Stdout]. When its reader has gone, a write ends the program without a message.
var Stdout Output

// Output writes results to standard output. Its errors have the code of [exit.Output].
type Output struct{}

// CheckFile returns an error with the code of [exit.Output] where [WriteFile] could not write a result, or would overwrite a
// file that the command reads: one of reads, or in a folder of reads. It is for the time before the work.
func CheckFile(path string, reads ...string) error {
	return exit.Output(fileio.Check(path, reads...))
}

// CheckOptional is CheckFile for the file of a flag, which is "" where none is written.
func CheckOptional(path string, reads ...string) error {
	if path == "" {
		return nil
	}
	return CheckFile(path, reads...)
}

// WriteFile writes the file of a result with what fill writes: all of it, or what was there stays. Errors of the file have
// the code of [exit.Output]; other errors of fill are returned as they are.
func WriteFile(path string, fill func(io.Writer) error) error {
	var own error
	err := fileio.WriteAtomic(path, func(w io.Writer) error {
		own = fill(exit.OutputTo(w))
		return own
	})
	if own != nil {
		return own
	}
	return exit.Output(err)
}

// WriteFileAt is [WriteFile] for a result that is not written from its first byte to its last.
func WriteFileAt(path string, fill func(io.WriterAt) error) error {
	return WriteFile(path, func(w io.Writer) error { return fill(w.(io.WriterAt)) })
}

// Write implements [io.Writer].
func (Output) Write(b []byte) (int, error) {
	n, err := os.Stdout.Write(b)
	return n, exit.Output(err)
}

// MaxText bounds the bytes of a text that is read from standard input or a file.
const MaxText = 64 << 20

// ReadInput returns all of standard input, [MaxText] bytes at most. At a terminal, it first says on standard error that it reads the named thing.
func ReadInput(what string) (string, error) {
	if Is(os.Stdin) {
		fmt.Fprintf(os.Stderr, "grove: reading %s from standard input\n", what)
	}
	b, err := io.ReadAll(io.LimitReader(os.Stdin, MaxText+1))
	if err == nil && len(b) > MaxText {
		err = fmt.Errorf("it has more than %d bytes", MaxText)
	}
	if err != nil {
		return "", fmt.Errorf("standard input: %w", err)
	}
	return string(b), nil
}

// Is reports whether a file is a character device other than the null device.
func Is(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// Styled reports whether standard output is a terminal that shows colours and moves its cursor, as its user wants: TERM is
// not dumb, and NO_COLOR is not set.
func Styled() bool {
	return Is(os.Stdout) && os.Getenv("TERM") != "dumb" && os.Getenv("NO_COLOR") == "" && obeys(os.Stdout)
}

// Size returns the present size of the terminal of standard output.
func Size() (columns, rows int) { return sizeOf(os.Stdout) }

// sizeOf returns the present size of a file's terminal, that of a usual one where it is not known.
func sizeOf(f *os.File) (columns, rows int) {
	columns, rows, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 || rows <= 0 {
		return usualColumns, usualRows
	}
	return columns, rows
}

// The size of a usual terminal.
const (
	usualColumns = 80
	usualRows    = 24
)

// Columns reports whether standard output is a terminal, and its present width; 0: unknown.
func Columns() (terminal bool, width int) {
	if !Is(os.Stdout) {
		return false, 0
	}
	width, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return true, 0
	}
	return true, width
}
