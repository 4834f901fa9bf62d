// session.go keeps texts in files: their tokens, and what the cache holds of them in full pages.

package pages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"grove/internal/engine/step"
	"grove/internal/fileio"
	"grove/internal/kv"
	"grove/internal/text/token"
)

// ErrFile reports a session's file that cannot be read or written.
var ErrFile = errors.New("a session cannot be read or written")

// Claim is the job of a trunk that wants a slot and pages, which it keeps from then on, and no rows.
type Claim struct {
	Trunk *step.Trunk
	Wants func() (step.Need, error)
}

// Need implements [step.Job].
func (j *Claim) Need() (step.Need, error) { return j.Wants() }

// Place implements [step.Job].
func (*Claim) Place(*step.Step) error { return nil }

// Take implements [step.Job].
func (j *Claim) Take(*step.Step) (bool, error) { j.Trunk.Pinned = true; return true, nil }

// Session is a text on its trunk, and the file that keeps it. It is for the trunk's goroutine.
type Session struct {
	Maker *step.Maker
	Trunk *step.Trunk
	Text  []token.ID
	Known []token.ID // its first tokens, whose pages the cache may have by name
	Path  string
}

// unpin lets others take the trunk's slot and pages again, where they may. The caller holds the maker's lock.
func (s *Session) unpin(pinned bool) {
	s.Trunk.Pinned = pinned
	s.Maker.Notify()
}

// Save writes the text, and what the cache holds of it in full pages, to the file: all of it or nothing. Steps go on
// meanwhile. A trunk whose slot was taken waits for one. Errors: [ErrFile], those of the trunk.
func (s *Session) Save() error {
	m, t := s.Maker, s.Trunk
	if _, err := m.Model.Info().Identity(); err != nil { // it may take long: not while pages are held
		return fmt.Errorf("engine: %w: %w", ErrFile, err)
	}
	m.Lock()
	defer m.Unlock()
	defer s.unpin(t.Pinned)
	if t.Seq < 0 || t.Preempted { // it takes over what the cache still has
		m.Unlock()
		err := t.Do(context.Background(), &Claim{t, func() (step.Need, error) {
			_, err := m.Cache.Reuse(t.Seq, s.Known)
			return step.Need{}, err
		}})
		m.Lock()
		if err != nil {
			return err
		}
	}
	held, err := m.Cache.Hold(t.Seq, s.Text)
	if err != nil {
		return err
	}
	t.Pinned = true
	m.Unlock()
	err = fileio.WriteAtomic(s.Path, func(w io.Writer) error { return held.Write(w) })
	m.Lock()
	held.Release()
	if err != nil {
		return fmt.Errorf("engine: %w: %w", ErrFile, err)
	}
	return nil
}

// Restore makes what the file holds of the text the trunk, which must be empty and is empty on error, and returns how many tokens that has: fewer than the text. Where the
// cache has as much by name, that is taken, and restored is false. A file that is not there holds nothing. Nobody but the trunk, its forks and others of the same file finds
// what was read. Errors: [kv.ErrFile] where the file is damaged or of another model, cache type or salt; [ErrFile]; ctx's.
func (s *Session) Restore(ctx context.Context, vocabulary int) (kept int, restored bool, err error) {
	m, t := s.Maker, s.Trunk
	f, err := open(ctx, m.Cache, s.Path, &t.Terms, vocabulary)
	if f == nil || err != nil {
		return 0, false, err
	}
	defer f.file.Close()
	n := f.Use(s.Text)
	if n == 0 {
		return 0, false, nil
	}
	pinned := t.Pinned
	err = t.Do(ctx, &Claim{t, func() (step.Need, error) {
		have, err := m.Cache.Reuse(t.Seq, s.Known)
		if restored = have < n; !restored || err != nil { // what was computed here comes first
			return step.Need{}, err
		}
		return step.Need{TakePages: func() error { return f.Take(t.Seq) }}, m.Cache.Truncate(t.Seq, 0)
	}})
	if err != nil {
		return 0, restored, err
	}
	if restored {
		err = f.fault(f.Fill())
	}
	m.Lock()
	defer m.Unlock()
	defer s.unpin(pinned)
	if restored && err == nil {
		err = f.Adopt(t.Seq)
	}
	if err != nil {
		return 0, restored, errors.Join(err, m.Cache.Truncate(t.Seq, 0))
	}
	return t.Len(), restored, nil
}

// reader is a session's file that is open for reading.
type reader struct {
	*kv.Reader
	ctx  context.Context
	file *os.File
}

// open opens a session that is a regular file and reads its text, until ctx ends. It returns nil where there is no file.
func open(ctx context.Context, k *kv.Cache, path string, t *step.Terms, vocabulary int) (*reader, error) {
	file, err := fileio.OpenRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	f := &reader{ctx: ctx, file: file}
	if err != nil {
		return nil, f.fault(err)
	}
	info, err := file.Stat()
	if err == nil {
		f.Reader, err = k.NewAdaptedReader(f, info.Size(), t.Salt, t.Adapted(), vocabulary)
	}
	if err != nil {
		return nil, errors.Join(f.fault(err), file.Close())
	}
	return f, nil
}

// Read reads the file, until the context ends.
func (f *reader) Read(p []byte) (int, error) {
	if err := f.ctx.Err(); err != nil {
		return 0, err
	}
	return f.file.Read(p)
}

// fault is an error with its kind: the context's, the file's own, or else the file system's.
func (f *reader) fault(err error) error {
	switch {
	case err == nil || f.ctx.Err() != nil:
		return f.ctx.Err()
	case errors.Is(err, kv.ErrFile):
		return fmt.Errorf("engine: %s: %w", f.file.Name(), err)
	}
	return fmt.Errorf("engine: %w: %w", ErrFile, err)
}
