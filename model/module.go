package model

import (
	"maps"
	"slices"
	"strings"

	"grove/compute"
	"grove/forest"
	"grove/internal/par"
	"grove/kv"
	"grove/weights/gguf"
	"grove/weights/tensor"
)

// Lent holds the embeddings, the final norm and the head that a target lends to the modules that draft for it. The matrices are the target's own, not copies. It is read-only.
type Lent struct {
	Embed      *compute.Matrix // the table of embeddings
	EmbedScale float32         // multiplies an embedding
	Norm       compute.Vector  // of the RMSNorm before the head
	Eps        float32
	Head       compute.Projection
	Scale      float32 // multiplies the products with the head
	Softcap    float32 // of the logits behind that; 0: none
}

// Logits ends a step with the logits that the target's head gives of states.
func (l *Lent) Logits(x *compute.Exec, states compute.Buf) {
	x.ScaledLogits(states, l.Head, l.Scale, l.Softcap)
}

// Lender is a model that lends its embeddings and its head to modules.
type Lender interface {
	Model
	// Lend returns what the model lends. It is called when the model is open.
	Lend() Lent
}

// Module describes a draft module: a small model of trained weights that reads the target's states and drafts for it. It is read-only.
type Module struct {
	Family string // the kind of module, the architecture of its file
	// Taps are the places of the target's residual stream of which a feature consists, in order: k is the stream behind the first k
	// layers. nil: a feature is the state behind the final norm.
	Taps []int
	// Heads is the number of heads, each of which is a layer that a row runs alone; 0: the module drafts token by token.
	Heads int
	// Prefix is the number of the module's first layers, which keep keys and read the features of the text before the heads do; 0: none.
	Prefix int
	// FeedsState says that a draft's own feature is the state that its row gives, and else the stream behind the last layer.
	FeedsState bool
	// Chained says of a predictor that each of those behind it reads what the one before gives, in place of the target's state.
	Chained bool
	// LayerCost is the number of layers of the target that have as many weights as one of the module, heads aside.
	LayerCost float64
	// Vocabulary has the target's id of each token that the module drafts, ascending; nil: all of them.
	Vocabulary []int32
	// Rows are rows of the target itself that stand behind a token in a path, of a module that consists of these: vectors, or products of the token's own row.
	Rows []forest.Row
	// Block says how a module drafts a block of tokens in one pass; nil: it does not.
	Block *ModuleBlock
}

// ModuleBlock describes the passes of a module that drafts a block of tokens at a time. Rows with a feature and no output, the context, are the text's. Behind them
// hangs a path of rows without a feature: the text's last token and mask tokens. Each gives the logits of one token.
//
// Or rows are pairs of a token and a feature (Pairs): the block is the last Size pairs of the text, each of which gives the logits of the token Size places behind its own.
type ModuleBlock struct {
	Size int   // rows of a block, the text's last token among them
	Mask int32 // the mask token
	// Own says that a row gives the logits of the token at its own place, so that the first row gives none; else of the one behind it.
	Own bool
	// Follows says that the first row of a block is the text's last one with a feature, which is kept; the others are mask tokens.
	Follows bool
	// Sees says that rows of a block see its later ones.
	Sees bool
	// Order says that the last layer is for rows that run it alone: one of a token gives what it adds to the logits behind it. With the state of the block's row as
	// its vector, the state that it gives has, at place Trust, how likely the draft that follows is to be accepted, as a logit; Trust is 0 where it has not.
	Order bool
	Trust int
	// Pairs is the number of pairs that each row carries: its own and those before it, whose features follow its own in its vector and whose tokens are in its Mix, the nearest first. 0: rows are not pairs.
	Pairs int
	// Rank is the rank head of a module whose rows of a token are a block of slots: two matrices by rows, each with its biases behind it. It reads a slot's state and
	// 15 values of its logits, and gives the scores of four classes of ranks. Empty: the module has no slots.
	Rank [4][]float32
}

// FeatureWidth returns the values of a feature of a target of a width.
func (m *Module) FeatureWidth(width int) int { return max(1, len(m.Taps)) * width }

var modules = map[string]Architecture{}

// RegisterModule adds a family of draft modules. It panics on a name that is taken.
func RegisterModule(family string, open Architecture) {
	if _, taken := modules[family]; taken {
		panic("model: module " + family + " is registered twice")
	}
	modules[family] = open
}

// Families returns the registered families of modules, sorted.
func Families() []string { return slices.Sorted(maps.Keys(modules)) }

// IsModule reports whether the file is that of a draft module.
func IsModule(f *gguf.File) bool {
	family, ok, err := f.String("general.architecture")
	return ok && err == nil && modules[family] != nil
}

// OpenModule opens the file of a draft module for a target. Both files stay open as long as the module is used. It returns a *LoadError where
// the target lends nothing, the file is none of a module, lacks something or contradicts itself or the target.
func OpenModule(f *gguf.File, pool *par.Pool, target Model, o Options) (Model, error) {
	l := newLoader(f, pool)
	l.target, _ = target.(Lender)
	open, ok := modules[l.info.Arch]
	switch {
	case l.err != nil:
	case !ok:
		l.fail("%q is no family of draft modules; these are: %s", l.info.Arch, strings.Join(Families(), ", "))
	case l.target == nil:
		l.fail("%s lends no embeddings and no head, which draft modules (%s) need", target.Info().Arch, l.info.Arch)
	}
	m, err := l.open(o, open)
	if err != nil {
		return nil, err
	}
	heads := 0
	for _, t := range f.Tensors {
		if strings.HasSuffix(t.Name, "output.weight") && !strings.HasSuffix(t.Name, "attn_output.weight") {
			heads += t.Elems()
		}
	}
	m.Info().Module.LayerCost = LayerCost(l.info.Params-l.info.IdleParams-heads, len(l.info.Layers), target.Info())
	return m, nil
}

