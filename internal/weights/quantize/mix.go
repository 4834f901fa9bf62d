package quantize

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"grove/internal/options"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// Keep is the name that leaves every tensor as it is.
const Keep = "auto"

// A mix says which tensors get which type: the type that most get, and rules for the tensors that suffer more from
// rounding. Of the rules for a tensor, the first that applies decides.
type mix struct {
	name string
	typ  tensor.Type
	file uint32 // its number as general.file_type

	value, attnOut, down []rule // for the projections of values, of attention's output, and of the feed-forward layer
	eightAttnOut         []rule // instead of attnOut, in models of eight experts
	stacks               bool   // only stacks of experts get the type, all else Q8_0
}

// A rule gives a type to the tensors for which a predicate holds.
type rule struct {
	to   tensor.Type
	when func(place) bool
}

// A place is the input of a rule: the tensor is number i of n, and shared query heads share a key head.
type place struct{ i, n, shared int }

func always(place) bool           { return true }
func grouped(p place) bool        { return p.shared >= 4 }
func firstSixteenth(p place) bool { return p.i < p.n/16 }
func firstEighth(p place) bool    { return p.i < p.n/8 }

// moreBits holds for the first and the last eighth, and every third between.
func moreBits(p place) bool {
	return p.i < p.n/8 || p.i >= 7*p.n/8 || (p.i-p.n/8)%3 == 2
}

// first holds for the first n tensors.
func first(n int) func(place) bool { return func(p place) bool { return p.i < n } }

// mixes are those of llama.cpp that are more than one type for all matrices. The types without one have a mix of
// their own name, without rules.
var mixes = []mix{
	{
		name: "Q2_K", typ: tensor.Q2_K, file: 10,
		value:        []rule{{tensor.Q4_K, grouped}, {tensor.Q3_K, always}},
		attnOut:      []rule{{tensor.Q3_K, always}},
		eightAttnOut: []rule{{tensor.Q5_K, always}},
		down:         []rule{{tensor.Q3_K, always}},
	},
	{name: "Q3_K_S", typ: tensor.Q3_K, file: 11, eightAttnOut: []rule{{tensor.Q5_K, always}}},
	{
		name: "Q3_K_M", typ: tensor.Q3_K, file: 12,
		value:        []rule{{tensor.Q5_K, first(2)}, {tensor.Q4_K, always}},
		attnOut:      []rule{{tensor.Q4_K, always}},
		eightAttnOut: []rule{{tensor.Q5_K, always}},
		down:         []rule{{tensor.Q5_K, firstSixteenth}, {tensor.Q4_K, always}},
	},
	{
		name: "Q3_K_L", typ: tensor.Q3_K, file: 13,
		value:   []rule{{tensor.Q5_K, always}},
		attnOut: []rule{{tensor.Q5_K, always}},
		down:    []rule{{tensor.Q5_K, always}},
	},
	{
		name: "Q4_K_S", typ: tensor.Q4_K, file: 14,
		value:        []rule{{tensor.Q5_K, first(4)}},
		eightAttnOut: []rule{{tensor.Q5_K, always}},
		down:         []rule{{tensor.Q5_K, firstEighth}},
	},
	{
		name: "Q4_K_M", typ: tensor.Q4_K, file: 15,
		value:        []rule{{tensor.Q6_K, moreBits}},
		eightAttnOut: []rule{{tensor.Q5_K, always}},
		down:         []rule{{tensor.Q6_K, moreBits}},
	},
	{name: "Q5_K_S", typ: tensor.Q5_K, file: 16},
	{
		name: "Q5_K_M", typ: tensor.Q5_K, file: 17,
		value: []rule{{tensor.Q6_K, moreBits}},
		down:  []rule{{tensor.Q6_K, moreBits}},
	},
	{
		name: "IQ4_NL", typ: tensor.IQ4_NL, file: 25,
		value:        []rule{{tensor.Q5_K, grouped}},
		eightAttnOut: []rule{{tensor.Q5_K, always}},
		down:         []rule{{tensor.Q5_K, firstEighth}},
	},
	{
		name: "IQ4_XS", typ: tensor.IQ4_XS, file: 30,
		value:        []rule{{tensor.Q5_K, grouped}},
		eightAttnOut: []rule{{tensor.Q5_K, always}},
		down:         []rule{{tensor.Q5_K, firstEighth}},
	},
	{name: "MXFP4_MOE", typ: tensor.MXFP4, file: 38, stacks: true},
}

// allMixes are the mixes as users know them, in the order of the weight types.
var allMixes = func() (all []mix) {
	for _, t := range tensor.Types() {
		n := len(all)
		for _, m := range mixes {
			if m.typ == t {
				all = append(all, m)
			}
		}
		if c, _ := tensor.CodecOf(t); len(all) == n {
			all = append(all, mix{name: c.Name, typ: t, file: c.FileType})
		}
	}
	return all
}()

