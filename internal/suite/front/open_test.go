package front_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"grove"
	"grove/internal/hftest"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// TestOpenErrors opens damaged files and folders, as a model and as a draft model: each error names the file, and where
// there is something to do, what.
func TestOpenErrors(t *testing.T) {
	const golden = "../../../internal/suite/modeltest/testdata/llama-tied.gguf"
	file := func(change func([]gguf.KV, []tensor.View) ([]gguf.KV, []tensor.View)) func(path string) error {
		return func(path string) error {
			f, err := gguf.Open(golden)
			if err != nil {
				return err
			}
			defer f.Close()
			metadata, tensors := change(slices.Clone(f.Metadata), slices.Clone(f.Tensors))
			return gguf.WriteFile(path, metadata, tensors)
		}
	}
	without := func(key string) func(path string) error {
		return file(func(m []gguf.KV, v []tensor.View) ([]gguf.KV, []tensor.View) {
			return slices.DeleteFunc(m, func(kv gguf.KV) bool { return kv.Key == key }),
				slices.DeleteFunc(v, func(v tensor.View) bool { return v.Name == key })
		})
	}
	with := func(key string, v gguf.Value) func(path string) error {
		return file(func(m []gguf.KV, ts []tensor.View) ([]gguf.KV, []tensor.View) {
			return append(slices.DeleteFunc(m, func(kv gguf.KV) bool { return kv.Key == key }), gguf.KV{Key: key, Value: v}), ts
		})
	}
	folder := func(name string, shards int, content string) func(path string) error {
		return func(path string) error {
			f, err := gguf.Open(golden)
			if err != nil {
				return err
			}
			defer f.Close()
			h, err := hftest.From(f)
			if err != nil {
				return err
			}
			h.Shards = shards
			if err := errors.Join(os.Mkdir(path, 0o755), h.Write(path)); err != nil {
				return err
			}
			if content == "" {
				return os.Remove(filepath.Join(path, name))
			}
			return os.WriteFile(filepath.Join(path, name), []byte(content), 0o600)
		}
	}
	const shard, index = "model-00002-of-00002.safetensors", "model.safetensors.index.json"
	for _, c := range []struct {
		name  string
		write func(path string) error
		at    string // the file of the folder that is named
		wants []string
	}{
		{"no model", func(string) error { return nil }, "", []string{"no such file"}},
		{"no tensor", without("output_norm.weight"), "", []string{"model: ", `tensor "output_norm.weight" is missing`}},
		{"no hyperparameter", without("llama.block_count"), "", []string{"model: ", "llama.block_count is missing"}},
		{"no vocabulary", without("tokenizer.ggml.model"), "", []string{"tokenizer: ", "the file holds no vocabulary"}},
		{"a template that is a number", with("tokenizer.chat_template", gguf.Of(uint32(1))), "", []string{"tokenizer.chat_template", "want a string"}},
		{"a hyperparameter that is a text", with("llama.block_count", gguf.Of("x")), "", []string{"llama.block_count", "want an integer, found string"}},
		{"a folder without settings", folder("config.json", 0, ""), "", []string{"without config.json"}},
		{"settings cut off", folder("config.json", 0, `{"a":`), "/config.json", []string{"unexpected end of JSON input", "cut off at 5 bytes; download it again"}},
		{"settings that are a list", folder("config.json", 0, "[1]"), "/config.json", []string{`begins with "[1]"; it must be a JSON object`}},
		{"a pointer for settings", folder("config.json", 0, "version https://git-lfs"), "/config.json", []string{"git lfs pull fetches the file"}},
		{"no tokenizer", folder("tokenizer.json", 0, ""), "/tokenizer.json", []string{"no such file"}},
		{"tokenizer cut off", folder("tokenizer.json", 0, `{"model":`), "", []string{"tokenizer.json: unexpected end of JSON input", "download it again"}},
		{"tokenizer of another kind", folder("tokenizer.json", 0, `{"model":7}`), "", []string{"tokenizer.json: model is of a wrong kind, number"}},
		{"names cut off", folder("tokenizer_config.json", 0, `{`), "", []string{"tokenizer_config.json: unexpected end of JSON input", "download it again"}},
		{"generation cut off", folder("generation_config.json", 0, `{`), "/generation_config.json", []string{"unexpected end of JSON input", "download it again"}},
		{"weights cut off", folder("model.safetensors", 0, "12345"), "/model.safetensors", []string{"5 bytes are too few", "download it again"}},
		{"a page for weights", folder("model.safetensors", 0, "<!DOCTYPE html><html>"), "/model.safetensors", []string{"it looks like a web page"}},
		{"index cut off", folder(index, 2, `{"weight_map":`), "/" + index, []string{"ends too early", "download it again"}},
		{"no index", folder(index, 2, ""), "", []string{index + " is missing, which lists the shards", "download it too"}},
		{"shard missing", folder(shard, 2, ""), "/" + shard, []string{"no such file", "a shard that " + index + " lists"}},
		{"shard empty", folder(shard, 2, " "), "/" + shard, []string{"download it again", "a shard that " + index + " lists"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "model")
			if err := c.write(path); err != nil {
				t.Fatal(err)
			}
			for _, o := range []struct {
				model string
				o     grove.Options
			}{{path, grove.Options{}}, {golden, grove.Options{Draft: path}}} {
				m, err := grove.Open(o.model, o.o)
				if err == nil {
					m.Close()
					t.Fatal("the model was opened")
				}
				for _, want := range append(c.wants, path+c.at) {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("got %v, want %s", err, want)
					}
				}
				if strings.Contains(err.Error(), "Go ") || strings.Count(err.Error(), path) > 1 {
					t.Errorf("got %v", err)
				}
			}
		})
	}
	t.Run("a cache that the draft model cannot have", func(t *testing.T) {
		const draft = "../../../internal/suite/modeltest/testdata/gpt2.gguf"
		_, err := grove.Open("../../../internal/suite/modeltest/testdata/gemma3.gguf", threaded(grove.Options{Draft: draft, CacheType: "q8_0"}))
		option := new(grove.OptionError)
		if !errors.As(err, &option) || !strings.HasPrefix(err.Error(), "kv: "+draft+": cache type Q8_0 needs heads of a multiple of 32 values") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("in memory", func(t *testing.T) {
		var b bytes.Buffer
		if err := gguf.Write(&b, []gguf.KV{{Key: "general.architecture", Value: gguf.Of("llama")}}, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := grove.OpenBytes(b.Bytes(), threaded(grove.Options{})); err == nil || err.Error() != "model: llama.block_count is missing" {
			t.Errorf("got %v", err)
		}
	})
}
