// Package hf reads models in the form in which Hugging Face publishes them, a folder of config.json,
// safetensors files and tokenizer.json, and presents them as GGUF: the metadata, the names and the
// layout of tensors are those that llama.cpp reads. Tensors that GGUF keeps as they are stay views of the
// mapped files; the others (rows in another order, experts stacked, norms in float32) are made when they
// are asked for.
package hf

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"grove/internal/weights/gguf"
	"grove/internal/weights/ollama"
)

// others are the families of packages of their own.
var others = []map[string]func(*FolderBuilder){DiffusionFamilies, EncodersFamilies, HybridFamilies, MixturesFamilies, Seq2seqFamilies}

// Classes returns the names of the classes that are supported, sorted.
func Classes() []string {
	names := slices.Collect(maps.Keys(byClass))
	for _, more := range others {
		names = slices.AppendSeq(names, maps.Keys(more))
	}
	slices.Sort(names)
	return names
}

// builder is a folder whose family is presented.
type builder struct{ *DecoderBuilder }

// Is reports whether path is a folder that [Open] is for.
func Is(path string) bool {
	info, err := os.Stat(filepath.Join(path, ConfigName))
	return err == nil && !info.IsDir()
}

// OpenModel opens a model of any form: a folder as [Open] does, a manifest of ollama's directory as [ollama.Open] does, a file as [gguf.Open] does.
func OpenModel(path string) (*gguf.File, error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.Mode().IsRegular() && ollama.Is(path):
		return ollama.Open(path)
	case err != nil || !info.IsDir():
		return gguf.Open(path)
	case !Is(path):
		if err := originalForm(path); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("hf: %s is a folder without %s", path, ConfigName)
	}
	return Open(path)
}

// Open opens the folder of a model. The result must be closed. A family, a setting, a tensor or a quantisation that grove
// does not know is refused by name.
func Open(dir string) (*gguf.File, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("hf: %s is a file; a model of Hugging Face is a folder with %s", dir, ConfigName)
	}
	b := &builder{&DecoderBuilder{FolderBuilder: NewFolder(dir)}}
	family, err := b.family()
	if err != nil {
		return nil, err
	}
	if b.Weights, err = OpenWeights(dir); err != nil {
		return nil, err
	}
	family(b)
	b.LeftOver()
	b.Vocabulary()
	b.Sampling()
	if err := b.FirstError(); err != nil {
		b.Storage().Close()
		return nil, err
	}
	return gguf.New(dir, b.Metadata, b.Tensors, b.Storage(), b.Load)
}

// family reads config.json and returns the function of its family.
func (b *builder) family() (func(*builder), error) {
	var err error
	if b.Config, err = ReadConfig(filepath.Join(b.Dir, ConfigName)); err != nil {
		return nil, err
	}
	var classes []string
	b.Config.Value("architectures", &classes, "an array of names")
	if len(classes) != 1 && *b.Config.Err == nil {
		b.Config.Fail("architectures names %d classes; it must name 1", len(classes))
	}
	if method := b.Config.Sub("quantization_config").TextOr("quant_method", ""); method != "" && method != "mxfp4" {
		b.Config.Fail("quantization_config.quant_method is %.40q; it must be mxfp4 or missing", method)
	}
	if *b.Config.Err != nil {
		return nil, *b.Config.Err
	}
	family, ok := byClass[classes[0]]
	for _, more := range others {
		if other := more[classes[0]]; other != nil {
			family, ok = func(b *builder) { other(b.DecoderBuilder.FolderBuilder) }, true
		}
	}
	if why := Refused[classes[0]]; why != "" {
		return nil, fmt.Errorf("hf: %s: class %s is not supported: %s", filepath.Join(b.Dir, ConfigName), classes[0], why)
	}
	if !ok {
		return nil, fmt.Errorf("hf: %s: class %.80q is not supported; the classes are %s", filepath.Join(b.Dir, ConfigName), classes[0], strings.Join(Classes(), ", "))
	}
	if b.Whole = b.Config; b.Config.Has("text_config") { // the text part of a model that reads images too
		b.Config = b.Config.Sub("text_config")
	}
	return family, nil
}
