package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"grove/engine/step"
	"grove/internal/atomicfile"
	"grove/internal/regular"
	"grove/kv"
	"grove/text/token"
)

// ErrSession reports a session's file that cannot be read or written.
var ErrSession = errors.New("a session cannot be read or written")

// claim is the job of a sequence that wants a slot and pages, which it keeps from then on, and no rows.
type claim struct {
	s     *Sequence
	wants func() (step.Need, error)
}

// Need implements [step.Job].
func (j *claim) Need() (step.Need, error) { return j.wants() }

// Place implements [step.Job].
func (*claim) Place(*step.Step) error { return nil }

// Take implements [step.Job].
func (j *claim) Take(*step.Step) (bool, error) { j.s.trunk.Pinned = true; return true, nil }

// unpin lets others take the sequence's slot and pages again. The caller holds the maker's lock.
func (s *Sequence) unpin(pinned bool) {
	s.trunk.Pinned = pinned
	s.e.steps.Notify()
}

// Save writes the text, and what the cache holds of it in full pages, to a file: all of it or nothing. Steps go on
// meanwhile. A sequence whose slot was taken waits for one. Errors: [ErrClosed], [ErrSession].
func (s *Sequence) Save(path string) error {
	if err := s.usable(); err != nil {
		return err
	}
	e := s.e
	if err := e.CheckSource("a session's file has no room for a source"); err != nil {
		return fmt.Errorf("%w: %w", err, ErrSession)
	}
	if _, err := e.steps.Model.Info().Identity(); err != nil { // it may take long: not while pages are held
		return fmt.Errorf("engine: %w: %w", ErrSession, err)
	}
	e.steps.Lock()
	defer e.steps.Unlock()
	defer s.unpin(s.trunk.Pinned)
	if s.trunk.Seq < 0 || s.trunk.Preempted { // it takes over what the cache still has
		e.steps.Unlock()
		err := s.do(context.Background(), &claim{s, func() (step.Need, error) {
			_, err := e.steps.Cache.Reuse(s.trunk.Seq, s.given())
			return step.Need{}, err
		}})
		e.steps.Lock()
		if err != nil {
			return err
		}
	}
	held, err := e.steps.Cache.Hold(s.trunk.Seq, s.text)
	if err != nil {
		return err
	}
	s.trunk.Pinned = true
	e.steps.Unlock()
	err = atomicfile.Write(path, func(w io.Writer) error { return held.Write(w) })
	e.steps.Lock()
	held.Release()
	if err != nil {
		return fmt.Errorf("engine: %w: %w", ErrSession, err)
	}
	return nil
}

// AppendSaved is [Sequence.Append] to an empty text, whose beginning a file that [Sequence.Save] wrote may hold; "": none. Where the cache
// does not hold as much, that is read and not computed. Nobody but the sequence, its forks and others of the same file uses what was
// read. A file that is not there holds nothing. Errors besides: [kv.ErrFile] where the file is damaged or of another model, cache
// type or salt, or longer than the context; [ErrSession]. The text is empty then.
func (s *Sequence) AppendSaved(ctx context.Context, ids []token.ID, path string) error {
	if n := len(s.text); n > 0 && path != "" {
		return fmt.Errorf("engine: session: the text has %d tokens; it must be empty", n)
	}
	if s.e.encoder != nil && s.trunk.Source == nil {
		return s.readSource(ctx, ids, path)
	}
	if err := s.beginPrefix(len(ids), path); err != nil {
		return err
	}
	if err := s.extend(ids); err != nil {
		return err
	}
	if path != "" {
		if err := s.restore(ctx, path); err != nil {
			s.text = s.text[:0]
			return err
		}
	}
	s.prompt = len(s.text)
	s.chain.Append(ids, true)
	return s.flush(ctx)
}

// Restored reports whether keys and values of the text were read from a file.
func (s *Sequence) Restored() bool { return s.restored }

// restore makes what a file holds of the text the trunk, which is empty on error.
func (s *Sequence) restore(ctx context.Context, path string) error {
	e := s.e
	f, err := e.openSession(ctx, path, &s.trunk.Terms)
	if f == nil || err != nil {
		return err
	}
	defer f.file.Close()
	n := f.Use(s.text)
	if n == 0 {
		return nil
	}
	err = s.do(ctx, &claim{s, func() (step.Need, error) {
		have, err := e.steps.Cache.Reuse(s.trunk.Seq, s.given())
		if s.restored = have < n; !s.restored || err != nil { // what was computed here comes first
			return step.Need{}, err
		}
		return step.Need{TakePages: func() error { return f.Take(s.trunk.Seq) }}, e.steps.Cache.Truncate(s.trunk.Seq, 0)
	}})
	if err != nil {
		return err
	}
	if s.restored {
		err = f.fault(f.Fill())
	}
	e.steps.Lock()
	defer e.steps.Unlock()
	defer s.unpin(false)
	if s.restored && err == nil {
		err = f.Adopt(s.trunk.Seq)
	}
	if err != nil {
		return errors.Join(err, e.steps.Cache.Truncate(s.trunk.Seq, 0))
	}
	s.known, s.reused = s.trunk.Len(), s.trunk.Len()
	return nil
}

// session is a session's file that is open for reading.
type session struct {
	*kv.Reader
	ctx  context.Context
	file *os.File
}

// openSession opens a session that is a regular file and reads its text, until ctx ends. It returns nil where there is no file. Errors:
// [kv.ErrFile], [ErrSession], ctx's.
func (e *Engine) openSession(ctx context.Context, path string, t *Terms) (*session, error) {
	file, err := regular.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	f := &session{ctx: ctx, file: file}
	if err != nil {
		return nil, f.fault(err)
	}
	info, err := file.Stat()
	if err == nil {
		f.Reader, err = e.steps.Cache.NewAdaptedReader(f, info.Size(), t.Salt, t.Adapted(), e.vocab)
	}
	if err != nil {
		return nil, errors.Join(f.fault(err), file.Close())
	}
	return f, nil
}

// Read reads the file, until the context ends.
func (f *session) Read(p []byte) (int, error) {
	if err := f.ctx.Err(); err != nil {
		return 0, err
	}
	return f.file.Read(p)
}

// fault is an error with its kind: the context's, the file's own, or else the file system's.
func (f *session) fault(err error) error {
	switch {
	case err == nil || f.ctx.Err() != nil:
		return f.ctx.Err()
	case errors.Is(err, kv.ErrFile):
		return fmt.Errorf("engine: %s: %w", f.file.Name(), err)
	}
	return fmt.Errorf("engine: %w: %w", ErrSession, err)
}
