package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"grove/internal/gopher"
	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// goldens is the folder of modeltest's models.
const goldens = "../../internal/suite/modeltest/testdata"

// crafts are the ways in which script command craft spoils a model of modeltest.
var crafts = map[string]struct {
	from  string
	spoil func(f *crafted)
}{
	"good":        {"llama-gqa", func(f *crafted) {}},
	"nan-weight":  {"llama-gqa", func(f *crafted) { f.edit("blk.0.ffn_down.weight", func(x []float32) { x[100] = nan }) }},
	"inf-weight":  {"llama-gqa", func(f *crafted) { f.edit("output_norm.weight", func(x []float32) { x[1] = float32(math.Inf(1)) }) }},
	"huge-keys":   {"llama-gqa", func(f *crafted) { f.edit("blk.1.attn_k.weight", scale(1e7)) }},
	"huge-values": {"llama-gqa", func(f *crafted) { f.edit("blk.1.attn_v.weight", scale(1e7)) }},
	// Texts without end, where the likeliest token is taken: those that end one are as likely as token 0, which is the first.
	"long-context": {"llama-gqa", func(f *crafted) {
		f.set("llama.context_length", gguf.Of(uint32(1<<17)))
		f.edit("output.weight", func(x []float32) {
			width := len(x) / 320
			for id := 317; id < 320; id++ {
				copy(x[id*width:(id+1)*width], x[:width])
			}
		})
	}},

	"bad-advice": {"llama-gqa", func(f *crafted) {
		f.add("general.sampling.temp", gguf.Of(float32(math.NaN())))
		f.add("general.sampling.top_k", gguf.Of(int32(-3)))
		f.add("general.sampling.top_p", gguf.Of("0.9"))
		f.add("general.sampling.\x1b]0;owned\a", gguf.Of(true))
	}},
	"talker": {"gopher", func(f *crafted) { f.add("tokenizer.chat_template", gguf.Of(talk)) }},
	"hostile-template": {"gopher", func(f *crafted) {
		f.add("tokenizer.chat_template", gguf.Of("{% for i in range(1000000000) %}{% endfor %}"))
	}},
	"broken-template": {"gopher", func(f *crafted) { f.add("tokenizer.chat_template", gguf.Of("{% if %}")) }},

	"architecture": {"llama-gqa", func(f *crafted) { f.set("general.architecture", gguf.Of("mamba\n")) }},
	"klingon":      {"llama-gqa", func(f *crafted) { f.set("general.architecture", gguf.Of("klingon")) }},
	"no-tensor":    {"llama-gqa", func(f *crafted) { f.tensors = f.tensors[:len(f.tensors)-1] }},
	"no-kernel": {"llama-gqa", func(f *crafted) {
		t := f.tensor("blk.0.ffn_up.weight")
		t.Type, t.Data = tensor.Q8_1, make([]byte, 96*2*36)
	}},
	"no-vocabulary": {"llama-gqa", func(f *crafted) { f.drop("tokenizer.ggml.model") }},
	"fills": {"llama-gqa", func(f *crafted) {
		for i, part := range []string{"pre", "suf", "mid"} {
			f.metadata = append(f.metadata, gguf.KV{Key: "tokenizer.ggml.fim_" + part + "_token_id", Value: gguf.Of(uint32(300 + i))})
		}
	}},
	"no-pre-tokenizer": {"gopher", func(f *crafted) { f.drop("tokenizer.ggml.pre") }},
	"pre-tokenizer":    {"llama-gqa", func(f *crafted) { f.set("tokenizer.ggml.pre", gguf.Of("klingon")) }},

	"encoder":        {"bert", func(f *crafted) {}},
	"ranker":         {"neo-bert", func(f *crafted) {}},
	"encoder-rank":   {"neo-bert", func(f *crafted) { f.set("neo-bert.pooling_type", gguf.Of(uint32(4))) }},
	"encoder-causal": {"bert", func(f *crafted) { f.set("bert.attention.causal", gguf.Of(true)) }},
	"encoder-nan":    {"bert", func(f *crafted) { f.edit("blk.2.layer_output_norm.bias", func(x []float32) { x[7] = nan }) }},

	"canvas":     {"llada", func(f *crafted) {}},
	"t5":         {"t5", func(f *crafted) {}},
	"t5-encoder": {"t5encoder", func(f *crafted) {}},
	"t5-decoder": {"t5", func(f *crafted) {
		f.tensors = slices.DeleteFunc(f.tensors, func(t tensor.View) bool { return strings.HasPrefix(t.Name, "enc.") })
	}},
	"t5-start": {"t5", func(f *crafted) { f.set("t5.decoder_start_token_id", gguf.Of(uint32(300))) }},

	"heads-0":       {"llama-gqa", func(f *crafted) { f.set("llama.attention.head_count", gguf.Of(uint32(0))) }},
	"kv-heads-0":    {"llama-gqa", func(f *crafted) { f.set("llama.attention.head_count_kv", gguf.Of(uint32(0))) }},
	"kv-heads-8":    {"llama-gqa", func(f *crafted) { f.set("llama.attention.head_count_kv", gguf.Of(uint32(8))) }},
	"heads-8":       {"llama-gqa", func(f *crafted) { f.set("llama.attention.head_count", gguf.Of(uint32(8))) }},
	"blocks-huge":   {"llama-gqa", func(f *crafted) { f.set("llama.block_count", gguf.Of(uint32(math.MaxUint32))) }},
	"width-missing": {"llama-gqa", func(f *crafted) { f.drop("llama.embedding_length") }},
	"width-text":    {"llama-gqa", func(f *crafted) { f.set("llama.embedding_length", gguf.Of("wide")) }},
	"few-tokens":    {"llama-gqa", func(f *crafted) { f.set("tokenizer.ggml.tokens", gguf.ArrayOf([]string{"a", "b"})) }},
	"other-token": {"llama-gqa", func(f *crafted) {
		i := slices.IndexFunc(f.metadata, func(kv gguf.KV) bool { return kv.Key == "tokenizer.ggml.tokens" })
		tokens := slices.Clone(f.metadata[i].Value.Any().([]string))
		tokens[300] = "other"
		f.set("tokenizer.ggml.tokens", gguf.ArrayOf(tokens))
	}},
	"eos-huge":       {"llama-gqa", func(f *crafted) { f.set("tokenizer.ggml.eos_token_id", gguf.Of(uint32(math.MaxUint32-1))) }},
	"rope-nan":       {"llama-gqa", func(f *crafted) { f.set("llama.rope.freq_base", gguf.Of(nan)) }},
	"rope-inf":       {"llama-gqa", func(f *crafted) { f.set("llama.rope.freq_base", gguf.Of(float32(math.Inf(1)))) }},
	"rope-0":         {"llama-gqa", func(f *crafted) { f.set("llama.rope.freq_base", gguf.Of(float32(0))) }},
	"context-0":      {"llama-gqa", func(f *crafted) { f.set("llama.context_length", gguf.Of(uint32(0))) }},
	"context-2^31":   {"llama-gqa", func(f *crafted) { f.set("llama.context_length", gguf.Of(uint32(1<<31))) }},
	"experts-used-5": {"mixtral", func(f *crafted) { f.set("llama.expert_used_count", gguf.Of(uint32(5))) }},
	"experts-used-0": {"mixtral", func(f *crafted) { f.set("llama.expert_used_count", gguf.Of(uint32(0))) }},
}

