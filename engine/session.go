package engine

import (
	"errors"
	"fmt"
	"io"
	"os"

	"grove/internal/atomicfile"
	"grove/kv"
	"grove/text/token"
)

// ErrSession reports a session's file that the file system does not give or take.
var ErrSession = errors.New("a session cannot be read or written")

// Save writes the text, and what the cache holds of it in full pages, to a file: all of it or nothing. Steps go on
// meanwhile. Errors: [ErrClosed], [ErrBusy] where the sequence waits for another to close, [ErrSession].
func (s *Sequence) Save(path string) error {
	if err := s.usable(); err != nil {
		return err
	}
	e := s.e
	e.mu.Lock()
	if err := e.admit(&s.trunk); err != nil {
		e.mu.Unlock()
		return err
	}
	held, err := e.cache.Hold(s.seq, s.text)
	e.mu.Unlock()
	if err != nil {
		return err
	}
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		held.Release()
	}()
	if err := atomicfile.Write(path, func(w io.Writer) error { return held.Write(w) }); err != nil {
		return fmt.Errorf("engine: %w: %w", ErrSession, err)
	}
	return nil
}

// Restore reads a file that [Sequence.Save] wrote and returns its text. The pages are there for sequences with the salt
// that begin like it, until their memory is needed. Errors: [kv.ErrFile] where the file is damaged or of another
// model, cache type or salt, or longer than the context; [kv.ErrFull]; [ErrSession]. Nothing of it is kept then.
func (e *Engine) Restore(path, salt string) (text []token.ID, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("engine: %w: %w", ErrSession, err)
	}
	defer f.Close()
	in, err := e.cache.NewReader(f, salt)
	if err != nil {
		return nil, restoring(path, err)
	}
	e.mu.Lock()
	held, err := in.Take()
	e.mu.Unlock()
	if err != nil {
		return nil, restoring(path, err)
	}
	err = in.Fill()
	e.mu.Lock()
	defer e.mu.Unlock()
	defer held.Release()
	if err != nil {
		return nil, restoring(path, err)
	}
	for _, id := range held.Text {
		if int(id) >= e.vocab {
			return nil, fmt.Errorf("engine: %s: token id %d is out of range: the vocabulary has %d", path, id, e.vocab)
		}
	}
	held.Seal()
	return held.Text, nil
}

// restoring is the error of a file that is there: its own fault, the cache's, or else the file system's.
func restoring(path string, err error) error {
	if errors.Is(err, kv.ErrFile) || errors.Is(err, kv.ErrFull) {
		return fmt.Errorf("engine: %s: %w", path, err)
	}
	return fmt.Errorf("engine: %w: %w", ErrSession, err)
}
