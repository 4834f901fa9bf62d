package engine

import (
	"context"
	"errors"
	"fmt"

	"grove/engine/session"
	"grove/text/token"
)

// ErrSession reports a session's file that the file system does not give or take.
var ErrSession = session.ErrSession

// claim is the job of a sequence that wants a slot and pages, which it keeps from then on, and no rows.
type claim struct {
	s     *Sequence
	wants func() (need, error)
}

func (*claim) begin() error               { return nil }
func (j *claim) need() (need, error)      { return j.wants() }
func (*claim) place(*step) error          { return nil }
func (j *claim) take(*step) (bool, error) { j.s.pinned = true; return true, nil }
func (*claim) simpler() bool              { return false }

// unpin lets others take the sequence's slot and pages again. The caller holds the engine's lock.
func (s *Sequence) unpin(pinned bool) {
	s.pinned = pinned
	s.e.queue.Happened()
}

// Save writes the text, and what the cache holds of it in full pages, to a file: all of it or nothing. Steps go on
// meanwhile. A sequence whose slot was taken waits for one. Errors: [ErrClosed], [ErrSession].
func (s *Sequence) Save(path string) error {
	if err := s.usable(); err != nil {
		return err
	}
	e := s.e
	if err := e.Reads("a session's file has no room for a source"); err != nil {
		return fmt.Errorf("%w: %w", err, ErrSession)
	}
	if _, err := e.model.Info().Identity(); err != nil { // it may take long: not while pages are held
		return fmt.Errorf("engine: %w: %w", ErrSession, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	defer s.unpin(s.pinned)
	if s.seq < 0 || s.lost { // it takes over what the cache still has
		e.mu.Unlock()
		err := s.do(context.Background(), &claim{s, func() (need, error) {
			_, err := e.cache.Reuse(s.seq, s.text)
			return need{}, err
		}})
		e.mu.Lock()
		if err != nil {
			return err
		}
	}
	held, err := e.cache.Hold(s.seq, s.text)
	if err != nil {
		return err
	}
	s.pinned = true
	e.mu.Unlock()
	err = session.Write(path, held)
	e.mu.Lock()
	held.Release()
	return err
}

// AppendSaved is [Sequence.Append] to an empty text, whose beginning a file that [Sequence.Save] wrote may hold; "": none. Where the cache
// does not hold as much, that is read and not computed. Nobody but the sequence, its forks and others of the same file uses what was
// read. A file that is not there holds nothing. Errors besides: [kv.ErrFile] where the file is damaged or of another model, cache
// type or salt, or longer than the context; [ErrSession]. The text is empty then.
func (s *Sequence) AppendSaved(ctx context.Context, ids []token.ID, path string) error {
	if n := len(s.text); n > 0 && path != "" {
		return fmt.Errorf("engine: a session behind a text of %d tokens; it must be empty", n)
	}
	if s.e.encoder != nil && s.source == nil {
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
	f, err := session.Open(ctx, path, e.cache, s.terms.Salt, s.terms.adapted(), e.vocab)
	if f == nil || err != nil {
		return err
	}
	defer f.Close()
	n := f.Use(s.text)
	if n == 0 {
		return nil
	}
	err = s.do(ctx, &claim{s, func() (need, error) {
		have, err := e.cache.Reuse(s.seq, s.text)
		if s.restored = have < n; !s.restored || err != nil { // what was computed here comes first
			return need{}, err
		}
		return need{take: func() error { return f.Take(s.seq) }}, e.cache.Truncate(s.seq, 0)
	}})
	if err != nil {
		return err
	}
	if s.restored {
		err = f.Fill()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	defer s.unpin(false)
	if s.restored && err == nil {
		err = f.Adopt(s.seq)
	}
	if err != nil {
		return errors.Join(err, e.cache.Truncate(s.seq, 0))
	}
	s.known, s.reused = s.length(), s.length()
	return nil
}
