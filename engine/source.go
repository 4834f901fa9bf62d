package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"grove/engine/reading"
	"grove/internal/mmap"
	"grove/kv"
	"grove/text/token"
	"grove/weights/tensor"
)

// ErrSource reports what an encoder-decoder cannot do, since its text stands behind a source.
var ErrSource = errors.New("is an encoder-decoder: it reads a source before it generates")

// errUnread says that a sequence needs the states of its source.
var errUnread = errors.New("engine: the source is not read")

// source is the text that a sequence of an encoder-decoder reads.
type source struct {
	ids    []token.ID
	name   string
	states []float32 // that the encoder gave, until keys and values are made of them
	found  bool      // the cache had its keys and values
}

// sourceName tells the trunk's source from others.
func (t *trunk) sourceName() string {
	if t.source == nil {
		return ""
	}
	return t.source.name
}

// openEncoder makes the engine of the model's encoder, if it has one: its texts wait for each other.
func (e *Engine) openEncoder(c Config) (err error) {
	s := e.model.Info().Source
	if s == nil {
		return nil
	}
	if used := uint64(e.cache.Bytes()); c.Memory > 0 {
		if used >= c.Memory {
			return fmt.Errorf("engine: no memory is left for the encoder: %w", kv.ErrMemory)
		}
		c.Memory -= used
	}
	e.encoder, err = New(s.Encoder, e.pool, Config{Context: c.Context, CacheType: tensor.F32, Queue: c.Seqs + c.Queue, Memory: c.Memory})
	return err
}

// readSource makes ids the source of a sequence without one, and begins its text as the model asks.
func (s *Sequence) readSource(ctx context.Context, ids []token.ID, session string) error {
	e := s.e
	if err := s.usable(); err != nil {
		return err
	}
	if session != "" {
		return fmt.Errorf("engine: %w: %s %w, and a session's file has no room for one", ErrSession, e.model.Info().Arch, ErrSource)
	}
	if s.answer.Prefix {
		return e.TakesPrefix(len(ids))
	}
	if len(ids) == 0 {
		return fmt.Errorf("engine: a source without tokens; %s reads one token or more", e.model.Info().Arch)
	}
	if err := e.fits(ids, 0); err != nil {
		return err
	}
	src := &source{ids: ids}
	name := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		name = binary.LittleEndian.AppendUint32(name, uint32(id))
	}
	src.name, s.source = string(name), src
	s.text, s.prompt = append(s.text, e.model.Info().Source.Start), 1
	s.chain.Append(s.text, true)
	err := s.flush(ctx)
	if err == nil && s.watch != nil {
		s.watch(len(ids), len(ids))
	}
	return err
}

// do does a job of the sequence. Where that needs the states of the source, the encoder computes them first.
func (s *Sequence) do(ctx context.Context, j job) error {
	for {
		err := s.trunk.do(ctx, j)
		if err != errUnread {
			return err
		}
		src := s.source
		src.states = make([]float32, 0, len(src.ids)*s.e.encoder.model.Info().Width)
		err = s.e.encoder.States(ctx, src.ids, reading.Reading{}, func(row []float32) error {
			src.states = append(src.states, row...)
			return nil
		})
		if err != nil {
			src.states = nil
			return err
		}
	}
}

// feed sees to the keys and values of the source of a trunk that has a slot. Where they are not stored and its states are not
// there, the trunk lends its slot and gets errUnread.
func (e *Engine) feed(t *trunk) error {
	src := t.source
	if src == nil || e.cache.SourceLen(t.seq) > 0 {
		return nil
	}
	stored, err := e.cache.SetSource(t.seq, src.name, len(src.ids))
	if stored {
		src.found = src.found || !t.begun && src.states == nil
		src.states = nil
		return nil
	}
	if err == nil && src.states == nil {
		err = errUnread
	}
	if err == nil {
		info := e.model.Info()
		err = mmap.Catch(func() error {
			return e.exec.ReadSource(callerContext{context.Background(), t}, t.seq, src.states, info.Source.Encoder.Info().Width, info.Source.Read)
		})
		if err == nil && info.Check != nil {
			err = info.Check()
		}
		src.states = nil
	}
	if err != nil {
		if more := e.release(t); more != nil {
			return errors.Join(err, more)
		}
		return err
	}
	e.cache.SealSource(t.seq)
	return nil
}

// callerContext is the context of work for one trunk.
type callerContext struct {
	context.Context
	t *trunk
}

// Err implements [context.Context].
func (c callerContext) Err() error { return c.t.caller.Gone() }

// seen returns the text as drafters read it, behind its source, and how many of its tokens are not of the answer.
func (s *Sequence) seen() (text []token.ID, prompt int) {
	if s.source == nil {
		return s.text, s.prompt
	}
	n := len(s.source.ids)
	if s.drafts.History.Source = n; len(s.all) == 0 {
		s.all = append(s.all, s.source.ids...)
	}
	s.all = append(s.all[:n], s.text...)
	return s.all, n + s.prompt
}

// Reads returns an [ErrSource] with what cannot be done where the model reads a source.
func (e *Engine) Reads(what string) error {
	if e.encoder == nil {
		return nil
	}
	return fmt.Errorf("engine: %s %w; %s", e.model.Info().Arch, ErrSource, what)
}
