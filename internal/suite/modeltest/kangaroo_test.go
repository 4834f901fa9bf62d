package modeltest

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"grove/internal/forest"
	"grove/internal/model"
	"grove/internal/model/synthetic"
	"grove/internal/oracle"
	"grove/internal/par"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// parts is a file that is made in memory.
type parts struct {
	metadata []gguf.KV
	tensors  []tensor.View
}

// file returns the file.
func (p parts) file(t *testing.T) *gguf.File {
	t.Helper()
	var b bytes.Buffer
	if err := gguf.Write(&b, p.metadata, p.tensors); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// kangarooOf makes an adapter of random weights for a target.
func kangarooOf(t *testing.T, s Spec) (p parts) {
	t.Helper()
	var err error
	p.metadata, p.tensors, err = synthetic.Module{Family: "kangaroo", Target: synthetic.Spec{Width: s.Width, Vocab: s.Vocab, Layers: s.Layers}, Exit: 2, Seed: 4}.Parts()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var kangarooTarget = Spec{Width: 64, Vocab: 48, Layers: 4, Type: tensor.F32}

// TestKangaroo compares the adapter with the oracle, over the streams that the target gives behind two layers.
func TestKangaroo(t *testing.T) {
	target, file := kangarooTarget.File(t), kangarooOf(t, kangarooTarget).file(t)
	r := New(t, target, Config{})
	pool := par.New(1)
	defer pool.Close()
	m, err := model.OpenModule(file, pool, r.Model, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if of := m.Info().Module; of.Family != "kangaroo" || !slices.Equal(of.Taps, []int{2}) {
		t.Fatalf("%+v", of)
	}
	ids := randomIDs(rand.New(rand.NewPCG(1, 2)), 16, kangarooTarget.Vocab)
	streams := r.hidden(ids, nil, 1)
	var in [][]float64
	for _, s := range streams {
		row := make([]float64, len(s))
		for i, v := range s {
			row[i] = float64(v)
		}
		in = append(in, row)
	}
	adapter := NewFor(t, m, pool, Config{})
	seq, node := adapter.NewSeq(""), forest.Trunk
	for i := range ids {
		node = adapter.Add(forest.Row{Seq: seq, Parent: node, Vector: streams[i], Want: forest.Want{Logits: true}})
	}
	adapter.Forward()
	pairs := make([]oracle.Pair, len(in))
	for i, x := range in {
		pairs[i].Feature = x
	}
	for i, want := range oracle.NewModule(file, target).Forward(pairs) {
		if most := worst(adapter.bits(i), want); !(most < 1e-5) {
			t.Errorf("row %d: logits differ by %.2g of the largest", i, most)
		}
	}
}

// TestKangarooRefusals opens files of adapters with one fault each.
func TestKangarooRefusals(t *testing.T) {
	pool := par.New(1)
	defer pool.Close()
	target := New(t, kangarooTarget.File(t), Config{}).Model
	set := func(key string, n uint32) func(*parts) {
		return func(p *parts) {
			p.metadata = append(slices.DeleteFunc(p.metadata, func(kv gguf.KV) bool { return kv.Key == key }), gguf.KV{Key: key, Value: gguf.Of(n)})
		}
	}
	for name, c := range map[string]struct {
		fault func(*parts)
		want  string
	}{
		"exit at once":       {set("kangaroo.exit_layer", 0), "kangaroo.exit_layer is 0"},
		"exit at the end":    {set("kangaroo.exit_layer", 4), "kangaroo.exit_layer is 4"},
		"another width":      {set("kangaroo.embedding_length", 32), "the width of the target is 64"},
		"another vocabulary": {set("heads.target.vocabulary", 49), "the target has 48 tokens"},
		"heads without end":  {set("kangaroo.attention.head_count", 1<<31), "head_count"},
		"no exit": {func(p *parts) {
			p.metadata = slices.DeleteFunc(p.metadata, func(kv gguf.KV) bool { return kv.Key == "kangaroo.exit_layer" })
		}, "kangaroo.exit_layer"},
		"no norm": {func(p *parts) {
			p.tensors = slices.DeleteFunc(p.tensors, func(v tensor.View) bool { return v.Name == "output_norm.weight" })
		}, "output_norm.weight"},
		"a matrix that is too small": {func(p *parts) {
			v := &p.tensors[slices.IndexFunc(p.tensors, func(v tensor.View) bool { return v.Name == "blk.0.attn_output.weight" })]
			v.Shape, v.Data = []int{v.Shape[0] / 2, v.Shape[1]}, v.Data[:len(v.Data)/2]
		}, "blk.0.attn_output.weight"},
	} {
		p := kangarooOf(t, kangarooTarget)
		c.fault(&p)
		if _, err := model.OpenModule(p.file(t), pool, target, model.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestPPD opens vectors: those of the file, and files with one fault each.
func TestPPD(t *testing.T) {
	pool := par.New(1)
	defer pool.Close()
	target := New(t, kangarooTarget.File(t), Config{}).Model
	opened := func(change func(p *parts)) (model.Model, parts, error) {
		var p parts
		var err error
		s := synthetic.Module{Family: "ppd", Target: synthetic.Spec{Width: kangarooTarget.Width, Vocab: kangarooTarget.Vocab, Layers: kangarooTarget.Layers}, Seed: 3}
		if p.metadata, p.tensors, err = s.Parts(); err != nil {
			t.Fatal(err)
		}
		change(&p)
		m, err := model.OpenModule(p.file(t), pool, target, model.Options{})
		return m, p, err
	}
	m, p, err := opened(func(*parts) {})
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float32, 3*kangarooTarget.Width)
	if err := tensor.Unpack(p.tensors[0].Type, want, p.tensors[0].Data); err != nil {
		t.Fatal(err)
	}
	var got []float32
	for _, r := range m.Info().Module.Rows {
		got = append(got, r.Vector...)
	}
	if len(m.Info().Module.Rows) != 3 || !slices.Equal(got, want) {
		t.Errorf("%d vectors, or others than those of the file", len(m.Info().Module.Rows))
	}
	for want, change := range map[string]func(p *parts){
		"ppd.block_count is 17": func(p *parts) {
			p.metadata = append(slices.DeleteFunc(p.metadata, func(kv gguf.KV) bool { return kv.Key == "ppd.block_count" }), gguf.KV{Key: "ppd.block_count", Value: gguf.Of(uint32(17))})
		},
		"prompt.weight": func(p *parts) {
			p.tensors[0].Shape, p.tensors[0].Data = []int{2, kangarooTarget.Width}, p.tensors[0].Data[:8*kangarooTarget.Width]
		},
		"is NaN; values are finite, 1e+09 at most in size":   func(p *parts) { copy(p.tensors[0].Data[4:], []byte{0, 0, 0xc0, 0x7f}) },
		"is 3e+38; values are finite, 1e+09 at most in size": func(p *parts) { binary.LittleEndian.PutUint32(p.tensors[0].Data[4:], math.Float32bits(3e38)) },
	} {
		if _, _, err := opened(change); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
