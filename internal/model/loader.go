package model

import (
	"fmt"
	"math"
	"slices"

	"grove/internal/compute"
	"grove/internal/compute/weight"
	"grove/internal/kv"
	"grove/internal/par"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// Limits of hyperparameters: above those of any model, and small enough that their products do not overflow.
const (
	maxContext = 1 << 24
	maxWidth   = 1 << 16 // a step has buffers of this width for each row
	maxFFN     = 1 << 18
	maxHeads   = 1 << 12
	maxExperts = 1 << 12
)

// Loader gives an architecture its hyperparameters and weights. It keeps the first error and returns zero values
// after it, so that an architecture needs no error checks.
type Loader struct {
	file     *gguf.File
	weights  *weight.Store
	info     *Info
	taken    map[string]bool     // the tensors that the architecture asked for
	byType   map[tensor.Type]int // weights of each type
	further  []kv.Layer          // what the layers of predictors keep
	context  int                 // the context that the model is opened for
	rotary   string              // the rotary settings that the context chose, where there is a choice
	done     int64               // bytes of weights that were loaded
	all      int64               // that the file has
	progress func(done, all int64)
	target   Lender // of a draft module; nil: the file is a model's own
	err      error
	lacks    string // the first tensor that was not there
}

func newLoader(f *gguf.File, pool *par.Pool) *Loader {
	l := &Loader{file: f, weights: weight.New(pool, f.Release), info: &Info{}, taken: map[string]bool{}, byType: map[tensor.Type]int{}}
	l.info.Arch = l.text("general.architecture", true)
	l.info.Name = l.text("general.name", false)
	return l
}

func (l *Loader) text(key string, required bool) string {
	v, ok, err := l.file.String(key)
	switch {
	case err != nil:
		l.wrap(err)
	case !ok && required:
		l.fail("%s is missing", key)
	}
	return v
}

// Info returns the model's description, which the architecture fills.
func (l *Loader) Info() *Info { return l.info }

// Fail makes the load fail with a reason.
func (l *Loader) Fail(format string, args ...any) { l.fail(format, args...) }

// OK reports whether the load has not failed.
func (l *Loader) OK() bool { return l.err == nil }

func (l *Loader) key(name string) string { return l.info.Arch + "." + name }

// Count returns the hyperparameter arch.name, from low to high; a missing one is an error.
func (l *Loader) Count(name string, low, high int) int {
	n, ok := l.count(name, low, high)
	if !ok {
		l.fail("%s is missing", l.key(name))
	}
	return n
}

// CountOr returns the hyperparameter arch.name, from low to high, or other where it is missing.
func (l *Loader) CountOr(name string, other, low, high int) int {
	if n, ok := l.count(name, low, high); ok {
		return n
	}
	return other
}

func (l *Loader) count(name string, low, high int) (int, bool) {
	return l.countOf(l.key(name), low, high)
}

// countOf returns the number of a key, from low to high, and whether the file has it.
func (l *Loader) countOf(key string, low, high int) (int, bool) {
	n, ok, err := l.file.Uint(key)
	if err != nil {
		l.wrap(err)
		return low, true
	}
	if ok && (n < low || n > high) {
		l.fail("%s is %d; it must be %d to %d", key, n, low, high)
		return low, true
	}
	return n, ok
}

// pooling reads how the file makes embeddings. Some programs write 2^32-1 where that is not set.
func (l *Loader) pooling() Pooling {
	const name = "pooling_type"
	if n, ok, err := l.file.Uint(l.key(name)); err == nil && ok && int64(n) == math.MaxUint32 {
		return PoolUnset
	}
	return Pooling(l.CountOr(name, int(PoolUnset), int(PoolNone), int(PoolRank)))
}

// FloatOr returns the hyperparameter arch.name, which must be finite, or other where it is missing.
func (l *Loader) FloatOr(name string, other float64) float64 {
	v, ok, err := l.file.Float(l.key(name))
	if err != nil {
		l.wrap(err)
	}
	if !ok || err != nil {
		return other
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		l.fail("%s is %v; it must be finite", l.key(name), v)
	}
	return v
}

// RangeOr returns the hyperparameter arch.name, from low to high, or other where it is missing.
func (l *Loader) RangeOr(name string, other, low, high float64) float64 {
	v := l.FloatOr(name, other)
	if !(v >= low && v <= high) {
		l.fail("%s is %v; it must be %v to %v", l.key(name), v, low, high)
		return other
	}
	return v
}

// BoolOr returns the hyperparameter arch.name, or other where it is missing.
func (l *Loader) BoolOr(name string, other bool) bool {
	v, ok, err := l.file.Bool(l.key(name))
	if err != nil {
		l.wrap(err)
	}
	if !ok {
		return other
	}
	return v
}

// TextOr returns the hyperparameter arch.name, or other where it is missing.
func (l *Loader) TextOr(name, other string) string {
	v, ok, err := l.file.String(l.key(name))
	if err != nil {
		l.wrap(err)
	}
	if !ok {
		return other
	}
	return v
}

// LayerFloats returns the finite values of a key without the architecture's name, one for each layer, or one for all.
func (l *Loader) LayerFloats(key string) []float32 {
	n := len(l.info.Layers)
	values, ok, err := l.file.Floats(key)
	if v, found := l.file.Lookup(key); found && v.Kind() != gguf.Array {
		var one float64
		one, ok, err = l.file.Float(key)
		values = slices.Repeat([]float32{float32(one)}, n)
	}
	switch {
	case err != nil:
		l.wrap(err)
	case !ok:
		l.fail("%s is missing", key)
	case len(values) < n:
		l.fail("%s has %d values; there are %d layers", key, len(values), n)
	}
	for i, v := range values {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			l.fail("value %d of %s is %v; it must be finite", i, key, v)
		}
	}
	return values
}