// talk is a template that makes questions comments and answers functions.
const talk = `{% for m in messages %}
{% if m.role == 'tool' %}{{ raise_exception('no tools here') }}{% endif %}
{{ {'user': '// ', 'system': '/* ', 'assistant': 'func'}[m.role] }}{{ m.content }}{{ eos_token }}
{% endfor %}{% if add_generation_prompt %}func{% endif %}`

// randoms are models of random weights that crafts can start from.
var randoms = map[string]synthetic.Spec{
	"bert":      {Arch: "bert", Context: 128, Vocab: 300, Vocabulary: true},
	"neo-bert":  {Arch: "neo-bert", Context: 128, Vocab: 300, Vocabulary: true},
	"llada":     {Arch: "llada", Context: 512, Vocab: 300, Vocabulary: true},
	"t5":        {Arch: "t5", KVHeads: 4, Context: 300, Vocab: 300, Vocabulary: true},
	"t5encoder": {Arch: "t5encoder", KVHeads: 4, Context: 300, Vocab: 300, Vocabulary: true},
}

var nan = float32(math.NaN())

func scale(by float32) func([]float32) {
	return func(x []float32) {
		for i := range x {
			x[i] *= by
		}
	}
}

// crafted is a model file on its way. Its methods panic where they find nothing to spoil.
type crafted struct {
	metadata []gguf.KV
	tensors  []tensor.View
}