// Names returns the mixes by name, Keep not among them.
func Names() []string {
	names := make([]string, len(allMixes))
	for i, m := range allMixes {
		names[i] = m.name
	}
	return names
}

// ErrQuantized reports weights that are quantized already.
var ErrQuantized = errors.New("is quantized already")

// Known returns an error for a name, in letters of any case, that is neither a mix nor Keep.
func Known(name string) error {
	_, err := mixOf(name)
	return err
}

func mixOf(name string) (mix, error) {
	if strings.EqualFold(name, Keep) {
		return mix{name: Keep}, nil
	}
	i := slices.IndexFunc(allMixes, func(m mix) bool { return strings.EqualFold(m.name, name) })
	if i < 0 {
		return mix{}, fmt.Errorf("type %.40q is not known; the types are %s%s", name, strings.Join(Names(), ", "), options.NearHint(name, Names()))
	}
	return allMixes[i], nil
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

// kept are parts of the names of matrices that keep their type: they are small, and their errors reach all later layers.
var kept = []string{
	"_norm.weight", "diffusion.filter.", "ffn_gate_inp.weight", "ffn_gate_tid2eid.weight", "altup", "laurel", "per_layer_model_proj",
	"ssm_conv1d", "shortconv.conv.weight", "time_mix_", "attn_rel_b.weight", ".position_embd", ".rel_pos", ".patch_embd",
}

// quantisable reports whether a mix applies to a tensor: a weight matrix, or a stack of them.
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
	if codec, _ := tensor.CodecOf(c.typ); !codec.Quantised() {
		return c.typ
	}
	return fitting(c.choose(t), t.Shape[len(t.Shape)-1])
}

// fitting returns a type whose blocks cut rows of n elements: t, its fallback, or the fallback of that.
func fitting(t tensor.Type, n int) tensor.Type {
	for {
		if _, ok := t.RowBytes(n); ok {
			return t
		}
		c, _ := tensor.CodecOf(t)
		t = c.Fallback
	}
}

// isValue reports whether a tensor is a projection of values, or holds one. It suffers the most from rounding.
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
	at := place{i: layerOf(t.Name), n: c.layers, shared: c.shared}
	switch {
	case t.Name == "output.weight" || table && c.tied:
		return c.output(t)
	case c.stacks:
		if len(t.Shape) == 3 && t.Shape[0] > 1 {
			return c.typ
		}
		return tensor.Q8_0
	case table:
		return c.typ
	case isValue(t.Name):
		return c.valueType(layerOf(t.Name))
	case strings.Contains(t.Name, "attn_k.weight") && c.experts == 8:
		return tensor.Q8_0
	case strings.Contains(t.Name, "attn_output.weight") && c.experts == 8:
		return c.apply(c.eightAttnOut, at)
	case strings.Contains(t.Name, "attn_output.weight"):
		return c.apply(c.attnOut, at)
	case strings.Contains(t.Name, "ffn_down"):
		return c.apply(c.down, at)
	}
	return c.typ
}

// apply returns the type of the first rule that applies, or that of the mix.
func (c *chooser) apply(rules []rule, at place) tensor.Type {
	for _, r := range rules {
		if r.when(at) {
			return r.to
		}
	}
	return c.typ
}

func (c *chooser) output(t tensor.View) tensor.Type {
	if _, ok := c.typ.RowBytes(t.Shape[len(t.Shape)-1]); !ok || c.typ == tensor.Q8_0 || c.stacks {
		return tensor.Q8_0
	}
	return tensor.Q6_K
}

// valueType returns the type of a tensor for which isValue holds. Its place is its number among these tensors.
func (c *chooser) valueType(layer int) tensor.Type {
	i, _ := slices.BinarySearch(c.values, layer)
	typ := c.apply(c.value, place{i: i, n: len(c.values), shared: c.shared})
	if c.layers == 80 && c.shared == 8 && (typ == tensor.Q3_K || typ == tensor.Q4_K) {
		typ = tensor.Q5_K // models of 70 B: the tensor is an eighth of the others
	}
	if c.experts == 8 {
		typ = tensor.Q8_0
	}
	return typ
}

// fileType returns the number for general.file_type: that of the mix, or of the type of most weights.
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
	if codec, ok := tensor.CodecOf(most); ok {
		return codec.FileType
	}
	return 0
}

// supported refuses a change of type that cannot or should not be made.
func supported(t tensor.View, to tensor.Type, again bool) error {
	codec, ok := tensor.CodecOf(t.Type)
	switch {
	case t.Type == to:
	case !ok:
		return fmt.Errorf("quantize: %s: type %v has no codec; use a file of another type, such as F16", tensor.Label(t.Name), t.Type)
	case codec.Quantised() && !again:
		return fmt.Errorf("quantize: %s: type %v %w, and to quantize it again loses more; 'grove quantize --allow-requantize' does so, or start from a model of floats", tensor.Label(t.Name), t.Type, ErrQuantized)
	}
	return nil
}
