package model

import (
	"maps"
	"slices"
	"strings"

	"grove/internal/compute"
	"grove/internal/kv"
	"grove/internal/par"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
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
	if a := m.Info().Adds; a != nil {
		m.Info().Bytes += a.Adapter.Bytes()
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

// SubstitutesArch is the architecture of files of adapters that stand for layers of a model's rows (LoRA-Drop, 2026).
const SubstitutesArch = "lora-drop"

var openSubstitutes func(l *Loader, target *Info) compute.SubstituteLayers

// RegisterSubstitutes sets the function that takes such adapters from a file.
func RegisterSubstitutes(open func(l *Loader, target *Info) compute.SubstituteLayers) {
	openSubstitutes = open
}

// OpenSubstitutes opens a file of adapters that stand for layers of a model's rows, and returns them with their bytes in memory. The file must stay open as long as they are used. It
// returns a *[LoadError] where the file is another one, contradicts itself or the model, or the model's rows depend on more of a layer than keys and the stream.
func OpenSubstitutes(f *gguf.File, pool *par.Pool, of *Info) (layers compute.SubstituteLayers, bytes int, err error) {
	l := newLoader(f, pool)
	if l.err == nil && l.info.Arch != SubstitutesArch {
		l.fail("general.architecture is %.40q; it must be %q", l.info.Arch, SubstitutesArch)
	}
	layers = openSubstitutes(l, of)
	if l.leftOver(); l.err != nil {
		return nil, 0, l.err
	}
	return layers, l.weights.Bytes(), nil
}
