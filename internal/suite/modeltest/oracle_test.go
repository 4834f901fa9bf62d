package modeltest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"grove/internal/forest"
	"grove/internal/kernel"
	"grove/internal/model/synthetic"
	"grove/internal/oracle"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
)

// oracleSpecs are the models that tests compare with the oracle.
var oracleSpecs = map[string]Spec{
	"bert":                {Arch: "bert", Context: 96},
	"blockffn":            {Arch: "blockffn"},
	"unixcoder":           {Arch: "unixcoder", Context: 96},
	"diffusion-gemma":     {Arch: "diffusion-gemma"}, // the rows of a prompt; canvas_test.go has those of a canvas
	"gemma3n":             {Arch: "gemma3n"},
	"gemma4":              {Arch: "gemma4"},
	"gemma4, mixture":     {Arch: "gemma4", Experts: 6, ExpertsPerToken: 2},
	"gpt-oss":             {Arch: "gpt-oss", Window: 20},
	"llama4":              {Arch: "llama4", Window: 50, Layers: 8},
	"mimo2":               {Arch: "mimo2", Layers: 4, Window: 20, ValueSize: 24},
	"kimi-linear":         {Arch: "kimi-linear", Experts: 6, ExpertsPerToken: 2},
	"qwen35":              {Arch: "qwen35"},
	"qwen35moe":           {Arch: "qwen35moe", Experts: 6, ExpertsPerToken: 2},
	"qwen3next":           {Arch: "qwen3next", Experts: 6, ExpertsPerToken: 2},
	"step3":               {Arch: "step3", Layers: 4},
	"step35":              {Arch: "step35", Layers: 4, Window: 20},
	"t5":                  {Arch: "t5", KVHeads: 4},
	"t5gemma":             {Arch: "t5gemma", Window: 30},
	"codegen2":            {Arch: "codegen2"},
	"t5, 1.0":             {Arch: "t5", KVHeads: 4, Tied: true},
	"deepseek2, lite":     {Arch: "deepseek2", KeySize: 48, Latent: synthetic.Latent{Dense: 1, Shared: 2}},
	"deepseek2, old lite": {Arch: "deepseek2", KeySize: 48, Latent: synthetic.Latent{Fused: true, Dense: 1, Shared: 2}},

	"eurobert":              {Arch: "eurobert"},
	"gemma-embedding":       {Arch: "gemma-embedding", Layers: 7},
	"jina-bert-v2":          {Arch: "jina-bert-v2"},
	"jina-bert-v2, 6 heads": {Arch: "jina-bert-v2", Width: 96, Heads: 6},
	"jina-bert-v3":          {Arch: "jina-bert-v3"},
	"modern-bert":           {Arch: "modern-bert", Layers: 5},
	"neo-bert":              {Arch: "neo-bert"},
	"nomic-bert":            {Arch: "nomic-bert"},
	"nomic-bert-moe":        {Arch: "nomic-bert-moe", Layers: 4},
	"nomic-bert-moe, bias":  {Arch: "nomic-bert-moe", Layers: 4, ExpertsBias: true},
	"deepseek2, V2": {Arch: "deepseek2", KeySize: 48, ValueSize: 24, Experts: 12, ExpertsPerToken: 4,
		Latent: synthetic.Latent{QRank: 32, Shared: 1, Groups: 4, GroupsUsed: 2}},
	"deepseek2, V3": {Arch: "deepseek2", KeySize: 48, Experts: 12, ExpertsPerToken: 4,
		Latent: synthetic.Latent{QRank: 32, Dense: 1, Shared: 1, Sigmoid: true, Norm: true, Groups: 4, GroupsUsed: 2}},
	"mistral4": {Arch: "mistral4", KeySize: 48, ValueSize: 24, Experts: 12, ExpertsPerToken: 4,
		Latent: synthetic.Latent{QRank: 32, Shared: 1, Norm: true}},
	"mamba":                  {Arch: "mamba"},
	"mamba, Falcon":          {Arch: "mamba", Scan: synthetic.Scan{Normed: true}},
	"mamba, Falcon, epsilon": {Arch: "mamba", Scan: synthetic.Scan{Normed: true, NormEps: 0.1}},
	"mamba2":                 {Arch: "mamba2"},
	"jamba":                  {Arch: "jamba", Layers: 6},
	"jamba, experts":         {Arch: "jamba", Experts: 6, ExpertsPerToken: 2},
	"falcon-h1":              {Arch: "falcon-h1"},
	"granitehybrid":          {Arch: "granitehybrid"},
	"granitehybrid, experts": {Arch: "granitehybrid", Experts: 6, ExpertsPerToken: 2},
	"nemotron_h":             {Arch: "nemotron_h"},
	"nemotron_h_moe":         {Arch: "nemotron_h_moe"},
	"nemotron_h_moe, narrow": {Arch: "nemotron_h_moe", Scan: synthetic.Scan{Narrow: 32}},
	"sambay":                 {Arch: "sambay"},
	"sambay, groups of 3": {Arch: "sambay", Layers: 12, Heads: 12, KVHeads: 4, Tied: true,
		Scan: synthetic.Scan{Inner: 96, State: 8, Rank: 5}},
}

