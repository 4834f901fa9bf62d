package model

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/kv"
	"grove/internal/weights/gguf"
)

// Predictor is a module of the file that predicts the token behind the next one (DeepSeek-AI 2024, DeepSeek-V3, section
// 2.2; multi-token prediction, "nextn" in GGUF). It joins the embedding of a token and the stream of the token before, each
// behind a norm, runs one layer on that, and gives logits by a head. The model gives the same logits without it. Each is a draft module, see
// [OpenPredictor].
type Predictor struct {
	Layer  int      // its number in the file, in which it stands behind the model's own layers
	Keeps  kv.Layer // what its block keeps, the only layer of a cache of its own
	Bytes  int      // of its weights in memory
	Params int      // weights of its matrices, a table and a head aside

	EmbedNorm, StreamNorm compute.Vector     // of the embedding, of the stream
	Join                  compute.Projection // [width, 2 width], from the embedding and then the stream; without a matrix: their sum
	Block                 Block
	Norm                  compute.Vector  // before the head; empty: that of the model
	Embed                 *compute.Matrix // the table of embeddings; nil: that of the model
	Head                  *compute.Matrix // the head; nil: that of the model
}

// Block is one layer with its weights. It is read-only.
type Block interface {
	// Forward returns the stream behind the layer, between [compute.Exec.Enter] and [compute.Exec.Leave]. It may change the
	// stream in place.
	Forward(x *compute.Exec, stream compute.Buf) compute.Buf
}

// SplitPredictors takes the last layers of the file, which nextn_predict_layers counts, off the model's own layers:
// [Loader.Predictors] loads them. It is called once, before the first block is loaded.
func (l *Loader) SplitPredictors(s *Hyperparameters) {
	n := l.CountOr("nextn_predict_layers", 0, 0, max(0, s.Layers-1))
	if l.err != nil {
		return
	}
	s.Layers -= n
	l.info.Layers, l.further = l.info.Layers[:s.Layers], l.info.Layers[s.Layers:]
}

// place returns the layer of a cache in which a block keeps its keys: its own, or for that of a predictor, which has a cache of its own, 0.
func (l *Loader) place(layer int) int {
	if layer >= len(l.info.Layers) {
		return 0
	}
	return layer
}

// Predictors loads the modules of the layers that [Loader.SplitPredictors] took off. block loads the layer of a number of
// the file. A file whose layers were left out when it was written has no predictors; one that lacks tensors of a layer with its norm "enorm", as small
// Qwen 3.5 do, is left out by name, with those behind it: the model gives the same logits.
func (l *Loader) Predictors(s Hyperparameters, block func(layer int) Block) {
	if !l.anyFurther() {
		return
	}
	for i, keeps := range l.further {
		if !l.OK() {
			return
		}
		bytes, params, layer := l.weights.Bytes(), l.info.Params, len(l.info.Layers)+i
		p := Predictor{
			Layer: layer, Keeps: keeps,
			EmbedNorm: l.Vector(nextn(layer, "enorm"), s.Width), StreamNorm: l.Vector(nextn(layer, "hnorm"), s.Width),
			Join:  compute.Projection{Matrix: l.matrixIf(nextn(layer, "eh_proj"), s.Width, 2*s.Width)},
			Block: block(layer),
			Norm:  l.VectorIf(nextn(layer, "shared_head_norm"), s.Width),
			Embed: l.matrixIf(nextn(layer, "embed_tokens"), l.info.Vocabulary, s.Width),
			Head:  l.matrixIf(nextn(layer, "shared_head_head"), l.info.Vocabulary, s.Width),
		}
		if last := fmt.Sprintf("blk.%d.layer_output_norm.weight", layer); l.Has(last) { // its name in Ling and MiMo
			if p.Norm.Len() > 0 {
				l.fail("tensors %q and %q are both there; a predictor has one norm before its head", last, nextn(layer, "shared_head_norm"))
			}
			p.Norm = l.Vector(last, s.Width)
		}
		p.Bytes, p.Params = l.weights.Bytes()-bytes, l.info.Params-params
		for _, m := range []*compute.Matrix{p.Embed, p.Head} {
			if m != nil {
				p.Params -= m.Out() * m.In()
			}
		}
		l.idle(p.Bytes, l.info.Params-params)
		if l.lacks != "" && l.Has(nextn(layer, "enorm")) {
			l.info.LeftOut, l.err = fmt.Sprintf("the predictor of layer %d: tensor %q is missing", layer, l.lacks), nil
			l.leaveOutFrom(layer)
			return
		}
		l.info.Predictors = append(l.info.Predictors, p)
	}
}

// leaveOutFrom takes the tensors of layers from a number on.
func (l *Loader) leaveOutFrom(layer int) {
	for _, t := range l.file.Tensors {
		if n, _, ok := gguf.OfBlock(t.Name); ok && n >= layer && n < len(l.info.Layers)+len(l.further) {
			l.LeaveOut(t.Name)
		}
	}
}

func nextn(layer int, name string) string { return fmt.Sprintf("blk.%d.nextn.%s.weight", layer, name) }

// anyFurther reports whether the file has a tensor of the predictors' layers.
func (l *Loader) anyFurther() bool {
	for _, t := range l.file.Tensors {
		if n, _, ok := gguf.OfBlock(t.Name); ok && n >= len(l.info.Layers) && n < len(l.info.Layers)+len(l.further) {
			return true
		}
	}
	return false
}

// matrixIf loads a matrix; it is nil where the file has none.
func (l *Loader) matrixIf(name string, out, in int) *compute.Matrix {
	if !l.Has(name) {
		return nil
	}
	return l.Matrix(name, out, in)
}

// idle counts weights that no step multiplies.
func (l *Loader) idle(bytes, params int) {
	l.info.IdleBytes += bytes
	l.info.IdleParams += params
}
