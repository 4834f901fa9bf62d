package engine

import (
	"context"
	"fmt"

	"grove/internal/engine/pages"
	"grove/internal/text/token"
)

// ErrSession reports a session's file that cannot be read or written.
var ErrSession = pages.ErrFile

// session returns the sequence's text with a file.
func (s *Sequence) session(path string) *pages.Session {
	return &pages.Session{Maker: &s.e.steps, Trunk: &s.trunk, Text: s.text, Known: s.given(), Path: path}
}

// Save writes the text, and what the cache holds of it in full pages, to a file: all of it or nothing. Steps go on
// meanwhile. A sequence whose slot was taken waits for one. Errors: [ErrClosed], [ErrSession].
func (s *Sequence) Save(path string) error {
	if err := s.usable(); err != nil {
		return err
	}
	if err := s.e.CheckSource("a session's file has no room for a source"); err != nil {
		return fmt.Errorf("%w: %w", err, ErrSession)
	}
	return s.session(path).Save()
}

// AppendSaved is [Sequence.Append] to an empty text, whose beginning a file that [Sequence.Save] wrote may hold; "": none. Where the cache
// does not hold as much, that is read and not computed. Nobody but the sequence, its forks and others of the same file uses what was
// read. A file that is not there holds nothing. Errors besides: [kv.ErrFile] where the file is damaged or of another model, cache
// type or salt; [ErrSession]. The text is empty then.
func (s *Sequence) AppendSaved(ctx context.Context, ids []token.ID, path string) (err error) {
	if n := len(s.text); n > 0 && path != "" {
		return fmt.Errorf("engine: session: the text has %d tokens; it must be empty", n)
	}
	if s.e.encoder != nil && s.trunk.Source == nil {
		return s.readSource(ctx, ids, path)
	}
	if err := s.beginPrefix(len(ids), path); err != nil {
		return err
	}
	first := len(s.text) == 0
	if err := s.extend(ids); err != nil {
		return err
	}
	if path != "" {
		if s.known, s.restored, err = s.session(path).Restore(ctx, s.e.vocab); err != nil {
			s.text = s.text[:0]
			return err
		}
		s.reused = s.known
	}
	s.prompt = len(s.text)
	s.chain.Append(ids, true)
	if first && path == "" {
		if err := s.findShared(ctx); err != nil {
			return err
		}
	}
	return s.flush(ctx)
}

// findShared reads what the folder of prefixes has of the first prompt, and the cache has not.
func (s *Sequence) findShared(ctx context.Context) error {
	if s.prefix > 0 || s.stated != nil {
		return nil // keys that depend on later tokens, and states that are told, are computed
	}
	known, err := s.e.shared.Restore(ctx, &s.trunk, s.text)
	if s.known = max(s.known, known); !s.trunk.Begun {
		s.reused += known
	}
	return err
}

// offerShared gives the folder of prefixes the text of a sequence that is closed. Forks are left out: they are many, and their beginning is that of
// the text that they come from.
func (s *Sequence) offerShared() {
	if s.active && !s.forked && s.prefix == 0 && s.trunk.Source == nil {
		s.e.shared.Offer(&s.trunk.Terms, s.text)
	}
}

// Restored reports whether keys and values of the text were read from a file.
func (s *Sequence) Restored() bool { return s.restored }
