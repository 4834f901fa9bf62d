package hf

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"grove/internal/fileio"
	"grove/internal/weights/gguf"
)

// module is an entry of modules.json, the list of what sentence-transformers runs one behind the other.
type module struct{ Path, Type string }

// kind returns the name of the module's class without the packages that it is in.
func (m module) kind() string { return m.Type[strings.LastIndexByte(m.Type, '.')+1:] }

// encodes adds what all encoders say: that tokens see each other, and what sentence-transformers has behind them. A head that ranks counts
// before that.
func (b *encodersBuilder) encodes(ranks bool) {
	FolderSet(b.FolderBuilder, ".attention.causal", false)
	if ranks {
		b.SetCount(".pooling_type", 4)
		return
	}
	pooling, layers := "1_Pooling", 0
	ended := false
	for i, m := range b.modules() {
		kind := m.kind()
		switch {
		case !filepath.IsLocal(m.Path) && m.Path != "":
			b.Fail("%s: module %d has the path %.80q; it must be a folder in this one", modulesName, i, m.Path)
		case ended:
			b.Fail("%s: module %d (%.80s) behind Normalize is not supported", modulesName, i, kind)
		case kind == "Transformer" && i == 0:
		case kind == "Pooling" && i == 1:
			pooling = m.Path
		case kind == "Dense" && i > 1:
			b.dense(m.Path, layers)
			layers++
		case kind == "Normalize" && i > 1:
			ended = true
		default:
			b.Fail("%s: module %d is %.80q; Transformer, Pooling, Dense and Normalize, in this order, are supported", modulesName, i, kind)
		}
	}
	b.pooling(pooling)
}

const modulesName = "modules.json"

// modules reads the list of modules, which may be missing.
func (b *encodersBuilder) modules() (list []module) {
	text, err := fileio.ReadRegular(filepath.Join(b.Dir, modulesName), MaxJSON)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		b.Fail("%s: %w", modulesName, Explained(err))
	}
	return list
}

// pooling adds how the folder pools.
func (b *encodersBuilder) pooling(dir string) {
	c := b.OptionalConfig(filepath.Join(b.Dir, dir, ConfigName))
	var on []string
	for key := range c.Values {
		if strings.HasPrefix(key, "pooling_mode_") && c.BoolOr(key, false) {
			on = append(on, key)
		}
	}
	kinds := map[string]int{"pooling_mode_mean_tokens": 1, "pooling_mode_cls_token": 2, "pooling_mode_lasttoken": 3}
	switch {
	case len(on) == 1 && kinds[on[0]] > 0:
		b.SetCount(".pooling_type", kinds[on[0]])
	case len(on) > 0:
		slices.Sort(on)
		c.Fail("%s is not supported; one of mean_tokens, cls_token and lasttoken is", strings.Join(on, " with "))
	}
}

// pooled reports whether the folder says how it pools.
func (b *encodersBuilder) pooled() bool {
	return slices.ContainsFunc(b.Metadata, func(kv gguf.KV) bool { return kv.Key == b.Arch+".pooling_type" })
}

// dense adds layer n behind the pooling, whose folder has its own settings and its own tensors. GGUF tells of two, without activations.
func (b *encodersBuilder) dense(dir string, n int) {
	names := []string{"dense_2", "dense_3"}
	if n >= len(names) {
		b.Fail("%s: more than %d modules Dense are not supported", modulesName, len(names))
		return
	}
	c := b.OptionalConfig(filepath.Join(b.Dir, dir, ConfigName))
	const identity = "torch.nn.modules.linear.Identity"
	if f := c.TextOr("activation_function", "torch.nn.modules.activation.Tanh"); f != identity {
		c.Fail("activation_function is %.80q; only %s is supported", f, identity)
	}
	for _, key := range []string{"module_input_name", "module_output_name"} {
		c.Only(key, "sentence_embedding")
	}
	in, out := c.Count("in_features", 1, encodersMaxWidth), c.Count("out_features", 1, encodersMaxWidth)
	root := filepath.ToSlash(filepath.Clean(dir)) + "/"
	b.Part(dir, root)
	b.SetCount("."+names[n]+"_feat_in", in)
	b.SetCount("."+names[n]+"_feat_out", out)
	b.Copy(names[n]+".weight", root+"linear.weight", out, in)
	if c.BoolOr("bias", true) {
		b.Copy(names[n]+".bias", root+"linear.bias", out)
	}
}
