package modeltest

import (
	"slices"
	"strings"
	"testing"

	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// TestOldQwen3Next joins the queries, keys, values and gates of delta nets in one tensor, by the heads of keys, as files of 2025
// have them: the logits are the same bit by bit.
func TestOldQwen3Next(t *testing.T) {
	metadata, tensors := Spec{Arch: "qwen3next", Experts: 6, ExpertsPerToken: 2}.Parts(t)
	count := func(key string) int {
		for _, kv := range metadata {
			if kv.Key == "qwen3next."+key {
				return int(kv.Value.Any().(uint32))
			}
		}
		t.Fatalf("no %s", key)
		return 0
	}
	keys, size := count("ssm.group_count"), count("ssm.state_size")
	group := count("ssm.time_step_rank") / keys
	var old []tensor.View
	for _, v := range tensors {
		name, ok := strings.CutSuffix(v.Name, ".attn_qkv.weight")
		switch gate := find(tensors, name+".attn_gate.weight"); {
		case ok && gate != nil:
			row := v.Shape[1] * 4
			rows := func(of []byte, first, n int) []byte { return of[first*size*row : (first+n)*size*row] }
			var data []byte
			for k := range keys {
				data = slices.Concat(data, rows(v.Data, k, 1), rows(v.Data, keys+k, 1), rows(v.Data, 2*keys+k*group, group), rows(gate.Data, k*group, group))
			}
			old = append(old, tensor.View{Name: name + ".ssm_in.weight", Type: v.Type, Shape: []int{len(data) / row, v.Shape[1]}, Data: data})
		case strings.HasSuffix(v.Name, ".attn_gate.weight"):
		default:
			old = append(old, v)
		}
	}
	if len(old) >= len(tensors) {
		t.Fatal("no tensor was joined")
	}
	config := Config{CacheType: tensor.F32, Context: 64}
	got := New(t, written(t, metadata, old), config).Reference(settingIDs)
	if err := Equal("one tensor and two", got, New(t, written(t, slices.Clone(metadata), tensors), config).Reference(settingIDs)); err != nil {
		t.Error(err)
	}
}

// TestQwen35Layers says by a list which layers are recurrent, instead of by a period.
func TestQwen35Layers(t *testing.T) {
	metadata, tensors := Spec{Arch: "qwen35"}.Parts(t)
	var listed []gguf.KV
	for _, kv := range metadata {
		if kv.Key != "qwen35.full_attention_interval" {
			listed = append(listed, kv)
		}
	}
	listed = append(listed, gguf.KV{Key: "qwen35.attention.recurrent_layers", Value: gguf.ArrayOf([]bool{true, true, false})})
	config := Config{CacheType: tensor.F32, Context: 64}
	got := New(t, written(t, listed, tensors), config).Reference(settingIDs)
	if err := Equal("a list and a period", got, New(t, written(t, metadata, tensors), config).Reference(settingIDs)); err != nil {
		t.Error(err)
	}
}

// TestExpertsAlone leaves the inner values of plain blocks out of a file that has none, as those of Qwen 3.5's mixtures.
func TestExpertsAlone(t *testing.T) {
	metadata, tensors := Spec{Arch: "qwen35moe"}.Parts(t)
	alone := slices.DeleteFunc(slices.Clone(metadata), func(kv gguf.KV) bool { return kv.Key == "qwen35moe.feed_forward_length" })
	if len(alone) != len(metadata)-1 {
		t.Fatal("the key is not there")
	}
	config := Config{CacheType: tensor.F32, Context: 64}
	got := New(t, written(t, alone, tensors), config).Reference(settingIDs)
	if err := Equal("with the key and without", got, New(t, written(t, metadata, tensors), config).Reference(settingIDs)); err != nil {
		t.Error(err)
	}
}

func find(tensors []tensor.View, name string) *tensor.View {
	for i := range tensors {
		if tensors[i].Name == name {
			return &tensors[i]
		}
	}
	return nil
}
