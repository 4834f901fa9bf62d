package beam

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
)

func init() {
	register.DoFn4x1[context.Context, int, func(*[]byte) bool, func(*string) bool, error](new(writeFn))
	register.Iter1[[]byte]()
	register.Iter1[string]()
}

// Write writes lines of text to a file of Beam's file systems, in any order, and replaces what is there. One worker writes a file. Beam's textio writes none where there are no
// lines, so that an old one would stay, and others could read a file that is not complete.
func Write(s beam.Scope, path string, lines beam.PCollection) {
	s = s.Scope("grove.Write")
	always := beam.AddFixedKey(s, beam.Impulse(s)) // makes a group also where there are no lines
	beam.ParDo0(s, &writeFn{path}, beam.CoGroupByKey(s, always, beam.AddFixedKey(s, lines)))
}

// writeFn writes the lines of the one group.
type writeFn struct{ Path string }

// ProcessElement implements the DoFn.
func (f *writeFn) ProcessElement(ctx context.Context, _ int, _ func(*[]byte) bool, lines func(*string) bool) (err error) {
	fs, err := filesystem.New(ctx, f.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fs.Close()) }()
	part := f.Path
	if renames(fs) {
		part += ".part-" + rand.Text() // attempts of one bundle may run at a time
	}
	if err := writeLines(ctx, fs, part, lines); err != nil {
		return fmt.Errorf("beam: %s: %w", f.Path, err)
	}
	if part == f.Path {
		return nil
	}
	if err := filesystem.Rename(ctx, fs, part, f.Path); err != nil {
		return fmt.Errorf("beam: %s: %w", f.Path, errors.Join(err, discard(ctx, fs, part)))
	}
	return nil
}

// renames reports whether a file system can give a file another name, by itself or by a copy.
func renames(fs filesystem.Interface) bool {
	_, moves := fs.(filesystem.Renamer)
	_, removes := fs.(filesystem.Remover)
	return moves || removes
}

// discard removes a file whose writing failed, where the file system can.
func discard(ctx context.Context, fs filesystem.Interface, path string) error {
	if r, ok := fs.(filesystem.Remover); ok {
		return r.Remove(ctx, path)
	}
	return nil
}

// writeLines writes a file, and leaves none where that fails.
func writeLines(ctx context.Context, fs filesystem.Interface, path string, lines func(*string) bool) error {
	w, err := fs.OpenWrite(ctx, path)
	if err != nil {
		return err
	}
	to := bufio.NewWriterSize(w, 1<<16)
	for line := ""; lines(&line); {
		if _, err = io.WriteString(to, line+"\n"); err != nil {
			break
		}
	}
	if err = errors.Join(err, to.Flush(), w.Close()); err != nil {
		return errors.Join(err, discard(ctx, fs, path))
	}
	return nil
}
