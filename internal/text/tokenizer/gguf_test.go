package tokenizer

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/text/token"
	"grove/internal/weights/gguf"
)

func open(t testing.TB, path string) *Tokenizer {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	k, err := FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestGolden: ids equal llama.cpp's on its own test texts, and decode to them.
func TestGolden(t *testing.T) {
	for _, name := range []string{"gpt-2", "llama-spm", "phi-3", "falcon", "starcoder", "deepseek-coder"} {
		t.Run(name, func(t *testing.T) {
			path := shared(t, "golden/tokenizers/ggml-vocab-"+name+".gguf")
			k := open(t, path)
			in, err := os.ReadFile(path + ".inp")
			if err != nil {
				t.Fatal(err)
			}
			out, err := os.ReadFile(path + ".out")
			if err != nil {
				t.Fatal(err)
			}
			texts := strings.Split(string(in), "\n__ggml_vocab_test__\n")
			lines := strings.Split(string(out), "\n")
			if len(texts) != len(lines) || len(texts) < 40 {
				t.Fatalf("%d texts, %d lines of ids", len(texts), len(lines))
			}
			for i, text := range texts {
				for _, plain := range []bool{false, true} {
					ids, err := k.Encode(nil, text, Options{Plain: plain})
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(strings.TrimSpace(lines[i]), strings.Trim(fmt.Sprint(ids), "[]")); diff != "" {
						t.Errorf("%q, plain %v: -want +got\n%s", text, plain, diff)
					}
					if back, err := k.Decode(ids, true); err != nil || back != text {
						t.Errorf("%q decodes to %q, %v", text, back, err)
					}
				}
			}
		})
	}
}

func TestPhi3(t *testing.T) {
	k := open(t, shared(t, "golden/tokenizers/ggml-vocab-phi-3.gguf"))
	ids, err := k.Encode(nil, "<|user|>\nHello<|end|> \n<|assistant|><s> Hello", Options{Special: true})
	if diff := cmp.Diff("<s> <|user|> ▁Hello <|end|> <|assistant|> <s> ▁ ▁Hello", k.texts(ids)); diff != "" || err != nil {
		t.Errorf("error %v, -want +got\n%s", err, diff)
	}
	end, _ := k.ID("<|end|>")
	if !k.IsEOG(end) || !k.IsEOG(k.EOS()) || k.IsEOG(k.BOS()) {
		t.Error("wrong tokens end an answer")
	}
}

// TestShared: real files open, and decoding reverses encoding.
func TestShared(t *testing.T) {
	for name, wantBOS := range map[string]string{
		"models/stories260K.gguf": "<s>", "models/gopher-4m.gguf": "<|begin_of_text|>", "golden/models/llama-gqa.gguf": "<|begin_of_text|>",
	} {
		t.Run(name, func(t *testing.T) {
			k := open(t, shared(t, name))
			const text = "func main() {\n\tfmt.Println(\"hello, 世界\", 12345)\n}\n"
			ids, err := k.Encode(nil, text, Options{Special: true})
			if err != nil {
				t.Fatal(err)
			}
			if k.Text(ids[0]) != wantBOS || k.BOS() != ids[0] {
				t.Errorf("begins with %q", k.Text(ids[0]))
			}
			if back, err := k.Decode(ids, false); back != text || err != nil {
				t.Errorf("decodes to %q, %v", back, err)
			}
		})
	}
}

// file returns a GGUF file that holds a vocabulary and no tensors.
func file(t testing.TB, kvs ...gguf.KV) *gguf.File {
	t.Helper()
	var b bytes.Buffer
	if err := gguf.Write(&b, kvs, nil); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func kv[T gguf.Basic](key string, v T) gguf.KV {
	return gguf.KV{Key: "tokenizer.ggml." + key, Value: gguf.Of(v)}
}

func kvs[T gguf.Basic](key string, v ...T) gguf.KV {
	return gguf.KV{Key: "tokenizer.ggml." + key, Value: gguf.ArrayOf(v)}
}

func bpeFile(t testing.TB, more ...gguf.KV) *gguf.File {
	return file(t, append([]gguf.KV{kv("model", "gpt2"), kvs("tokens", "a", "b", "ab", "<s>", "<e>"),
		kvs("token_type", int32(1), 1, 1, 3, 3), kvs("merges", "a b")}, more...)...)
}

func spmFile(t testing.TB, more ...gguf.KV) *gguf.File {
	return file(t, append([]gguf.KV{kv("model", "llama"), kvs("tokens", "<unk>", "<s>", "</s>", "▁", "a", "▁a"),
		kvs("token_type", int32(2), 3, 3, 1, 1, 1), kvs("scores", float32(0), 0, 0, -1, -2, -3)}, more...)...)
}

// TestFromGGUF: keys that a file lacks have the defaults of its kind.
func TestFromGGUF(t *testing.T) {
	const unset = uint32(1<<32 - 1)
	for _, c := range []struct {
		name     string
		f        *gguf.File
		want     string
		bos, eos token.ID
	}{
		{"gpt-2", bpeFile(t, kv("pre", "gpt-2"), kv("bos_token_id", uint32(3))), "ab", 3, token.None},
		{"gpt-2, asked to add", bpeFile(t, kv("pre", "gpt-2"), kv("bos_token_id", uint32(3)), kv("eos_token_id", uint32(4)),
			kv("add_bos_token", true), kv("add_eos_token", true)), "<s> ab <e>", 3, 4},
		{"llama-bpe", bpeFile(t, kv("pre", "llama-bpe"), kv("bos_token_id", uint32(3))), "<s> ab", 3, token.None},
		{"llama-bpe without a begin token", bpeFile(t, kv("pre", "llama-bpe")), "ab", token.None, token.None},
		{"llama-bpe, asked not to add", bpeFile(t, kv("pre", "llama-bpe"), kv("bos_token_id", uint32(3)), kv("add_bos_token", false)), "ab", 3, token.None},
		{"gpt-2, ids unset", bpeFile(t, kv("pre", "gpt-2"), kv("bos_token_id", uint32(3)), kv("eos_token_id", unset), kv("eot_token_id", unset)),
			"ab", 3, token.None},
		{"llama", spmFile(t), "<s> ▁a <unk>", 1, 2},
		{"llama, ids unset", spmFile(t, kv("bos_token_id", unset), kv("eos_token_id", unset), kv("unknown_token_id", unset)), "<s> ▁a <unk>", 1, 2},
		{"llama, other ids", spmFile(t, kv("bos_token_id", uint64(2)), kv("unknown_token_id", int32(1)), kv("add_space_prefix", false)),
			"</s> a <s>", 2, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			k, err := FromGGUF(c.f)
			if err != nil {
				t.Fatal(err)
			}
			ids, err := k.Encode(nil, "ab", Options{Special: true})
			if diff := cmp.Diff(c.want, k.texts(ids)); diff != "" || err != nil {
				t.Errorf("error %v, -want +got\n%s", err, diff)
			}
			if k.BOS() != c.bos || k.EOS() != c.eos {
				t.Errorf("begin %d, end %d", k.BOS(), k.EOS())
			}
		})
	}
}

func TestFromGGUFRefuses(t *testing.T) {
	gpt2 := kv("pre", "gpt-2")
	for _, c := range []struct {
		name string
		f    *gguf.File
		want string
	}{
		{"nothing", file(t), "tokenizer: the file holds no vocabulary (tokenizer.ggml.model)"},
		{"no tokens", file(t, kv("model", "llama")), "tokenizer: the vocabulary is empty"},
		{"no merges", file(t, kv("model", "gpt2"), gpt2, kvs("tokens", "a")), "tokenizer: the file holds no merges (tokenizer.ggml.merges)"},
		{"end", bpeFile(t, gpt2, kv("eos_token_id", uint32(1<<32-2))), "tokenizer: tokenizer.ggml.eos_token_id is 4294967294, outside the vocabulary of 5"},
		{"begin", bpeFile(t, gpt2, kv("bos_token_id", uint32(5))), "tokenizer: tokenizer.ggml.bos_token_id is 5, outside the vocabulary of 5"},
		{"beyond 32 bits", bpeFile(t, gpt2, kv("bos_token_id", uint64(1<<32))), "tokenizer: tokenizer.ggml.bos_token_id is 4294967296, outside the vocabulary of 5"},
		{"first fault", bpeFile(t, gpt2, kv("bos_token_id", uint32(7)), kv("eos_token_id", uint32(8))), "tokenizer: tokenizer.ggml.bos_token_id is 7, outside the vocabulary of 5"},
		{"add without a token", bpeFile(t, gpt2, kv("add_bos_token", true)), "tokenizer: a begin token is to be added, and the vocabulary names none"},
		{"few types", file(t, kv("model", "gpt2"), gpt2, kvs("tokens", "a", "b"), kvs("merges", "a b"), kvs("token_type", int32(1))), "tokenizer: 1 token types for 2 tokens"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := FromGGUF(c.f)
			if err == nil {
				t.Fatal("accepted")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
	for _, f := range []*gguf.File{
		bpeFile(t, kv("pre", uint32(1))), bpeFile(t, gpt2, kv("bos_token_id", int32(-1))), bpeFile(t, gpt2, kv("bos_token_id", "x")),
		bpeFile(t, gpt2, kv("add_bos_token", uint32(1))), file(t, kv("model", "gpt2"), kv("tokens", "a")),
	} {
		if _, err := FromGGUF(f); err == nil || !strings.HasPrefix(err.Error(), "tokenizer: ") {
			t.Errorf("a value of the wrong type: %v", err)
		}
	}
}

// BenchmarkEncode: every kind of tokenizer at 3 MB/s at least.
func BenchmarkEncode(b *testing.B) {
	text, err := os.ReadFile(shared(b, "research/engines.md"))
	if err != nil {
		b.Fatal(err)
	}
	run := func(name string, k *Tokenizer) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			var ids []token.ID
			for b.Loop() {
				ids, err = k.Encode(ids[:0], string(text), Options{})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	for _, name := range []string{"gpt-2", "llama-spm", "phi-3", "falcon", "starcoder", "deepseek-coder"} {
		run("vocab="+name, open(b, shared(b, "golden/tokenizers/ggml-vocab-"+name+".gguf")))
	}
	run("vocab=gopher-4m", open(b, shared(b, "models/gopher-4m.gguf")))
	f, err := gguf.Open(shared(b, "golden/tokenizers/ggml-vocab-llama-spm.gguf"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	doc, config := asJSON(b, f, nil)
	k, err := ParseJSON(doc, config)
	if err != nil {
		b.Fatal(err)
	}
	run("json=llama-spm", k)
	v := vocabOf(b, f)
	v.Model, v.MergeSpaces = "t5", true
	run("unigram", must(b, v))
	v.Model = "bert"
	run("wordpiece", must(b, v))
	g, err := gguf.Open(shared(b, "golden/tokenizers/ggml-vocab-gpt-2.gguf"))
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	doc, config = asJSON(b, g, func(file object) {
		file["pre_tokenizer"] = sequence("pretokenizers", splitPart(`\d|[^\d\s]+|\s+`), byteLevelPart(false))
	})
	if k, err = ParseJSON(doc, config); err != nil {
		b.Fatal(err)
	}
	run("expression", k)
}

func BenchmarkOpen(b *testing.B) {
	path := shared(b, "golden/tokenizers/ggml-vocab-gpt-2.gguf")
	for b.Loop() {
		open(b, path)
	}
}

func BenchmarkLongRun(b *testing.B) {
	k := must(b, smallBPE())
	text := strings.Repeat("a", 1<<20)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := k.Encode(nil, text, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
