package hf

import (
	"testing"

	"grove/internal/hftest"
)

// Folders returns small models of the classes whose folders can be opened, by names, for the tests of what reads a model's sources.
func Folders(t *testing.T) map[string]func(t *testing.T) *hftest.Folder {
	all := map[string]func(t *testing.T) *hftest.Folder{"codegen2": codeGen2Folder, "gpt-oss": gptOSSFolder}
	from := func(name string) func(t *testing.T) *hftest.Folder {
		return func(t *testing.T) *hftest.Folder {
			f, err := hftest.From(golden(t, name))
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
	}
	for _, name := range []string{"llama-tied", "mixtral", "gemma3", "qwen3moe", "qwen2", "qwen3", "gemma2", "phi3", "olmo2", "starcoder2", "gpt2"} {
		all[name] = from(name)
	}
	for _, class := range []string{"MambaForCausalLM", "Mamba2ForCausalLM", "JambaForCausalLM", "FalconH1ForCausalLM", "GraniteMoeHybridForCausalLM", "NemotronHForCausalLM"} {
		all[class] = func(t *testing.T) *hftest.Folder { return recurrent(t, class) }
	}
	for _, c := range carriedCases() {
		all[c.class] = func(t *testing.T) *hftest.Folder {
			f, _ := carried(t, c.spec, c.class, c.config)
			return f
		}
	}
	all["mistral4"] = func(t *testing.T) *hftest.Folder {
		f, _ := mistral4Folder(t, "model.language_model.", "lm_head.weight", "model.visual.x.weight")
		return f
	}
	for name, lacks := range archs {
		all[name] = func(t *testing.T) *hftest.Folder {
			needArchs(t)
			f, err := hftest.From(archModel(t, name, lacks))
			if err != nil {
				t.Fatal(err)
			}
			f.Tokenizer["post_processor"] = nil
			return f
		}
	}
	return all
}
