package flags

import (
	"github.com/alecthomas/kong"

	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"grove/internal/command/exit"
	"grove/internal/command/harmless"
	"grove/internal/command/terminal"
	"grove/internal/weights/find"
	"grove/internal/weights/pull"
)

// Offline is --offline, which all commands have.
type Offline struct {
	On bool `name:"offline" var:"GROVE_OFFLINE" help:"Pull no models from the network; HF_HUB_OFFLINE says the same."`
}

// Parsed implements [Hooked].
func (o *Offline) Parsed() Hook { return Hook{Of: o, Do: o.parsed} }

// parsed tells package pull, which reads the variable.
func (o *Offline) parsed(*kong.Context) error {
	if !o.On {
		return nil
	}
	return os.Setenv("GROVE_OFFLINE", "1")
}

func isUnknown(err error) bool {
	var unknown *find.UnknownError
	return errors.As(err, &unknown)
}

// isAddress reports whether a name is an address of HTTP.
func isAddress(name string) bool {
	return strings.HasPrefix(name, "https://") || strings.HasPrefix(name, "http://")
}

// findOrPull returns the path of the model of a name that [find.Store.Find] does not know in this form: the model was pulled under
// it, or a person agrees to pull it now. missing is the error of the name.
func findOrPull(name string, missing error) (string, error) {
	ref, err := pull.Parse(name)
	switch {
	case err != nil && isAddress(name):
		return "", err
	case err != nil:
		return "", missing
	}
	if local := ref.Local(); local != name {
		path, err := find.System().Find(local)
		if err == nil || !isUnknown(err) {
			return path, err
		}
		if missing == nil {
			missing = err // Find takes an address for a path
		}
	}
	if !pull.Offline() && terminal.Is(os.Stdin) && terminal.Is(os.Stderr) && agreed(ref) {
		ctx, stop := terminal.UntilSignal()
		defer stop()
		got, err := Pull(ctx, ref, pull.Options{}, false)
		return got.Path, err
	}
	return "", fmt.Errorf("%w; 'grove pull %s' looks for it at %s", missing, name, ref.From())
}

// agreed asks a person whether to pull a model. An empty answer means yes.
func agreed(ref pull.Ref) bool {
	fmt.Fprintf(os.Stderr, "grove: %s is not on this machine; pull it from %s? [Y/n] ", harmless.Line(ref.String()), harmless.Line(ref.From()))
	answer, err := bufio.NewReaderSize(oneByte{os.Stdin}, 16).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return err == nil && (answer == "" || answer == "y" || answer == "yes")
}

// oneByte reads single bytes, so that the rest of the input stays for others.
type oneByte struct{ io.Reader }

// Read implements [io.Reader].
func (o oneByte) Read(p []byte) (int, error) { return o.Reader.Read(p[:1]) }

// unwritable are the errors of places that cannot be written, besides those of permissions.
var unwritable = []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.ENOTDIR}

// Pull pulls a model and shows on standard error how far it is, unless it must be quiet. Errors have their exit codes.
func Pull(ctx context.Context, ref pull.Ref, o pull.Options, quiet bool) (pull.Result, error) {
	b := &pullBar{progress: terminal.Bytes(ref.String()), done: map[string]int64{}, all: map[string]int64{}}
	if !quiet {
		o.Progress = b.show
		fmt.Fprintf(os.Stderr, "grove: pulling %s from %s\n", harmless.Line(ref.String()), harmless.Line(ref.From()))
	}
	r, err := pull.Run(ctx, ref, o)
	b.progress.End()
	var space *pull.SpaceError
	switch {
	case err != nil && ctx.Err() != nil:
		return r, exit.Cause(ctx, err)
	case errors.As(err, &space), errors.Is(err, fs.ErrPermission), slices.ContainsFunc(unwritable, func(e error) bool { return errors.Is(err, e) }):
		return r, exit.Output(err)
	case err != nil:
		return r, exit.With(exit.CodeFailed, err)
	}
	return r, nil
}

// pullBar is one bar for all files of a pull.
type pullBar struct {
	progress  *terminal.Progress
	done, all map[string]int64 // bytes of each file
}

// show shows an event.
func (b *pullBar) show(e pull.Event) {
	switch e.State {
	case pull.Note:
		b.progress.Note("grove: " + e.Text)
	case pull.Waiting:
		b.progress.Note(fmt.Sprintf("grove: another process pulls %s; waiting for it", e.File))
	case pull.Pulling, pull.Verifying, pull.Ready:
		b.done[e.File], b.all[e.File] = e.Completed, e.Total
		var done, all int64
		for name, n := range b.all {
			all += n
			done += b.done[name]
		}
		b.progress.ShowBytes(done, all)
	}
}
