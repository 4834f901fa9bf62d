package hf

import (
	"math"
	"path/filepath"
	"slices"
	"strings"

	"grove/internal/weights/gguf"
)

// NameOf returns the name of a model by its folder: the last part, or that of the repository in a cache
// whose folders end in models--OWNER--NAME/snapshots/REVISION.
func NameOf(dir string) string {
	if whole, err := filepath.Abs(dir); err == nil {
		dir = whole
	}
	if up := filepath.Dir(dir); filepath.Base(up) == "snapshots" {
		parts := strings.Split(filepath.Base(filepath.Dir(up)), "--")
		return strings.ToValidUTF8(parts[len(parts)-1], "?")
	}
	return strings.ToValidUTF8(filepath.Base(dir), "?")
}

// SetCountOnce replaces a number that was added.
func (b *FolderBuilder) SetCountOnce(key string, n int) {
	b.Metadata = slices.DeleteFunc(b.Metadata, func(kv gguf.KV) bool { return kv.Key == b.Arch+key })
	b.SetCount(key, n)
}

// RMSEps adds the epsilon of RMSNorm.
func (b *FolderBuilder) RMSEps(other float64) {
	b.SetFloat(".attention.layer_norm_rms_epsilon", b.Config.FloatOr("rms_norm_eps", other, 0, 1))
}

// Experts adds the counts of a mixture and returns that of its experts.
func (b *FolderBuilder) Experts(key string) int {
	n := b.Config.Count(key, 1, maxExperts)
	b.SetCount(".expert_count", n)
	b.SetCount(".expert_used_count", b.Config.Count("num_experts_per_tok", 1, n))
	return n
}

// Window returns the sliding window of a family, 0 for none.
func (b *FolderBuilder) Window() int {
	return b.Config.CountOr("sliding_window", 0, 0, folderMaxContext)
}

// WithinWindow keeps the context of a family whose GGUF cannot tell of its sliding window inside it,
// where the window changes nothing.
func (b *FolderBuilder) WithinWindow() {
	c := b.Config
	n := b.Window()
	if n > 0 && c.BoolOr("use_sliding_window", true) && n < c.Count("max_position_embeddings", 1, folderMaxContext) {
		c.Values["max_position_embeddings"] = c.Values["sliding_window"]
	}
}

// Gemma3Rope adds two rotations: one for the layers without a window, scaled linearly in the larger
// models, one for those with a window.
func (b *FolderBuilder) Gemma3Rope(size int) {
	c := b.Config
	if p := c.Sub("rope_parameters"); p.Has("full_attention") { // newer folders
		c.Values["rope_scaling"] = p.Values["full_attention"]
		local := p.Sub("sliding_attention")
		c.Values["rope_theta"] = p.Sub("full_attention").Values["rope_theta"]
		c.Values["rope_local_base_freq"] = local.Values["rope_theta"]
		delete(c.Values, "rope_parameters")
	}
	if !c.Has("rope_theta") {
		c.Values["rope_theta"] = []byte("1000000")
	}
	b.Rope(size)
	b.SetFloat(".rope.freq_base_swa", c.FloatOr("rope_local_base_freq", 10000, 1, math.MaxFloat32))
}

// Describe adds which model this is.
func (b *FolderBuilder) Describe(arch string) {
	b.Arch = arch
	FolderSet(b, "general.architecture", arch)
	FolderSet(b, "general.type", "model")
	FolderSet(b, "general.name", NameOf(b.Dir))
	FolderSet(b, "general.quantization_version", uint32(2)) // of the block formats
}

// GemmaActs refuses activations that Gemma does not have.
func (b *FolderBuilder) GemmaActs() {
	b.Config.Only("hidden_act", "gelu", "gelu_pytorch_tanh") // the older name means the same in Gemma
	b.Config.Only("hidden_activation", "gelu_pytorch_tanh")
}

// Windows adds the sliding window and refuses layers that have it against the rule: full reports the layers without a window.
func (b *FolderBuilder) Windows(layers int, full func(layer int) bool) {
	b.SetCount(".attention.sliding_window", b.Config.Count("sliding_window", 1, folderMaxContext))
	var kinds []string
	if !b.Config.Value("layer_types", &kinds, "an array of kinds") {
		return
	}
	if len(kinds) != layers {
		b.Config.Fail("layer_types has %d entries, there are %d layers", len(kinds), layers)
		return
	}
	for i, kind := range kinds {
		want := "sliding_attention"
		if full(i) {
			want = "full_attention"
		}
		if kind != want {
			b.Config.Fail("layer_types has %.40q for layer %d; this family has %q there", kind, i, want)
			return
		}
	}
}
