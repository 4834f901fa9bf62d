package flags

import (
	"bytes"
	"context"
	"io"

	"grove/internal/command/exit"
	"grove/internal/command/harmless"
	"grove/internal/command/terminal"
)

// Report is the result of a measurement.
type Report interface {
	WriteText(w io.Writer) error
	WriteJSON(w io.Writer) error
}

// Report runs a measurement until its end or a signal, shows its progress in the named units, and writes its report to
// standard output.
func (f JSON) Report(unit string, measure func(ctx context.Context, show func(done, all int)) (Report, error)) error {
	ctx, stop := terminal.UntilSignal()
	defer stop()
	progress := terminal.Steps(unit)
	r, err := measure(ctx, progress.Show)
	progress.End()
	switch {
	case err != nil:
		return exit.Cause(ctx, err)
	case f.On:
		return r.WriteJSON(harmless.JSON(terminal.Stdout))
	}
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		return err
	}
	_, err = io.WriteString(terminal.Stdout, harmless.Text(text.String())) // all at once: a report may ignore errors of all writes but its last
	return err
}
