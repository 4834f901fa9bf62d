package model

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// skipped lists by architecture the tensors that it leaves out: those whose names begin so, N any of its layers. Results
// are right without them. All others that an architecture does not take are refused.
var skipped = map[string][]string{
	"llama":     {"blk.N.attn_rot_embd."}, // the angles of the rotation, in old files; they follow from the hyperparameters
	"deepseek2": {"blk.N.attn_rot_embd."},
	"gemma3":    {"v.", "mm."},                   // what sees images, in ollama's files; prompts are text
	"t5":        {"dec.blk.0.cross_attn_rel_b."}, // of old checkpoints: T5's cross attention has no biases
	"qwen3next": {"blk.N.ssm_in."},               // of old files; it is read where attn_qkv and attn_gate are not there
	"dream":     {"output.bias"},                 // another program leaves room for it and does not add it
	"gemma3n":   {"v.", "a.", "mm."},
	"gemma4":    {"v.", "a.", "mm."},
	"apertus":   {"blk.N.attn_q_norm.bias", "blk.N.attn_k_norm.bias"}, // its norms have none; another program leaves room for them
}

// leftOver refuses a tensor that the architecture did not take: without it the model would be another one.
func (l *Loader) leftOver() {
	for _, t := range l.file.Tensors {
		if l.taken[t.Name] || l.skips(t.Name) || l.isUnit(t) {
			continue
		}
		hint := "its architecture is another one, or needs a newer version of grove"
		if n, _, ok := gguf.OfBlock(t.Name); ok && n >= len(l.info.Layers) {
			hint = fmt.Sprintf("%s is %d", l.key("block_count"), len(l.info.Layers))
		}
		l.fail("%s: architecture %q has no place for this tensor, and results without it would be wrong; %s", tensor.Label(t.Name), l.info.Arch, hint)
	}
}

// LeaveOut takes tensors that the file may have and that no result depends on.
func (l *Loader) LeaveOut(names ...string) {
	for _, name := range names {
		l.taken[name] = true
	}
}

// isUnit reports whether a tensor is the scale of a product, or of what it reads, and is 1: the scale of weights of type NVFP4,
// which changes nothing then. Others are refused.
func (l *Loader) isUnit(t tensor.View) bool {
	if t.Elems() != 1 || t.Type != tensor.F32 || !strings.HasSuffix(t.Name, ".scale") && !strings.HasSuffix(t.Name, ".input_scale") {
		return false
	}
	v, err := l.file.Load(t)
	return err == nil && len(v.Data) == 4 && math.Float32frombits(binary.LittleEndian.Uint32(v.Data)) == 1
}

func (l *Loader) skips(name string) bool {
	if n, rest, ok := gguf.OfBlock(name); ok && n < len(l.info.Layers) {
		name = "blk.N." + rest
	}
	return slices.ContainsFunc(skipped[l.info.Arch], func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
