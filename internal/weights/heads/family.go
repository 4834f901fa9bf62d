package heads

import (
	"fmt"
	"slices"
	"strings"

	"grove/internal/weights/safetensors"
	"grove/internal/weights/tensor"
)

// refused are the families that grove knows and has no drafter for, by name.
var refused = map[string]string{
	"dflash2": "DFlash 2", "mtp": "multi-token prediction outside a model",
}

// noDrafter refuses a family, or its published layout, by name.
func noDrafter(path, family string) error {
	return fmt.Errorf("heads: %s: grove has no drafter for %s heads yet (this is one by its names: %s); those that it has are for %s",
		path, family, refused[family], strings.Join(Families(), ", "))
}

// mark is what a family is recognised by: names of which one begins with prefix, and the names all of which are there.
type mark struct {
	family, prefix string
	names          []string
}

// marks are in the order in which they count: a later family may have the names of an earlier one too.
var marks = []mark{
	{"medusa", "medusa_head.", nil},
	{"hydra", "hydra_mlp.", nil},
	{"chimera", "trimlp.", nil},
	{"chimera", "fast_layer1.", nil},
	{"falcon-draft", "lstm.", nil},
	{"clover", "clover_", nil},
	{"specblock", "shift_proj.", nil},
	{"specblock", "", []string{"input_layer.position_queries.weight"}},
	{"specblock", "", []string{"input_layer.position_queries"}},
	{"peagle", "", []string{"mask_hidden"}},
	{"dflash2", "candidate_selector.", nil},
	{"dflash", "markov_head.", nil},
	{"dflash", "", []string{"layer_fusion_weights"}},
	{"dflash", "", []string{"fusion_weights", "layers.0.self_attn.q_norm.weight"}},
	{"dflash", "", []string{"fc.weight", "hidden_norm.weight"}},
	{"mtp", "mtp.", nil},
	{"mtp", "mtp_layers.", nil},
	{"eagle3", "midlayer.", nil},
	{"fspad", "fc.mlp.", nil},
	{"ppd", "", []string{prompts}},
	{"transfer", "transfer.", nil},
	{"m2r2", "blk.", nil},
	{"lora-drop", "", nil},
}

// speculators are the families by the key speculators_model_type.
var speculators = map[string]string{
	"eagle3": "eagle3", "peagle": "peagle", "dflash": "dflash", "dflash2": "dflash2", "dflare": "dflash", "dspark": "dflash", "mtp": "mtp",
}

// family recognises the family, and refuses one that has no drafter. The settings count before the names, and the names before the shapes.
func (b *builder) family() string {
	name := b.recognise()
	switch {
	case refused[name] != "":
		if b.Err == nil {
			b.Err = noDrafter(b.path, name)
		}
	case name == "":
		var first []string
		for i, t := range b.Weights.Tensors {
			if i < 4 {
				first = append(first, tensor.Label(t.Name))
			}
		}
		b.Fail("the tensors are of no drafting head that grove knows (%d tensors: %s); it knows %s", len(b.Weights.Tensors), strings.Join(first, ", "), strings.Join(Families(), ", "))
	}
	return name
}

// recognise returns the name of the family, "" for none.
func (b *builder) recognise() string {
	if kind := b.Config.TextOr("speculators_model_type", ""); kind != "" {
		if speculators[kind] == "" {
			b.Fail("speculators_model_type is %.40q in config.json; eagle3, peagle, dflash, dflare and dspark are supported", kind)
		}
		return speculators[kind]
	}
	for _, m := range marks {
		if m.is(b) {
			return m.family
		}
	}
	if b.Config.Has("dflash_config") {
		return "dflash"
	}
	rows, cols := b.matrix("fc.weight")
	switch layers := b.has("layers.0.self_attn."); {
	case layers && rows > 0 && cols == 3*rows:
		return "eagle3"
	case layers && rows > 0 && b.rowsOf("layers.0.mlp.down_proj.weight") == 2*rows:
		return "fspad"
	case layers && rows > 0:
		return "eagle"
	case layers && !b.has("layers.0.mlp."):
		return "kangaroo"
	case len(b.numbered(oldMedusa)) > 0:
		return "medusa"
	}
	return ""
}

// is reports whether the file has the mark.
func (m mark) is(b *builder) bool {
	if m.family == "lora-drop" {
		return slices.ContainsFunc(b.Weights.Tensors, func(t safetensors.Tensor) bool { return substitutedLayer.MatchString(t.Name) })
	}
	if m.prefix != "" {
		return b.has(m.prefix)
	}
	for _, name := range m.names {
		if _, ok := b.Weights.Tensor(name); !ok {
			return false
		}
	}
	return true
}