// TestOracle compares the architectures without golden files with the oracle, within 1e-4 of the largest value, over
// texts longer than an attention block and than the windows.
func TestOracle(t *testing.T) {
	for name, spec := range oracleSpecs {
		t.Run(name, func(t *testing.T) {
			file := spec.File(t)
			o, err := oracle.New(file)
			if err != nil {
				t.Fatal(err)
			}
			r := New(t, file, Config{CacheType: tensor.F32, Context: min(spec.WithDefaults().Context, 512)})
			ids := randomIDs(rand.New(rand.NewPCG(3, 4)), 90, r.Model.Info().Vocabulary)
			var plain []int
			for _, id := range ids {
				plain = append(plain, int(id))
			}
			for _, id := range r.source {
				o.Source = append(o.Source, int(id))
			}
			want := o.Forward(plain)
			var got []Bits
			if r.Model.Info().Encoder {
				got = r.Encode(ids)
			} else {
				got = r.Reference(ids)
			}
			var worst, scale float64
			for i, row := range want {
				for v, x := range row {
					worst, scale = max(worst, math.Abs(x-float64(got[i][v]))), max(scale, math.Abs(x))
				}
			}
			t.Logf("largest difference %.2g of largest value %.3g", worst, scale)
			if !(worst <= 1e-4*scale) {
				t.Errorf("values differ by %g; the largest is %g", worst, scale)
			}
		})
	}
}

func (r *Runner) addBlock(s forest.Seq, block int, ids []token.ID) {
	r.tb.Helper()
	parent := forest.Trunk
	for _, id := range ids {
		parent = r.Add(forest.Row{Seq: s, Parent: parent, ID: id, Block: block, Want: forest.Want{State: true}})
	}
}

func (r *Runner) states(n int) []Bits {
	out := make([]Bits, n)
	for i := range out {
		out[i] = append(Bits(nil), r.Exec.Result(i).State...)
	}
	return out
}

// encoders are the architectures without a head.
var encoders = []string{"bert", "eurobert", "gemma-embedding", "jina-bert-v2", "jina-bert-v3", "modern-bert", "neo-bert", "nomic-bert", "nomic-bert-moe"}

// TestEncoder expects an encoder's states to be equal bit by bit alone and in a batch, with any threads, kernels and
// layout of weights, and checks that tokens see later ones.
func TestEncoder(t *testing.T) {
	for _, wt := range []tensor.Type{tensor.F32, tensor.F16, tensor.Q8_0} {
		for _, cache := range []tensor.Type{tensor.F32, tensor.F16, tensor.Q8_0} {
			if wt != tensor.F16 && cache != wt && !long {
				continue
			}
			t.Run(fmt.Sprintf("%v-cache-%v", wt, cache), func(t *testing.T) {
				checkEncoder(t, Spec{Arch: "bert", Type: wt, Heads: 2, Context: 256}, cache)
			})
		}
	}
	for _, arch := range encoders[1:] {
		t.Run(arch, func(t *testing.T) {
			checkEncoder(t, Spec{Arch: arch, Type: tensor.Q8_0, Context: 256, Layers: 6}, tensor.F32)
		})
	}
}

func checkEncoder(t *testing.T, spec Spec, cache tensor.Type) {
	file := spec.File(t)
	kinds := kernel.Implementations()
	defer kernel.Use(kinds[0])
	rng := rand.New(rand.NewPCG(5, 6))
	texts := [][]token.ID{randomIDs(rng, 150, 48), randomIDs(rng, 64, 48), randomIDs(rng, 7, 48)}
	var want [][]Bits
	for _, kind := range kinds {
		kernel.Use(kind)
		r := New(t, file, Config{CacheType: cache, Threads: 2, Context: 256})
		for i, ids := range texts {
			got := r.Encode(ids)
			if kind == kinds[0] {
				want = append(want, got)
			}
			if err := Equal(fmt.Sprintf("%s, text %d", kind, i), got, want[i]); err != nil {
				t.Error(err)
			}
		}
	}
	kernel.Use(kinds[0])
	alone := New(t, file, Config{CacheType: cache, Threads: 1, Context: 256})
	if err := Equal("1 and 2 threads", alone.Encode(texts[0]), want[0]); err != nil {
		t.Error(err)
	}
	inPlace := New(t, file, Config{CacheType: cache, Threads: 2, Context: 256, NoRepack: true})
	if err := Equal("packed weights and the file's own", inPlace.Encode(texts[0]), want[0]); err != nil {
		t.Error(err)
	}
	checkBlocks(t, inPlace, texts, want)
}

// checkBlocks runs all texts in one step, each a block, and then a text with another last token.
func checkBlocks(t *testing.T, r *Runner, texts [][]token.ID, want [][]Bits) {
	var all []Bits
	var seqs []forest.Seq
	for _, ids := range texts {
		s := r.NewSeq("")
		r.addBlock(s, 1, ids)
		seqs = append(seqs, s)
	}
	r.Forward()
	for _, w := range want {
		all = append(all, w...)
	}
	if err := Equal("texts in one step", r.states(len(all)), all); err != nil {
		t.Error(err)
	}
	for _, s := range seqs {
		r.Close(s)
	}
	other := append([]token.ID(nil), texts[1]...)
	other[len(other)-1] = (other[len(other)-1] + 1) % 48
	for i, row := range r.Encode(other) {
		if row.Diff(want[1][i]) == nil {
			t.Errorf("the state of token %d does not depend on the last token", i)
		}
	}
	s := r.NewSeq("")
	defer r.Close(s)
	r.addBlock(s, 0, texts[1])
	r.Forward()
	if r.states(1)[0].Diff(want[1][0]) == nil {
		t.Error("the first token's state is the same without a block")
	}
}

// WithDefaults returns the specification with every zero field replaced.
func (s Spec) WithDefaults() synthetic.Spec { return synthetic.Spec(s).WithDefaults() }
