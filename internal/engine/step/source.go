package step

import (
	"context"
	"errors"

	"grove/internal/mmap"
	"grove/internal/text/token"
)

// ErrUnread says that a trunk needs the states of its source, which [Source.States] then has in its next call.
var ErrUnread = errors.New("engine: the source is not read")

// Source is the text that a trunk of an encoder-decoder reads.
type Source struct {
	IDs    []token.ID
	Name   string    // tells the source from others
	States []float32 // that the encoder gave, until keys and values are made of them; nil: none
	Found  bool      // the cache had its keys and values
}

// sourceName tells the trunk's source from others.
func (t *Trunk) sourceName() string {
	if t.Source == nil {
		return ""
	}
	return t.Source.Name
}

// feed sees to the keys and values of the source of a trunk that has a slot. Where they are not stored and its states are not
// there, the trunk lends its slot and gets ErrUnread.
func (m *Maker) feed(t *Trunk) error {
	src := t.Source
	if src == nil || m.Cache.SourceLen(t.Seq) > 0 {
		return nil
	}
	stored, err := m.Cache.SetSource(t.Seq, src.Name, len(src.IDs))
	if stored {
		src.Found = src.Found || !t.Begun && src.States == nil
		src.States = nil
		return nil
	}
	if err == nil && src.States == nil {
		err = ErrUnread
	}
	if err == nil {
		info := m.Model.Info()
		err = mmap.Catch(func() error {
			return m.Exec.ReadSource(callerContext{context.Background(), t}, t.Seq, src.States, info.Source.Encoder.Info().Width, info.Source.Read)
		})
		if err == nil && info.Check != nil {
			err = info.Check()
		}
		src.States = nil
	}
	if err != nil {
		if more := m.release(t); more != nil {
			return errors.Join(err, more)
		}
		return err
	}
	m.Cache.SealSource(t.Seq)
	return nil
}

// callerContext is the context of work for one trunk.
type callerContext struct {
	context.Context
	t *Trunk
}

// Err implements [context.Context].
func (c callerContext) Err() error { return c.t.caller.Err() }
