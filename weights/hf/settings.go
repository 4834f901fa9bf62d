package hf

// Limits on settings: generous for any model, small enough that products of them stay in range.
const (
	maxLayers  = 1 << 10
	maxContext = 1 << 24
	maxWidth   = 1 << 20
	maxHeads   = 1 << 12
	maxExperts = 1 << 12
)

// shape is the settings that decoders share.
type shape struct {
	layers, width, ffn   int
	heads, kvHeads, size int
	value                int // of a head's values; 0: size
	context              int
}

// decoder reads the shared settings and adds them.
func (b *builder) decoder(arch string) shape {
	s := b.shape()
	b.describe(arch, s)
	return s
}

// shape reads the shared settings.
func (b *builder) shape() shape {
	c := b.Config
	s := shape{
		layers:  c.Count("num_hidden_layers", 1, maxLayers),
		width:   c.Count("hidden_size", 1, maxWidth),
		ffn:     c.Count("intermediate_size", 1, maxWidth),
		heads:   c.Count("num_attention_heads", 1, maxHeads),
		context: c.Count("max_position_embeddings", 1, maxContext),
	}
	s.kvHeads = c.CountOr("num_key_value_heads", s.heads, 1, maxHeads)
	s.size = c.CountOr("head_dim", s.width/s.heads, 1, maxHeads)
	return s
}

// describe adds which model this is, and the shared settings.
func (b *builder) describe(arch string, s shape) {
	b.Describe(arch)
	b.SetCount(".context_length", s.context)
	b.SetCount(".embedding_length", s.width)
	b.SetCount(".block_count", s.layers)
	b.SetCount(".feed_forward_length", s.ffn)
	b.SetCount(".attention.head_count", s.heads)
	b.SetCount(".attention.head_count_kv", s.kvHeads)
	b.SetCount(".attention.key_length", s.size)
	if s.value == 0 {
		s.value = s.size
	}
	b.SetCount(".attention.value_length", s.value)
}