// Has reports whether the file holds a tensor.
func (l *Loader) Has(name string) bool {
	_, ok := l.file.Tensor(name)
	return ok
}

// Refuse makes the load fail where the file sets one of these hyperparameters, which are not supported, to other than
// 0.
func (l *Loader) Refuse(names ...string) {
	for _, name := range names {
		if v, ok := l.file.Lookup(l.key(name)); ok && fmt.Sprint(v.Any()) != "0" {
			l.fail("%s is %v; only 0 is supported", l.key(name), v.Any())
		}
	}
}

// Need makes the load fail where one of these tensors is missing: tensors that the shared blocks treat as optional
// and the architecture requires.
func (l *Loader) Need(names ...string) {
	for _, name := range names {
		if !l.Has(name) {
			l.fail("tensor %q is missing", name)
		}
	}
}

func (l *Loader) view(name string, shape ...int) (tensor.View, bool) {
	if l.err != nil {
		return tensor.View{}, false
	}
	v, ok := l.file.Tensor(name)
	if !ok {
		l.lacks = name
		l.fail("tensor %q is missing", name)
		return v, false
	}
	if !equal(v.Shape, shape) {
		l.fail("tensor %q has shape %v; the hyperparameters require %v", name, v.Shape, shape)
		return v, false
	}
	l.taken[name] = true
	v.Shape = shape
	v, err := l.file.Load(v)
	if err != nil {
		l.wrap(err)
		return v, false
	}
	return v, true
}

// equal reports whether a is the shape b, but for dimensions of 1 before the last, which files may lack or have besides.
func equal(a, b []int) bool {
	return len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] && slices.Equal(wide(a), wide(b))
}

// wide returns the dimensions of a shape that are not 1.
func wide(shape []int) (out []int) {
	for _, n := range shape {
		if n != 1 {
			out = append(out, n)
		}
	}
	return out
}

// Matrix loads a tensor of shape [out, in].
func (l *Loader) Matrix(name string, out, in int) *compute.Matrix {
	return l.matrix(name, out, in)
}

// Stack loads a tensor of shape [experts, out, in].
func (l *Loader) Stack(name string, experts, out, in int) *compute.Matrix {
	return l.matrix(name, experts, out, in)
}

func (l *Loader) matrix(name string, shape ...int) *compute.Matrix {
	v, ok := l.view(name, shape...)
	if !ok {
		return &compute.Matrix{}
	}
	return l.store(v)
}

