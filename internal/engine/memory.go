package engine

import (
	"grove/internal/engine/speculate"
	"grove/internal/kv"
	"grove/internal/model"
	"grove/method"
)

// MemoryOf returns what the cache of an engine takes, and how much of that is for drafts. Errors: those of [New], but for the memory's.
func MemoryOf(info *model.Info, c Config) (all kv.Memory, drafts int, err error) {
	room, err := c.complete(info)
	if err != nil {
		return all, 0, err
	}
	if all, err = kv.MemoryOf(room); err != nil {
		return all, 0, err
	}
	rows := c.Drafting * c.Drafts
	if d := info.Diffusion; info.Whole() || d != nil && d.Renoise != nil {
		rows = 0
	}
	room.Scratch, room.Records = room.Scratch-rows, room.Records-2*rows
	plain, err := kv.MemoryOf(room)
	return all, all.Total() - plain.Total(), err
}

// SizeOf returns what methods know of a model with such a context.
func SizeOf(info *model.Info, context int) method.Size {
	return method.Size{Vocabulary: info.Vocabulary, Layers: len(info.Layers), Width: info.Width, Context: context}
}

// CacheMemory returns the bytes of the engine's cache, as [MemoryOf] has them.
func (e *Engine) CacheMemory() kv.Memory { return e.steps.Cache.Memory() }

// OutputBytes returns the bytes of the logits and final states of the largest step so far.
func (e *Engine) OutputBytes() int {
	e.steps.Lock()
	defer e.steps.Unlock()
	return e.steps.Exec.OutputBytes()
}

// DraftMemory returns what the sequence's rounds take at most and what they have taken so far, without what models have: the rows of
// drafts, caches, and the logits of steps and passes, of which the first has the most. Both are zero where the sequence does not draft.
func (s *Sequence) DraftMemory() (most, held speculate.MemoryBytes, drafts int) {
	if s.drafts == nil {
		return most, held, 0
	}
	return s.drafts.Needs(), s.drafts.Held(), s.drafts.Drafts()
}
