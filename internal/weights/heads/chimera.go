package heads

import "fmt"

// chimera presents heads of Chimera (Zeng et al. 2024): of three tokens' embeddings a block and a matrix make a row (trimlp), which a layer of the target's shape reads
// behind the target's states (fast_layer1); head k reads the last state and what the layer gives. The authors' three pickles are one file here, whose names begin with
// theirs. A head has a matrix of the vocabulary, or, as grove trains them, one before the target's (chimera_head.K.mix).
func chimera(b *builder) {
	heads := 0
	for _, at := range b.numbered(`^chimera_head\.(\d+)\.(?:0|mix)\.weight$`) {
		heads = max(heads, at[0]+1)
	}
	if heads == 0 {
		b.Fail("no tensor chimera_head.0.0.weight or chimera_head.0.mix.weight: the heads are missing, which the authors keep in chimera_head.pt; take the tensors out of all three pickles at once")
		return
	}
	b.setWidth(b.rowsOf("trimlp.1.weight"))
	if !b.OK() {
		return
	}
	b.SetCount(".block_count", heads)
	b.take("trigram.in.weight", "trimlp.0.linear.weight", 3*b.width, 3*b.width)
	b.take("trigram.in.bias", "trimlp.0.linear.bias", 3*b.width)
	b.take("trigram.out.weight", "trimlp.1.weight", b.width, 3*b.width)
	var outputs []string
	for k := range heads {
		outputs = append(outputs, fmt.Sprintf("chimera_head.%d.0.weight", k))
	}
	vocab := b.rowsOf(outputs...)
	b.setVocabulary(vocab)
	for k, output := range outputs {
		if vocab > 0 {
			b.take(fmt.Sprintf("blk.%d.output.weight", k), output, vocab, 2*b.width)
		} else {
			b.take(fmt.Sprintf("blk.%d.mix.weight", k), fmt.Sprintf("chimera_head.%d.mix.weight", k), b.width, 2*b.width)
		}
	}
	b.targetLayer(layer{to: "prefix.", from: "fast_layer1.0.", inputs: b.width, norm: true, mlp: true})
}