func (f *crafted) set(key string, v gguf.Value) {
	i := slices.IndexFunc(f.metadata, func(kv gguf.KV) bool { return kv.Key == key })
	f.metadata[i].Value = v
}

func (f *crafted) add(key string, v gguf.Value) {
	f.metadata = append(f.metadata, gguf.KV{Key: key, Value: v})
}

func (f *crafted) drop(key string) {
	f.metadata = slices.DeleteFunc(f.metadata, func(kv gguf.KV) bool { return kv.Key == key })
}

func (f *crafted) tensor(name string) *tensor.View {
	return &f.tensors[slices.IndexFunc(f.tensors, func(t tensor.View) bool { return t.Name == name })]
}

// edit changes the values of an F32 tensor.
func (f *crafted) edit(name string, change func([]float32)) {
	t := f.tensor(name)
	x := make([]float32, t.Elems())
	err := tensor.Unpack(tensor.F32, x, t.Data)
	change(x)
	t.Data = make([]byte, len(t.Data))
	if err = errors.Join(err, tensor.Pack(tensor.F32, t.Data, x)); err != nil {
		panic(err)
	}
}

// craft NAME FILE writes a spoilt model.
func craft(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: craft name file")
	}
	ts.Check(craftFile(args[0], ts.MkAbs(args[1])))
}

// openCraft opens what a craft starts from: the embedded model, or a golden one.
func openCraft(name string) (*gguf.File, error) {
	if name == "gopher" {
		return gguf.Parse(gopher.Model())
	}
	return gguf.Open(goldens + "/" + name + ".gguf")
}

func craftFile(name, path string) error {
	if spoil, ok := byteCrafts[name]; ok {
		b, err := os.ReadFile(goldens + "/llama-gqa.gguf")
		if err != nil {
			return err
		}
		return os.WriteFile(path, spoil(b), 0o644)
	}
	c, ok := crafts[name]
	if !ok {
		return fmt.Errorf("unknown craft %s", name)
	}
	f := &crafted{}
	if spec, ok := randoms[c.from]; ok {
		var err error
		if f.metadata, f.tensors, err = spec.Parts(); err != nil {
			return err
		}
	} else {
		source, err := openCraft(c.from)
		if err != nil {
			return err
		}
		defer source.Close()
		f.metadata, f.tensors = slices.Clone(source.Metadata), slices.Clone(source.Tensors)
	}
	c.spoil(f)
	return gguf.WriteFile(path, f.metadata, f.tensors)
}

// byteCrafts spoil a file in ways that the writer refuses.
var byteCrafts = map[string]func(b []byte) []byte{
	"truncated":      func(b []byte) []byte { return b[:300000] },
	"truncated-keys": func(b []byte) []byte { return b[:1000] },
	"empty":          func(b []byte) []byte { return nil },
	"version-9":      func(b []byte) []byte { b[4] = 9; return b },
	"big-endian":     func(b []byte) []byte { copy(b[4:], []byte{0, 0, 0, 3}); return b },
	"type-99": func(b []byte) []byte {
		const name = "output.weight"
		at := bytes.LastIndex(b, append([]byte{byte(len(name)), 0, 0, 0, 0, 0, 0, 0}, name...))
		binary.LittleEndian.PutUint32(b[at+8+len(name)+4+2*8:], 99)
		return b
	},
}
