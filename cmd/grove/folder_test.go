package main

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/rogpeppe/go-internal/testscript"

	"grove/internal/hftest"
	"grove/internal/suite/modeltest"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// folders are the ways in which script command folder changes a model of modeltest.
var folders = map[string]func(f *hftest.Folder, dir string) error{
	"":        func(f *hftest.Folder, dir string) error { return f.Write(dir) },
	"sharded": func(f *hftest.Folder, dir string) error { f.Shards = 3; return f.Write(dir) },
	"family": func(f *hftest.Folder, dir string) error {
		f.Config["architectures"] = []string{"RwkvForCausalLM"}
		return f.Write(dir)
	},
	"heads-0": func(f *hftest.Folder, dir string) error { f.Config["num_attention_heads"] = 0; return f.Write(dir) },
	"extra": func(f *hftest.Folder, dir string) error {
		f.Tensors["model.layers.0.mlp.adapter.weight"] = tensor.View{Type: tensor.F32, Shape: []int{1}, Data: make([]byte, 4)}
		return f.Write(dir)
	},
	"nan": func(f *hftest.Folder, dir string) error {
		copy(f.Tensors["model.layers.1.self_attn.v_proj.weight"].Data[8:], "\x00\x00\xc0\x7f")
		return f.Write(dir)
	},
	"long-header": func(f *hftest.Folder, dir string) error {
		return errors.Join(f.Write(dir), os.WriteFile(filepath.Join(dir, "model.safetensors"), []byte("\xff\xff\xff\xff\xff\xff\xff\x7f{}"), 0o644))
	},
	"upwards": func(f *hftest.Folder, dir string) error {
		index := `{"weight_map":{"model.norm.weight":"../model.safetensors"}}`
		return errors.Join(f.Write(dir), os.WriteFile(filepath.Join(dir, "model.safetensors.index.json"), []byte(index), 0o644))
	},
	"overlap": func(f *hftest.Folder, dir string) error {
		header := `{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`
		file := append([]byte{byte(len(header)), 0, 0, 0, 0, 0, 0, 0}, header+"abc"...)
		return errors.Join(f.Write(dir), os.WriteFile(filepath.Join(dir, "model.safetensors"), file, 0o644))
	},
	"truncated": func(f *hftest.Folder, dir string) error {
		return errors.Join(f.Write(dir), os.Truncate(filepath.Join(dir, "model.safetensors"), 1<<14))
	},
	"no-tokenizer": func(f *hftest.Folder, dir string) error {
		return errors.Join(f.Write(dir), os.Rename(filepath.Join(dir, "tokenizer.json"), filepath.Join(dir, "tokenizer.model")))
	},
}

// headChanges are the ways in which script command head changes a drafting head.
var headChanges = map[string]func(h *hftest.Head, dir string) error{
	"":     func(h *hftest.Head, dir string) error { return h.Write(dir) },
	"file": func(h *hftest.Head, dir string) error { return h.WriteFile(filepath.Join(dir, "head.safetensors")) },
	"nan": func(h *hftest.Head, dir string) error {
		copy(h.Tensors["norm.weight"].Data[8:], "\x00\x00\xc0\x7f")
		return h.Write(dir)
	},
	"no-norm": func(h *hftest.Head, dir string) error { delete(h.Tensors, "norm.weight"); return h.Write(dir) },
	"mtp": func(h *hftest.Head, dir string) error {
		h.Tensors["mtp.fc.weight"] = h.Tensors["norm.weight"]
		return h.Write(dir)
	},
	"pickle": func(h *hftest.Head, dir string) error {
		return os.WriteFile(filepath.Join(dir, "pytorch_model.bin"), []byte("PK\x03\x04"), 0o644)
	},
}

// makeHead LAYOUT DIR [CHANGE] writes a drafting head of a published layout, for models as wide as the golden ones and with their vocabulary.
func makeHead(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: head layout dir [change]")
	}
	change := append(args, "")[2]
	if headChanges[change] == nil {
		ts.Fatalf("the changes are %q", slices.Sorted(maps.Keys(headChanges)))
	}
	dir := ts.MkAbs(args[1])
	ts.Check(os.RemoveAll(dir))
	ts.Check(os.Mkdir(dir, 0o755))
	shape := hftest.SmallHead
	shape.Vocab = 320
	ts.Check(headChanges[change](hftest.NewHead(args[0], shape), dir))
}

// editors are the encoder-decoders of modeltest that edit a text, and whether it is code.
var editors = map[string]bool{"flan": false, "codet5p": true}

// makeFolder MODEL DIR [CHANGE] writes a model of modeltest as Hugging Face would publish it: a golden one, or one of editors.
func makeFolder(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: folder model dir [change]")
	}
	change := append(args, "")[2]
	if folders[change] == nil {
		ts.Fatalf("the changes are %q", slices.Sorted(maps.Keys(folders)))
	}
	dir := ts.MkAbs(args[1])
	ts.Check(os.RemoveAll(dir))
	ts.Check(os.Mkdir(dir, 0o755))
	if code, ok := editors[args[0]]; ok {
		h, err := modeltest.Editor(code)
		ts.Check(err)
		ts.Check(folders[change](h, dir))
		return
	}
	f, err := gguf.Open(filepath.Join(goldens, args[0]+".gguf"))
	ts.Check(err)
	defer f.Close()
	h, err := hftest.From(f)
	ts.Check(err)
	ts.Check(folders[change](h, dir))
}
