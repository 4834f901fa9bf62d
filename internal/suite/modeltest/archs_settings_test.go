package modeltest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// changed is a random model in whose file names, values or keys are changed.
type changed struct {
	metadata []gguf.KV
	tensors  []tensor.View
}

func change(t *testing.T, s Spec) *changed {
	c := &changed{}
	c.metadata, c.tensors = s.Parts(t)
	return c
}

func (c *changed) set(key string, v gguf.Value) {
	c.metadata = append(c.metadata, gguf.KV{Key: key, Value: v})
}

// scale multiplies the tensors whose names end so by 0 or a power of two.
func (c *changed) scale(by float32, ends ...string) {
	for _, v := range c.tensors {
		if !slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix("."+v.Name, "."+end) }) {
			continue
		}
		for i := 0; i < len(v.Data); i += 4 {
			x := math.Float32frombits(binary.LittleEndian.Uint32(v.Data[i:]))
			binary.LittleEndian.PutUint32(v.Data[i:], math.Float32bits(x*by))
		}
	}
}

func (c *changed) rename(from, to string) {
	for i := range c.tensors {
		c.tensors[i].Name = strings.Replace(c.tensors[i].Name, from, to, 1)
	}
}

// ones adds a tensor of n ones.
func (c *changed) ones(name string, n int) {
	var data []byte
	for range n {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(1))
	}
	c.tensors = append(c.tensors, tensor.View{Name: name, Type: tensor.F32, Shape: []int{n}, Data: data})
}

func (c *changed) logits(t *testing.T, ids []token.ID) []Bits {
	return New(t, c.file(t), Config{CacheType: tensor.F32, Context: 64}).Reference(ids)
}

// file returns the model as a file.
func (c *changed) file(t *testing.T) *gguf.File {
	var b bytes.Buffer
	if err := gguf.Write(&b, c.metadata, c.tensors); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

var settingIDs = []token.ID{3, 1, 4, 15, 9, 2, 6, 5}

// TestGraniteScales compares Granite's scales with weights that hold them: powers of two, so that all bits are equal.
func TestGraniteScales(t *testing.T) {
	for key, c := range map[string]struct {
		value float64
		by    float32
		ends  []string
	}{
		"embedding_scale": {4, 4, []string{"token_embd.weight"}},
		"residual_scale":  {0.25, 0.25, []string{"attn_output.weight", "ffn_down.weight", "ffn_down_exps.weight"}},
		"attention.scale": {0.5, 4, []string{"attn_q.weight"}}, // instead of 1/sqrt(64)
		"logit_scale":     {8, 0.125, []string{"output.weight"}},
	} {
		for _, spec := range []Spec{{Arch: "granite", KeySize: 64}, {Arch: "granitemoe", KeySize: 64, Experts: 4, ExpertsPerToken: 2}} {
			t.Run(spec.Arch+" "+key, func(t *testing.T) {
				plain, set, folded := change(t, spec), change(t, spec), change(t, spec)
				set.set(spec.Arch+"."+key, gguf.Of(float32(c.value)))
				folded.scale(c.by, c.ends...)
				got := set.logits(t, settingIDs)
				if err := Equal("scale and weights", got, folded.logits(t, settingIDs)); err != nil {
					t.Error(err)
				}
				if Equal("scale and none", got, plain.logits(t, settingIDs)) == nil {
					t.Error("the scale changes nothing")
				}
			})
		}
	}
}

// TestLayersWithoutRotation lets one layer of a model attend: where its heads do not rotate, the last logits do not depend on
// the order of the ids before.
func TestLayersWithoutRotation(t *testing.T) {
	granite := func(finetuned bool) func(c *changed) {
		return func(c *changed) { c.set("granite.rope.scaling.finetuned", gguf.Of(finetuned)) }
	}
	exaone := func(c *changed) { // its norms are behind the blocks
		c.rename("attn_norm", "post_attention_norm")
		c.rename("ffn_norm", "post_ffw_norm")
		for i := range 64 {
			c.ones(fmt.Sprintf("blk.%d.attn_q_norm.weight", i), 32)
			c.ones(fmt.Sprintf("blk.%d.attn_k_norm.weight", i), 32)
		}
	}
	none := func(c *changed) {}
	for _, c := range []struct {
		spec    Spec
		change  func(c *changed)
		layer   int
		rotates bool
	}{
		{Spec{Arch: "smollm3", Layers: 5}, none, 2, true},
		{Spec{Arch: "smollm3", Layers: 5}, none, 3, false},
		{Spec{Arch: "smollm3", Layers: 5}, none, 4, true},
		{Spec{Arch: "granite", Layers: 2}, granite(true), 0, true},
		{Spec{Arch: "granite", Layers: 2}, granite(false), 0, false},
		{Spec{Arch: "exaone4", Layers: 64}, exaone, 2, true},
		{Spec{Arch: "exaone4", Layers: 64}, exaone, 3, false},
	} {
		t.Run(fmt.Sprint(c.spec.Arch, c.layer, c.rotates), func(t *testing.T) {
			m := change(t, c.spec)
			c.change(m)
			for i := range c.spec.Layers {
				if i != c.layer {
					m.scale(0, fmt.Sprintf("blk.%d.attn_output.weight", i))
				}
			}
			other := slices.Clone(settingIDs)
			slices.Reverse(other[:len(other)-1])
			a, b := m.logits(t, settingIDs), m.logits(t, other)
			last, worst := len(settingIDs)-1, 0.0
			for v := range a[last] {
				worst = max(worst, math.Abs(float64(a[last][v])-float64(b[last][v])))
			}
			if rotates := worst > 1e-4; rotates != c.rotates {
				t.Errorf("logits differ by %g", worst)
			}
		})
	}
}
