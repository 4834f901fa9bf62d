package heads

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

const (
	hydraPrefix = "prefix_embeding_layer." // as published
	hydraTable  = "input_embed_fn.weight"
)

// hydra presents heads of Hydra and Hydra++ (Ankner et al. 2024). Head k reads the state and the embeddings of k+1 tokens. Dropout modules
// of Hydra++ take every second number of the names.
func hydra(b *builder) {
	c := b.Config
	c.Only("hydra_head_arch", "mlp", "prefix-mlp")
	if !c.BoolOr("grounded_heads", true) {
		b.Fail("grounded_heads is false in config.json; grove's Hydra heads read the tokens before them")
	}
	if n := c.CountOr("hidden_state_offset", 0, 0, maxHeads); n != 0 {
		b.Fail("hidden_state_offset is %d in config.json; grove's Hydra heads read the state after the final norm, 0", n)
	}
	heads, slots := b.hydraBlocks()
	if !b.OK() {
		return
	}
	var first []string
	for k := range heads {
		first = append(first, fmt.Sprintf("hydra_mlp.%d.%d.linear.weight", k, slots[0]))
	}
	b.setWidth(b.rowsOf(first...))
	if !b.OK() {
		return
	}
	b.SetCount(".block_count", heads)
	b.SetCount(".residual_count", len(slots)-1)
	output := ".weight"
	if len(b.numbered(`^hydra_lm_head\.(\d+)\.1\.`)) > 0 {
		output = ".1.weight"
	}
	var outputs []string
	for k := range heads {
		outputs = append(outputs, fmt.Sprintf("hydra_lm_head.%d%s", k, output))
	}
	vocab := b.rowsOf(outputs...)
	b.setVocabulary(vocab)
	for k := range heads {
		b.hydraHead(k, slots, outputs[k], vocab)
	}
	if b.has(hydraPrefix) {
		b.hydraLayer()
	}
	b.drop(hydraTable, "it is the target's table of embeddings")
}

// hydraBlocks returns the number of heads and the numbers that their blocks have in names.
func (b *builder) hydraBlocks() (heads int, slots []int) {
	low, high := maxHeads, 0
	for _, at := range b.numbered(`^hydra_mlp\.(\d+)\.(\d+)\.(?:linear|res_connection)\.(?:weight|bias)$`) {
		heads, low, high = max(heads, at[0]+1), min(low, at[1]), max(high, at[1])
	}
	if heads == 0 || low > 1 {
		b.Fail("no tensor hydra_mlp.0.0.linear.weight or hydra_mlp.0.1.linear.weight: a head begins with one of them")
		return 0, []int{0}
	}
	if said := b.Config.CountOr("hydra_num_heads", heads, 1, maxHeads); said != heads {
		b.note(fmt.Sprintf("config.json says hydra_num_heads %d; the file has %d heads, and all are taken", said, heads))
	}
	step := low + 1 // 2 where dropout has the even numbers
	n := max((high-low)/step+1, b.Config.CountOr("hydra_num_layers", 1, 1, maxHeads))
	for j := range n {
		slots = append(slots, low+j*step)
	}
	return heads, slots
}

// hydraHead adds one head.
func (b *builder) hydraHead(k int, slots []int, output string, vocab int) {
	to, in := fmt.Sprintf("blk.%d.", k), (k+2)*b.width
	from := func(j int) string { return fmt.Sprintf("hydra_mlp.%d.%d", k, slots[j]) }
	b.take(to+"in.weight", from(0)+".linear.weight", b.width, in)
	b.take(to+"in.bias", from(0)+".linear.bias", b.width)
	b.take(to+"skip.weight", from(0)+".res_connection.weight", b.width, in)
	b.take(to+"skip.bias", from(0)+".res_connection.bias", b.width)
	b.residual(to+"res", len(slots)-1, func(j int) string { return from(j+1) + ".linear" })
	if vocab == 0 {
		return // the target's matrix is lent
	}
	b.take(to+"output.weight", output, vocab, b.width)
	b.takeIf(to+"output.bias", strings.TrimSuffix(output, "weight")+"bias", vocab)
}

// hydraLayer adds the layer before Hydra++'s heads, whose settings are the target's.
func (b *builder) hydraLayer() {
	if b.targetLayer(layer{to: "prefix.", from: hydraPrefix + "layers.0.", inputs: b.width, norm: true, mlp: true}) {
		b.take("prefix.output_norm.weight", hydraPrefix+"norm.weight", b.width)
		b.drop(hydraPrefix+"embed_tokens.weight", "the layer reads states, not tokens")
	}
}

// targetLayer adds a layer that has the target's shape, of which config.json says what it likes, and reports whether that is known.
func (b *builder) targetLayer(l layer) bool {
	b.lend()
	if !b.Config.Has("num_attention_heads") {
		b.Fail("config.json does not say num_attention_heads, for the prefix layer; name the target, whose layer it has the shape of, or add the key")
		return false
	}
	b.attention()
	b.layer(l)
	return true
}

// lend sets what config.json does not say of a layer that has the target's shape.
func (b *builder) lend() {
	if b.target == nil {
		return
	}
	arch, _, _ := b.target.String("general.architecture")
	values := map[string]json.RawMessage{}
	for key, from := range map[string]string{
		"num_attention_heads": "attention.head_count", "num_key_value_heads": "attention.head_count_kv", "head_dim": "attention.key_length",
	} {
		if n, ok, err := b.target.Uint(arch + "." + from); ok && err == nil {
			values[key], _ = json.Marshal(n) // numbers have no error
		}
	}
	for key, from := range map[string]string{"rope_theta": "rope.freq_base", "rms_norm_eps": "attention.layer_norm_rms_epsilon"} {
		if x, ok, err := b.target.Float(arch + "." + from); ok && err == nil && !math.IsInf(x, 0) && !math.IsNaN(x) {
			values[key], _ = json.Marshal(x)
		}
	}
	for key, v := range b.Config.Values {
		if !slices.Equal(v, []byte("null")) {
			values[key] = v
		}
	}
	b.Config.Values = values
}
