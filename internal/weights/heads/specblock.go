package heads

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"grove/internal/weights/safetensors"
)

func init() { presented["specblock"] = specblock }

const (
	rankClasses = 4
	rankReads   = 15 // values of a slot's logits
	mapping     = "vocab_mapping"
)

// specblock presents a head of SpecBlock (2026): layers over blocks of slots, the inputs of a slot, a product before each layer but the first, and the rank head. The table of a vocabulary of its own
// (d2t, t2d) may be in a file beside it.
func specblock(b *builder) {
	b.eagle3Settings()
	queries := "input_layer.position_queries.weight"
	if !b.has(queries) {
		queries = "input_layer.position_queries"
	}
	slots, width := b.matrix(queries)
	b.setWidth(width)
	width = b.width
	if n := b.Config.CountOr("diffspec_draft_token_num", slots, 1, maxDrafts); n != slots && b.OK() {
		b.Fail("diffspec_draft_token_num is %d in config.json; the head has queries for %d slots", n, slots)
	}
	if n := b.Config.CountOr("rank_classes", rankClasses, 1, maxDrafts); n != rankClasses && b.OK() {
		b.Fail("rank_classes is %d in config.json; %d are supported", n, rankClasses)
	}
	b.SetCount(".block_size", slots)
	layers := b.layerCount()
	b.attention()
	if !b.OK() {
		return
	}
	b.take("fc.weight", "input_layer.condition_proj.weight", width, 3*width)
	b.take("fuse.weight", "input_layer.fuse.weight", width, 3*width)
	b.take("queries.weight", queries, slots, width)
	b.take("fc_norm.weight", "input_layer.condition_norm.weight", width)
	b.take("token_norm.weight", "input_layer.token_norm.weight", width)
	b.take("query_norm.weight", "input_layer.query_norm.weight", width)
	for i := range layers {
		b.layer(layer{to: fmt.Sprintf("blk.%d.", i), from: fmt.Sprintf("layers.%d.", i), inputs: width, norm: true, mlp: true})
		if i > 0 {
			b.take(fmt.Sprintf("blk.%d.shift.weight", i), fmt.Sprintf("shift_proj.%d.weight", i-1), width, 2*width)
		}
	}
	hidden := b.rowsOf("rank_head.0.weight")
	b.take("rank_in.weight", "rank_head.0.weight", hidden, width+rankReads)
	b.take("rank_in.bias", "rank_head.0.bias", hidden)
	b.take("rank_out.weight", "rank_head.2.weight", rankClasses, hidden)
	b.take("rank_out.bias", "rank_head.2.bias", rankClasses)
	b.take("output_norm.weight", "norm.weight", width)
	b.drop("input_layer.embed_tokens.weight", "the target lends its own table")
	b.mapped()
}

// mapped adds the output matrix, with the head's vocabulary from the file beside it where its own has none.
func (b *builder) mapped() {
	rows := b.rowsOf("lm_head.weight")
	if _, there := b.Weights.Tensor("d2t"); there || rows == 0 || rows == b.Config.CountOr("vocab_size", rows, 1, maxRows) {
		b.draftEnds()
		return
	}
	dir := b.path
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		dir = filepath.Dir(dir)
	}
	path := filepath.Join(dir, mapping+".safetensors")
	f, err := safetensors.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		pickle := filepath.Join(dir, mapping+".pt")
		b.Fail("d2t is missing, which says for which tokens of the target the head's %d are; it is published as %s.pt: 'python3 lab/train/unpickle.py %s %s' takes it out of that", rows, mapping, pickle, path)
		return
	}
	if err != nil {
		b.Fail("%w", err)
		return
	}
	b.beside = f
	b.draftEnds()
	b.beside = nil
	if err := f.Close(); err != nil {
		b.Fail("%w", err)
	}
}

// vocabularyTensor returns d2t or t2d of the head's file, or of the one beside it.
func (b *builder) vocabularyTensor(name string) (safetensors.Tensor, bool) {
	if t, ok := b.Weights.Tensor(name); ok || b.beside == nil {
		return t, ok
	}
	return b.beside.Tensor(name)
}
