package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"grove/internal/engine/reading"
	"grove/internal/engine/step"
	"grove/internal/kv"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
)

// ErrSource reports what an encoder-decoder cannot do, since its text stands behind a source.
var ErrSource = errors.New("is an encoder-decoder: it reads a source before it generates")

// openEncoder makes the engine of the model's encoder, if it has one: its texts wait for each other.
func (e *Engine) openEncoder(c Config) (err error) {
	s := e.steps.Model.Info().Source
	if s == nil {
		return nil
	}
	if used := uint64(e.steps.Cache.Bytes()); c.Memory > 0 {
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
		return fmt.Errorf("engine: %w: %s %w, and a session's file has no room for one", ErrSession, e.steps.Model.Info().Arch, ErrSource)
	}
	if s.answer.Prefix {
		return e.CheckPrefix(len(ids))
	}
	if len(ids) == 0 {
		return fmt.Errorf("engine: the source is empty; %s reads one token or more", e.steps.Model.Info().Arch)
	}
	if err := e.fits(ids, 0); err != nil {
		return err
	}
	src := &step.Source{IDs: ids}
	name := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		name = binary.LittleEndian.AppendUint32(name, uint32(id))
	}
	src.Name, s.trunk.Source = string(name), src
	s.text, s.prompt = append(s.text, e.steps.Model.Info().Source.Start), 1
	s.chain.Append(s.text, true)
	err := s.flush(ctx)
	if err == nil && s.watch != nil {
		s.watch(len(ids), len(ids))
	}
	return err
}

// do does a job of the sequence. Where that needs the states of the source, the encoder computes them first.
func (s *Sequence) do(ctx context.Context, j step.Job) error {
	for {
		err := s.trunk.Do(ctx, j)
		if err != step.ErrUnread {
			return err
		}
		src := s.trunk.Source
		src.States = make([]float32, 0, len(src.IDs)*s.e.encoder.steps.Model.Info().Width)
		err = s.e.encoder.States(ctx, src.IDs, reading.Reading{}, func(row []float32) error {
			src.States = append(src.States, row...)
			return nil
		})
		if err != nil {
			src.States = nil
			return err
		}
	}
}

// seen returns the text as drafters read it, behind its source, and how many of its tokens are not of the answer.
func (s *Sequence) seen() (text []token.ID, prompt int) {
	if s.trunk.Source == nil {
		return s.text, s.prompt
	}
	n := len(s.trunk.Source.IDs)
	if s.drafts.History.SourceLen = n; len(s.all) == 0 {
		s.all = append(s.all, s.trunk.Source.IDs...)
	}
	s.all = append(s.all[:n], s.text...)
	return s.all, n + s.prompt
}

// CheckSource returns an [ErrSource] with what cannot be done where the model reads a source.
func (e *Engine) CheckSource(what string) error {
	if e.encoder == nil {
		return nil
	}
	return fmt.Errorf("engine: %s %w; %s", e.steps.Model.Info().Arch, ErrSource, what)
}
