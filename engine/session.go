package engine

import (
	"fmt"
	"io"
	"os"

	"grove/internal/atomicfile"
	"grove/token"
)

// Save writes the text, and what the cache holds of it in full pages, to a file: all of it or nothing. Steps go on
// meanwhile. Errors: [ErrClosed], [ErrBusy] where the sequence waits for another to close, the file system's.
func (s *Sequence) Save(path string) error {
	if s.closed {
		return fmt.Errorf("engine: %w", ErrClosed)
	}
	e := s.e
	e.mu.Lock()
	if err := e.sit(s); err != nil {
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
		return fmt.Errorf("engine: saving a session: %w", err)
	}
	return nil
}

// Restore reads a file that [Sequence.Save] wrote and returns its text. The pages are there for sequences with the salt
// that begin like it, until their memory is needed. Errors: [kv.ErrFile] where the file is damaged or of another
// model, cache type or salt, or longer than the context; [kv.ErrFull]; the file system's. Nothing of it is kept then.
func (e *Engine) Restore(path, salt string) (text []token.ID, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("engine: restoring a session: %w", err)
	}
	defer f.Close()
	in, err := e.cache.NewReader(f, salt)
	if err != nil {
		return nil, fmt.Errorf("engine: %s: %w", path, err)
	}
	e.mu.Lock()
	held, err := in.Take()
	e.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("engine: %s: %w", path, err)
	}
	err = in.Fill()
	e.mu.Lock()
	defer e.mu.Unlock()
	defer held.Release()
	if err != nil {
		return nil, fmt.Errorf("engine: %s: %w", path, err)
	}
	for _, id := range held.Text {
		if int(id) >= e.vocab {
			return nil, fmt.Errorf("engine: %s: token id %d is out of range: the vocabulary has %d", path, id, e.vocab)
		}
	}
	held.Seal()
	return held.Text, nil
}
