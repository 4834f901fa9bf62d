package heads

import "fmt"

// bounds of Falcon's heads.
const (
	maxBlock = 64 // rows of a block
	maxCells = 4  // layers of an LSTM
	maxPairs = 16 // pairs that it reads
)

// falcon presents a head of Falcon (Gao et al. 2025): decoder layers as EAGLE's, which read what an LSTM makes of a token's embedding and a state, in this order. Rows of a block of
// k_mask see each other. The key lstm_pairs, which published heads do not have, says how many pairs the LSTM reads for each row. Their code has it read one, so that what
// it carries from row to row is never used.
func falcon(b *builder) {
	rows, _ := b.matrix("lstm.weight_ih_l0")
	b.setWidth(rows / 4)
	layers := b.layerCount()
	b.attention()
	block := b.Config.Count("k_mask", 1, maxBlock)
	if !b.OK() {
		return
	}
	pairs := b.Config.CountOr("lstm_pairs", 1, 1, min(maxPairs, block))
	b.SetCount(".block_size", block)
	b.SetCount(".lstm_pairs", pairs)
	inputs := 2 * b.width
	for i := range maxCells {
		from := func(name string) string { return fmt.Sprintf("lstm.%s_l%d", name, i) }
		if i > 0 && !b.has(from("weight_ih")) {
			break
		}
		b.cell(fmt.Sprintf("lstm.%d.", i), from, inputs, pairs)
		inputs = b.width
	}
	b.decoder(layers)
	b.ends(b.rowsOf("lm_head.weight", "embed_tokens.weight"))
}

// cell adds a layer of an LSTM, whose gates are in the order of i, f, g and o.
func (b *builder) cell(to string, from func(string) string, inputs, pairs int) {
	gates := 4 * b.width
	b.take(to+"ih.weight", from("weight_ih"), gates, inputs)
	b.takeIf(to+"ih.bias", from("bias_ih"), gates)
	b.takeIf(to+"hh.bias", from("bias_hh"), gates)
	if pairs > 1 {
		b.take(to+"hh.weight", from("weight_hh"), gates, b.width)
		return
	}
	b.drop(from("weight_hh"), "the LSTM reads one pair for each row, so that nothing is carried on")
}
