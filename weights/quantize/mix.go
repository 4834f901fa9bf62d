package quantize

import (
	"fmt"
	"slices"
	"strings"

	"grove/weights/codec"
	"grove/weights/gguf"
	"grove/weights/tensor"
)

// Keep is the name that leaves every tensor as it is.
const Keep = "auto"

// mix says which tensors get which type: the type that most get, and rules for the rest (see choose).
type mix struct {
	name string
	typ  tensor.Type
	file uint32 // its number as general.file_type
}

// mixes are those of llama.cpp for which there are encoders, as users know them.
var mixes = []mix{
	{"F32", tensor.F32, 0}, {"F16", tensor.F16, 1}, {"BF16", tensor.BF16, 32}, {"Q8_0", tensor.Q8_0, 7},
	{"Q4_0", tensor.Q4_0, 2}, {"Q4_1", tensor.Q4_1, 3}, {"Q5_0", tensor.Q5_0, 8}, {"Q5_1", tensor.Q5_1, 9},
	{"Q2_K", tensor.Q2_K, 10}, {"Q3_K_S", tensor.Q3_K, 11}, {"Q3_K_M", tensor.Q3_K, 12}, {"Q3_K_L", tensor.Q3_K, 13},
	{"Q4_K_S", tensor.Q4_K, 14}, {"Q4_K_M", tensor.Q4_K, 15}, {"Q5_K_S", tensor.Q5_K, 16}, {"Q5_K_M", tensor.Q5_K, 17},
	{"Q6_K", tensor.Q6_K, 18}, {"IQ4_NL", tensor.IQ4_NL, 25}, {"IQ4_XS", tensor.IQ4_XS, 30}, {"MXFP4_MOE", tensor.MXFP4, 38},
}

// Names returns the mixes by name, Keep not among them.
func Names() []string {
	names := make([]string, len(mixes))
	for i, m := range mixes {
		names[i] = m.name
	}
	return names
}

// Known returns an error for a name, in letters of any case, that is neither a mix nor Keep.
func Known(name string) error {
	_, err := mixOf(name)
	return err
}

func mixOf(name string) (mix, error) {
	if strings.EqualFold(name, Keep) {
		return mix{name: Keep}, nil
	}
	i := slices.IndexFunc(mixes, func(m mix) bool { return strings.EqualFold(m.name, name) })
	if i < 0 {
		return mix{}, fmt.Errorf("type %.40q is not known; %s are", name, strings.Join(Names(), ", "))
	}
	return mixes[i], nil
}

// chooser chooses the type of each tensor of a file under a mix, as llama.cpp does without an importance
// matrix.
type chooser struct {
	mix
	layers, experts int
	shared          int  // query heads to a key head
	tied            bool // the embedding table is the output head
	values          []int
}

func newChooser(f *gguf.File, m mix) (*chooser, error) {
	c := &chooser{mix: m, tied: true, shared: 1}
	arch, _, err := f.String("general.architecture")
	if err != nil {
		return nil, err
	}
	var heads, keys int
	for key, n := range map[string]*int{
		"block_count": &c.layers, "expert_count": &c.experts, "attention.head_count": &heads, "attention.head_count_kv": &keys,
	} {
		if v, ok := f.Lookup(arch + "." + key); ok && v.Kind() == gguf.Array {
			continue // a number for each layer: no one number for a rule
		}
		if *n, _, err = f.Uint(arch + "." + key); err != nil {
			return nil, err
		}
	}
	if keys > 0 {
		c.shared = heads / keys
	}
	for _, t := range f.Tensors {
		if t.Name == "output.weight" {
			c.tied = false
		}
		if isValue(t.Name) {
			c.values = append(c.values, layerOf(t.Name))
		}
	}
	slices.Sort(c.values)
	return c, nil
}

// kept are parts of names of matrices that stay as they are: small, and felt by all that follows.
var kept = []string{
	"_norm.weight", "ffn_gate_inp.weight", "ffn_gate_tid2eid.weight", "altup", "laurel", "per_layer_model_proj",
	"ssm_conv1d", "shortconv.conv.weight", "time_mix_", "attn_rel_b.weight", ".position_embd", ".rel_pos", ".patch_embd",
}

// quantisable reports whether a tensor takes part: a matrix or a stack of them, of weights.
func quantisable(t tensor.View) bool {
	shape := t.Shape
	for len(shape) > 0 && shape[0] == 1 {
		shape = shape[1:]
	}
	return len(shape) >= 2 && strings.HasSuffix(t.Name, "weight") &&
		t.Name != "position_embd.weight" && t.Name != "token_types.weight" &&
		!slices.ContainsFunc(kept, func(part string) bool { return strings.Contains(t.Name, part) })
}

// typeOf returns the type that a tensor gets.
func (c *chooser) typeOf(t tensor.View) tensor.Type {
	if c.name == Keep || !quantisable(t) {
		return t.Type
	}
	if elems, _, _ := c.typ.Block(); elems == 1 {
		return c.typ
	}
	return fitting(c.choose(t), t.Shape[len(t.Shape)-1])
}

// fallbacks are the types for rows that are no multiple of 256.
var fallbacks = map[tensor.Type]tensor.Type{
	tensor.Q2_K: tensor.Q4_0, tensor.Q3_K: tensor.Q4_0, tensor.Q4_K: tensor.Q5_0, tensor.Q5_K: tensor.Q5_1,
	tensor.Q6_K: tensor.Q8_0, tensor.IQ4_XS: tensor.IQ4_NL,
}

