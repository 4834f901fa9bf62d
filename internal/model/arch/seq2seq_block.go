// seq2seq_block.go holds encoder-decoders: an encoder reads the source, and the decoder's rows see its states beside their
// own text. Each file is an architecture, or a block that some share.

package arch

import (
	"math"

	"grove/internal/compute"
	"grove/internal/kv"
	"grove/internal/model"
	"grove/internal/text/token"
)

// maxLayers is the largest number of layers of a decoder.
const maxLayers = 128

// projections are the matrices of an attention block.
type projections struct {
	in  []compute.Projection // queries, keys, values
	out compute.Projection
}

// load loads the matrices that begin with a name. Keys and values are made of rows of from values.
func load(l *model.Loader, name string, s model.Hyperparameters, from int) projections {
	return projections{
		in: []compute.Projection{
			l.Projection(name+"_q", s.Heads*s.KeySize, s.Width), l.Projection(name+"_k", s.KVHeads*s.KeySize, from), l.Projection(name+"_v", s.KVHeads*s.ValueSize, from),
		},
		out: l.Projection(name+"_o", s.Width, s.Heads*s.ValueSize),
	}
}

// write makes the keys and values of tokens of the source.
func (p *projections) write(x *compute.Exec, layer int, states compute.Buf) {
	kv := x.Linears(p.in[1:], states)
	x.PutSource(layer, kv[0], kv[1])
}

// encoderInfo describes the encoder of an encoder-decoder: it has the same file, and layers of its own.
func encoderInfo(l *model.Loader, s model.Hyperparameters) *model.Info {
	info := *l.Info()
	info.Encoder, info.Source, info.Width = true, nil, s.Width
	info.Layers = layers(s, kv.Heads{})
	return &info
}

// layers returns what layers of equal heads keep.
func layers(s model.Hyperparameters, cross kv.Heads) []kv.Layer {
	all := make([]kv.Layer, s.Layers)
	for i := range all {
		all[i] = kv.Layer{KVHeads: s.KVHeads, KeySize: s.KeySize, ValueSize: s.ValueSize, Cross: cross}
	}
	return all
}

// start returns the token with which the decoder's text begins: that of the file, or else another. Some programs write 2^32-1
// where it is not set.
func start(l *model.Loader, other token.ID) token.ID {
	const name, unset = "decoder_start_token_id", math.MaxUint32
	n := l.CountOr(name, int(other), 0, unset)
	if n == unset {
		n = int(other)
	}
	if v := l.Info().Vocabulary; l.OK() && n >= v {
		l.Fail("%s.%s is %d; the vocabulary has %d tokens", l.Info().Arch, name, n, v)
	}
	return token.ID(n)
}

// needEncoder refuses a file of a decoder alone.
func needEncoder(l *model.Loader, tensor string) {
	if l.OK() && !l.Has(tensor) {
		l.Fail("tensor %q is missing: the file has a decoder without its encoder, which reads the text that the decoder answers", tensor)
	}
}