// LayerCost returns how many layers of a target have as many weights as one of a module, which has so many weights in its layers.
func LayerCost(weights, layers int, target *Info) float64 {
	one := (target.Params - target.IdleParams - target.Vocabulary*target.Width) / max(1, len(target.Layers))
	return float64(weights) / float64(layers) / float64(max(1, one))
}

// Target returns the description of the module's target.
func (l *Loader) Target() *Info { return l.target.Info() }

// Lent returns what the module's target lends.
func (l *Loader) Lent() Lent { return l.target.Lend() }

// ModuleHyperparameters reads and checks the hyperparameters of a module of so many layers, and fills its description; layers that keep
// keys (attends) have the usual hyperparameters of attention. Errors: a width or a vocabulary that is not the target's.
func (l *Loader) ModuleHyperparameters(layers int, attends bool) Hyperparameters {
	target := l.Target()
	s := Hyperparameters{Layers: layers, Width: l.Count("embedding_length", 1, maxWidth), Eps: float32(l.RangeOr("attention.layer_norm_rms_epsilon", 1e-5, 0, 1))}
	if l.err == nil && s.Width != target.Width {
		l.fail("%s is %d; the width of the target is %d", l.key("embedding_length"), s.Width, target.Width)
	}
	const known = "heads.target.vocabulary"
	if n, ok, err := l.file.Uint(known); err != nil {
		l.wrap(err)
	} else if ok && n != target.Vocabulary {
		l.fail("%s is %d; the target has %d tokens", known, n, target.Vocabulary)
	}
	i := l.info
	i.Width, i.Vocabulary = s.Width, target.Vocabulary
	i.Context = min(l.CountOr("context_length", target.Context, 1, maxContext), target.Context)
	i.Layers = slices.Repeat([]kv.Layer{{}}, layers)
	if attends {
		s.Heads = l.Count("attention.head_count", 1, maxHeads)
		s.KVHeads = l.CountOr("attention.head_count_kv", s.Heads, 1, maxHeads)
		l.checkHeads(s.Heads, s.KVHeads)
		s.KeySize = l.CountOr("attention.key_length", s.Width/max(1, s.Heads), 1, maxHeads)
		s.ValueSize = l.CountOr("attention.value_length", s.KeySize, 1, maxHeads)
		s.FFN = l.CountOr("feed_forward_length", 0, 0, maxFFN)
	}
	return s
}

// KeepsKeys says that a layer of a module keeps keys and values.
func (l *Loader) KeepsKeys(s Hyperparameters, layer int) {
	l.info.Layers[layer] = kv.Layer{KVHeads: s.KVHeads, KeySize: s.KeySize, ValueSize: s.ValueSize}
}

// HeadSums returns a matrix by which a product gives the sum of each head of a row of width values.
func (l *Loader) HeadSums(heads, width int) *compute.Matrix {
	if l.err != nil {
		return &compute.Matrix{}
	}
	ones := make([]float32, heads*width)
	for i := range width {
		ones[i*heads/width*width+i] = 1
	}
	v := tensor.View{Name: "sums of heads", Type: tensor.F32, Shape: []int{heads, width}, Data: make([]byte, 4*len(ones))}
	err := tensor.Pack(tensor.F32, v.Data, ones)
	m := &compute.Matrix{}
	if err == nil {
		m, err = l.weights.Matrix(v)
	}
	if err != nil {
		l.wrap(err)
	}
	return m
}

// Ints returns the hyperparameter arch.name, an array of whole numbers, and whether the file has it.
func (l *Loader) Ints(name string) ([]int, bool) {
	n, ok, err := l.file.Ints(l.key(name))
	if err != nil {
		l.wrap(err)
	}
	return n, ok && err == nil
}

// Columns returns the columns of a matrix that the file has, at most so many.
func (l *Loader) Columns(name string, most int) int {
	v, ok := l.file.Tensor(name)
	n := 0
	if ok && len(v.Shape) == 2 {
		n = v.Shape[1]
	}
	if n < 1 || n > most {
		l.fail("%s has the shape %v; it must be a matrix of 1 to %d columns", tensor.Label(name), v.Shape, most)
	}
	return n
}

// ProjectionIf loads the matrix name.weight of shape [out, in], and name.bias where the file has it; it is false where the file has no matrix.
func (l *Loader) ProjectionIf(name string, out, in int) (compute.Projection, bool) {
	if !l.Has(name + ".weight") {
		return compute.Projection{}, false
	}
	return l.Projection(name, out, in), true
}

var openPredictor func(target Lender, i int) Model

// RegisterPredictors sets the function that makes a draft module of the i-th predictor of a model's file.
func RegisterPredictors(open func(target Lender, i int) Model) { openPredictor = open }

// OpenPredictor returns the i-th predictor of a model's file as a draft module; false: the model lends no head.
func OpenPredictor(target Model, i int) (Model, bool) {
	lender, ok := target.(Lender)
	if !ok {
		return nil, false
	}
	return openPredictor(lender, i), true
}