// fitting returns a type that rows of n elements can have: t, its fallback, or F16.
func fitting(t tensor.Type, n int) tensor.Type {
	if _, ok := t.RowBytes(n); ok {
		return t
	}
	if other, ok := fallbacks[t]; ok {
		if _, ok := other.RowBytes(n); ok {
			return other
		}
	}
	return tensor.F16
}

// isValue reports whether a tensor is like the projection of values, which feels rounding the most.
func isValue(name string) bool {
	return strings.Contains(name, "attn_v.weight") || strings.Contains(name, "attn_qkv.weight") || strings.Contains(name, "attn_kv_b.weight")
}

// layerOf returns the layer of a tensor, 0 for one outside the layers.
func layerOf(name string) (layer int) {
	_, _ = fmt.Sscanf(name, "blk.%d.", &layer) // 0 where the name has no layer
	return layer
}

// choose applies the rules of a mix of block types.
func (c *chooser) choose(t tensor.View) tensor.Type {
	table := t.Name == "token_embd.weight"
	switch {
	case t.Name == "output.weight" || table && c.tied:
		return c.output(t)
	case c.name == "MXFP4_MOE":
		if len(t.Shape) == 3 && t.Shape[0] > 1 {
			return tensor.MXFP4
		}
		return tensor.Q8_0
	case table:
		return c.typ
	case isValue(t.Name):
		return c.value(t)
	case strings.Contains(t.Name, "attn_k.weight") && c.experts == 8:
		return tensor.Q8_0
	case strings.Contains(t.Name, "attn_output.weight"):
		return c.attentionOutput()
	case strings.Contains(t.Name, "ffn_down"):
		return c.down(layerOf(t.Name))
	}
	return c.typ
}

func (c *chooser) output(t tensor.View) tensor.Type {
	if _, ok := c.typ.RowBytes(t.Shape[len(t.Shape)-1]); !ok || c.typ == tensor.Q8_0 || c.name == "MXFP4_MOE" {
		return tensor.Q8_0
	}
	return tensor.Q6_K
}

// moreBits picks the layers that feel rounding more: the first and the last eighth, and every third between.
func moreBits(i, n int) bool { return i < n/8 || i >= 7*n/8 || (i-n/8)%3 == 2 }

// value is the rule for isValue; tensors count by their place among their like.
func (c *chooser) value(t tensor.View) tensor.Type {
	i, _ := slices.BinarySearch(c.values, layerOf(t.Name))
	typ := c.typ
	switch many := c.shared >= 4; c.name {
	case "Q2_K":
		typ = tensor.Q3_K
		if many {
			typ = tensor.Q4_K
		}
	case "Q3_K_M":
		typ = tensor.Q4_K
		if i < 2 {
			typ = tensor.Q5_K
		}
	case "Q3_K_L":
		typ = tensor.Q5_K
	case "IQ4_NL", "IQ4_XS":
		if many {
			typ = tensor.Q5_K
		}
	case "Q4_K_M", "Q5_K_M":
		if moreBits(i, len(c.values)) {
			typ = tensor.Q6_K
		}
	case "Q4_K_S":
		if i < 4 {
			typ = tensor.Q5_K
		}
	}
	if c.layers == 80 && c.shared == 8 && (typ == tensor.Q3_K || typ == tensor.Q4_K) {
		typ = tensor.Q5_K // models of 70 B: the tensor is an eighth of the others
	}
	if c.experts == 8 {
		typ = tensor.Q8_0
	}
	return typ
}

func (c *chooser) attentionOutput() tensor.Type {
	if c.experts == 8 {
		switch c.name {
		case "Q2_K", "Q3_K_S", "Q3_K_M", "IQ4_NL", "IQ4_XS", "Q4_K_S", "Q4_K_M":
			return tensor.Q5_K
		}
		return c.typ
	}
	switch c.name {
	case "Q2_K":
		return tensor.Q3_K
	case "Q3_K_M":
		return tensor.Q4_K
	case "Q3_K_L":
		return tensor.Q5_K
	}
	return c.typ
}

func (c *chooser) down(layer int) tensor.Type {
	n := c.layers
	switch c.name {
	case "Q2_K":
		return tensor.Q3_K
	case "Q3_K_M":
		if layer < n/16 {
			return tensor.Q5_K
		}
		return tensor.Q4_K
	case "Q3_K_L":
		return tensor.Q5_K
	case "Q4_K_M", "Q5_K_M":
		if moreBits(layer, n) {
			return tensor.Q6_K
		}
	case "Q4_K_S", "IQ4_NL", "IQ4_XS":
		if layer < n/8 {
			return tensor.Q5_K
		}
	}
	return c.typ
}

// fileType returns the number for general.file_type: that of the mix, or of what most weights are.
func (c *chooser) fileType(tensors []tensor.View) uint32 {
	if c.name != Keep {
		return c.file
	}
	count := map[tensor.Type]int{}
	most := tensor.F32
	for _, t := range tensors {
		if count[t.Type] += t.Elems(); count[t.Type] > count[most] {
			most = t.Type
		}
	}
	for _, m := range mixes {
		if m.typ == most {
			return m.file
		}
	}
	return 0
}

// supported refuses a change of type that cannot or should not be made.
func supported(t tensor.View, to tensor.Type, again bool) error {
	elems, _, _ := t.Type.Block()
	switch {
	case t.Type == to:
	case !codec.Supported(t.Type):
		return fmt.Errorf("quantize: tensor %q has type %v, which cannot be read", t.Name, t.Type)
	case elems > 1 && !again:
		return fmt.Errorf("quantize: tensor %q is quantised already, as %v; doing it again loses more, and must be asked for", t.Name, t.Type)
	}
	return nil
}
