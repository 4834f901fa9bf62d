package heads

import (
	"cmp"
	"encoding/binary"
	"slices"

	"grove/internal/weights/gguf"
	"grove/internal/weights/safetensors"
)

// draftEnds adds the output matrix of a head that may have a vocabulary of its own, a part of the target's: d2t holds for each of its tokens
// by how much the target's number of that token is larger; t2d says of each token of the target whether the head has it.
func (b *builder) draftEnds() {
	d2t, drafts := b.vocabularyTensor("d2t")
	mask, masked := b.vocabularyTensor("t2d")
	b.used["d2t"], b.used["t2d"] = true, true
	table, rows := b.rowsOf("embed_tokens.weight"), b.rowsOf("lm_head.weight")
	size := b.top.CountOr("draft_vocab_size", rows, 1, maxRows)
	if masked && table > 0 && table != len(mask.Data) {
		b.Fail("t2d: shape is %v; embed_tokens.weight is for a vocabulary of %d", mask.Shape, table)
	}
	b.setVocabulary(cmp.Or(table, len(mask.Data)))
	if !drafts {
		b.whole(rows, size, mask)
		return
	}
	ids := b.draftTokens(d2t)
	if !b.OK() {
		return
	}
	switch {
	case rows == 0:
		b.Fail("lm_head.weight is missing: d2t names %d tokens, of which no other matrix has the rows", len(ids))
		return
	case len(ids) != rows || size != rows:
		b.Fail("lm_head.weight has %d rows, d2t %d numbers, and draft_vocab_size is %d; they must be one number", rows, len(ids), size)
	case masked:
		b.agrees(mask, ids)
	}
	b.take("output.weight", "lm_head.weight", rows, b.width)
	b.SetValue(".draft_vocabulary", gguf.ArrayOf(ids))
	b.table(table)
}

// whole adds the output matrix, if there is one, of a head with the target's vocabulary: one of rows tokens, of which config.json says size.
func (b *builder) whole(rows, size int, mask safetensors.Tensor) {
	if b.vocab == 0 {
		b.setVocabulary(cmp.Or(rows, size))
	}
	for _, n := range []int{rows, size} {
		if n > 0 && n != b.vocab {
			b.Fail("d2t is missing: the head has %d tokens, its target %d", n, b.vocab)
		}
	}
	b.takeIf("output.weight", "lm_head.weight", b.vocab, b.width)
	b.table(b.vocab)
	for id := range mask.Data {
		if mask.Data[id] == 0 {
			b.Fail("d2t is missing: t2d says that the head lacks token %d of its target", id)
			return
		}
	}
}

// draftTokens returns the target's number of each token of the head.
func (b *builder) draftTokens(d2t safetensors.Tensor) []int32 {
	width := map[safetensors.DType]int{"I64": 8, "I32": 4}[d2t.Type]
	if width == 0 || len(d2t.Shape) != 1 || d2t.Shape[0] > maxRows {
		b.Fail("d2t: type is %s and shape %v; it must be a vector of I64 or I32", d2t.Type, d2t.Shape)
		return nil
	}
	limit := int64(maxRows)
	if b.vocab > 0 {
		limit = int64(b.vocab)
	}
	ids := make([]int32, d2t.Shape[0])
	before := int64(-1)
	for i := range ids {
		offset := int64(int32(binary.LittleEndian.Uint32(d2t.Data[i*width:])))
		if width == 8 {
			offset = int64(binary.LittleEndian.Uint64(d2t.Data[i*width:]))
		}
		id := int64(i) + min(max(offset, -maxRows), 2*maxRows)
		switch {
		case id < 0 || id >= limit:
			b.Fail("d2t: entry %d is %d, which makes it token %d of the target; its tokens are 0 to %d (entries are what is added to their own number)", i, offset, id, limit-1)
			return nil
		case id <= before:
			b.Fail("d2t: entries %d and %d stand for tokens %d and %d of the target; they must ascend", i-1, i, before, id)
			return nil
		}
		ids[i], before = int32(id), id
	}
	return ids
}

// agrees checks that the mask has the head's tokens and no others.
func (b *builder) agrees(mask safetensors.Tensor, ids []int32) {
	if mask.Type != "BOOL" && mask.Type != "U8" || len(mask.Shape) != 1 {
		b.Fail("t2d: type is %s and shape %v; it must be a vector of BOOL", mask.Type, mask.Shape)
		return
	}
	for id, v := range mask.Data {
		if _, kept := slices.BinarySearch(ids, int32(id)); kept != (v != 0) {
			b.Fail("t2d: token %d of the target is %v there; d2t says %v", id, v != 0, kept)
			return
		}
	}
}