func (l *Loader) store(v tensor.View) *compute.Matrix {
	m, err := l.weights.Matrix(v)
	if err != nil {
		l.wrap(err)
		return &compute.Matrix{}
	}
	l.tally(v)
	l.loaded(int64(v.Bytes()))
	return m
}

// loaded reports that further bytes of weights are loaded.
func (l *Loader) loaded(n int64) {
	if l.done = min(l.done+n, l.all); l.progress != nil {
		l.progress(l.done, l.all)
	}
}

// Projection loads the matrix name.weight of shape [out, in], and name.bias where the file has it.
func (l *Loader) Projection(name string, out, in int) compute.Projection {
	p := compute.Projection{Matrix: l.Matrix(name+".weight", out, in), Bias: l.VectorIf(name+".bias", out)}
	l.adapts(name+".weight", p.Matrix)
	return p
}

// Projections loads several projections from one tensor: the first outs[0] rows are one matrix, the next outs[1]
// another. Each takes its part of the bias.
func (l *Loader) Projections(name string, in int, outs ...int) []compute.Projection {
	total, first := 0, 0
	for _, n := range outs {
		total += n
	}
	v, ok := l.view(name+".weight", total, in)
	bias := l.VectorIf(name+".bias", total)
	row, whole := v.Type.RowBytes(in)
	if !ok || l.err != nil {
		return make([]compute.Projection, len(outs))
	}
	if !whole || len(v.Data) != row*total {
		l.fail("tensor %q of type %v: %d bytes do not hold shape %v", v.Name, v.Type, len(v.Data), v.Shape)
		return make([]compute.Projection, len(outs))
	}
	var ps []compute.Projection
	for _, n := range outs {
		part := tensor.View{Name: v.Name, Type: v.Type, Shape: []int{n, in}, Data: v.Data[first*row : (first+n)*row]}
		ps = append(ps, compute.Projection{Matrix: l.store(part), Bias: bias.Part(first, n)})
		first += n
	}
	parts := make([]*compute.Matrix, len(ps))
	for i := range ps {
		parts[i] = ps[i].Matrix
	}
	l.adapts(name+".weight", parts...)
	return ps
}

// tally counts the weights and keeps the type of most of them.
func (l *Loader) tally(v tensor.View) {
	l.info.Params += v.Elems()
	l.byType[v.Type] += v.Elems()
	if l.byType[v.Type] > l.byType[l.info.Type] {
		l.info.Type = v.Type
	}
}

// Vector loads a tensor of n values.
func (l *Loader) Vector(name string, n int) compute.Vector {
	v, ok := l.view(name, n)
	if !ok {
		return compute.Vector{}
	}
	return l.vector(v)
}

func (l *Loader) vector(v tensor.View) compute.Vector {
	vec, err := l.weights.Vector(v)
	if err != nil {
		l.wrap(err)
	}
	return vec
}

// VectorIf loads a tensor of n values; it is empty where the file has none.
func (l *Loader) VectorIf(name string, n int) compute.Vector {
	if !l.Has(name) {
		return compute.Vector{}
	}
	return l.Vector(name, n)
}

// StackBiasIf loads a tensor of shape [experts, n] as one vector; it is empty where the file has none.
func (l *Loader) StackBiasIf(name string, experts, n int) compute.Vector {
	if !l.Has(name) {
		return compute.Vector{}
	}
	return l.Table(name, experts, n)
}

// Table loads a tensor of shape [rows, n] as one vector, row behind row.
func (l *Loader) Table(name string, rows, n int) compute.Vector {
	v, ok := l.view(name, rows, n)
	if !ok {
		return compute.Vector{}
	}
	v.Shape = []int{rows * n}
	return l.vector(v)
}

// FirstRowIf loads the first row of a matrix with n columns; it is empty where the file has none.
func (l *Loader) FirstRowIf(name string, n int) compute.Vector {
	v, ok := l.file.Tensor(name)
	if !ok {
		return compute.Vector{}
	}
	rows := 1
	if len(v.Shape) == 2 {
		rows = v.Shape[0]
	}
	v, ok = l.view(name, rows, n)
	row, whole := v.Type.RowBytes(n)
	if !ok || !whole || len(v.Data) < row {
		if ok {
			l.fail("tensor %q of type %v holds no row of %d values", name, v.Type, n)
		}
		return compute.Vector{}
	}
	v.Shape, v.Data = []int{n}, v.Data[:row]
	return l.vector(v)
}

// Hyperparameters is the hyperparameters that architectures share.
type Hyperparameters struct {
	Layers, Width, FFN       int
	Heads, KVHeads           int
	KeySize, ValueSize       int // of a head's keys, of its values
	Experts, ExpertsPerToken int // 0 experts: a plain FFN
	Eps                      float32
}

// Hyperparameters reads and checks the shared hyperparameters, and fills the model's description with layers that
// keep every token.
func (l *Loader) Hyperparameters() Hyperparameters {
	s := Hyperparameters{
		Layers: l.Count("block_count", 1, maxLayers),
		Width:  l.Count("embedding_length", 1, maxWidth),
		Heads:  l.Count("attention.head_count", 1, maxHeads),
	}
	s.FFN = l.CountOr("feed_forward_length", 0, 1, maxFFN)
	if s.FFN == 0 && l.CountOr("expert_count", 0, 0, maxExperts) == 0 { // a model of experts alone has no plain block
		l.fail("%s is missing", l.key("feed_forward_length"))
	}
	s.KVHeads = l.CountOr("attention.head_count_kv", s.Heads, 1, maxHeads)
	l.checkHeads(s.Heads, s.KVHeads)
	l.shared(&s)
	return s
}

// checkHeads checks that the heads of keys divide the heads, of which a layer without attention has none.
func (l *Loader) checkHeads(heads, kvHeads int) {
	if kvHeads > 0 && (kvHeads > heads || heads%kvHeads != 0) {
		l.fail("%s is %d; it must divide head_count (%d)", l.key("attention.head_count_kv"), kvHeads, heads)
	}
}

// shared reads the hyperparameters that do not differ by layer, and fills the model's description. The number of heads is
// that of the widest layer.
func (l *Loader) shared(s *Hyperparameters) {
	s.Layers = l.Count("block_count", 1, maxLayers)
	s.Width = l.Count("embedding_length", 1, maxWidth)
	s.Eps = float32(l.RangeOr("attention.layer_norm_rms_epsilon", 1e-5, 0, 1))
	s.KeySize = l.CountOr("attention.key_length", s.Width/max(1, s.Heads), 1, maxHeads)
	s.ValueSize = l.CountOr("attention.value_length", s.KeySize, 1, maxHeads)
	s.Experts = l.CountOr("expert_count", 0, 0, maxExperts)
	if s.Experts > 0 {
		s.ExpertsPerToken = l.Count("expert_used_count", 1, maxExperts)
		if s.ExpertsPerToken > s.Experts {
			l.fail("%s is %d; it must be at most expert_count (%d)", l.key("expert_used_count"), s.ExpertsPerToken, s.Experts)
		}
	}
	i := l.info
	i.Width = s.Width
	i.Context = l.Count("context_length", 1, maxContext)
	for range s.Layers {
		i.Layers = append(i.Layers, kv.Layer{KVHeads: s.KVHeads, KeySize: s.KeySize, ValueSize: s.ValueSize})
	}
	i.Vocabulary = l.vocabulary()
}

// vocabulary is the number of rows of the embedding table, which must fit the token list.
func (l *Loader) vocabulary() int {
	v, ok := l.file.Tensor("token_embd.weight")
	if !ok || len(v.Shape) != 2 {
		l.fail("tensor %q is missing or not a matrix", "token_embd.weight")
		return 0
	}
	if tokens, ok, err := l.file.Strings("tokenizer.ggml.tokens"); err == nil && ok && len(tokens) != v.Shape[0] {
		l.fail("the vocabulary has %d tokens and the embedding table %d rows; the two must be equal", len(tokens), v.Shape[0])
	}
	return v.Shape[0]
}
