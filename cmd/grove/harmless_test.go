package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// planted sets the title of a terminal, clears its screen twice, and turns the direction of the text behind it.
const planted = "\x1b]0;owned\a\x1b[2J\u009b2J\u202e"

// plant returns files with control characters in their strings, by their names: one that runs, and others that do not.
func plant() map[string]func(f *crafted) {
	files := map[string]func(f *crafted){
		"runs": func(f *crafted) {
			needed := []string{"general.architecture", "tokenizer.ggml.model", "tokenizer.ggml.pre"}
			f.add("general.license", gguf.Of("license"))
			f.add("general.author", gguf.Of("author"))
			for i, kv := range f.metadata {
				if text, ok := kv.Value.Any().(string); ok && !strings.Contains(strings.Join(needed, " "), kv.Key) {
					f.metadata[i].Value = gguf.Of(planted + text)
				}
			}
			f.add("general.sampling."+planted, gguf.Of(planted))
			f.add(planted, gguf.ArrayOf([]string{planted}))
			f.add("tokenizer.chat_template", gguf.Of("{{ raise_exception('"+planted+"') }}"))
			f.add("tokenizer.chat_template."+planted, gguf.Of("{% if %}"))
		},
		"tensor": func(f *crafted) { f.tensors[3].Name = planted },
		"tensors too many": func(f *crafted) {
			f.tensors = append(f.tensors, tensor.View{Name: "blk.0." + planted, Type: tensor.F32, Shape: []int{1}, Data: make([]byte, 4)})
		},
		"syntax": func(f *crafted) { f.add("tokenizer.chat_template", gguf.Of("{% "+planted+" %}")) },
		"filter": func(f *crafted) {
			f.add("tokenizer.chat_template", gguf.Of("{{ messages[0].content | map('"+planted+"') }}"))
		},
		"undefined": func(f *crafted) { f.add("tokenizer.chat_template", gguf.Of("{{ messages['"+planted+"'].x }}")) },
		"token": func(f *crafted) {
			f.set("tokenizer.ggml.tokens", gguf.ArrayOf([]string{planted, planted}))
		},
		"type": func(f *crafted) { f.set("llama.embedding_length", gguf.Of(planted)) },
	}
	for _, key := range []string{"general.architecture", "tokenizer.ggml.model", "tokenizer.ggml.pre"} {
		files[key] = func(f *crafted) { f.set(key, gguf.Of(planted)) }
	}
	return files
}

// TestNothingControls runs commands on files whose strings, tensors, tokens, templates and names control a terminal: no output has a
// control character, besides the text that a model generates.
func TestNothingControls(t *testing.T) {
	dir := t.TempDir()
	paths := map[string]string{}
	for name, spoil := range plant() {
		source, err := openCraft("llama-gqa")
		if err != nil {
			t.Fatal(err)
		}
		f := &crafted{metadata: append([]gguf.KV(nil), source.Metadata...), tensors: append([]tensor.View(nil), source.Tensors...)}
		spoil(f)
		paths[name] = filepath.Join(dir, name+planted+".gguf")
		if err := gguf.WriteFile(paths[name], f.metadata, f.tensors); err != nil {
			t.Fatal(err)
		}
		source.Close()
	}
	broken := filepath.Join(dir, "broken"+planted+".jinja")
	if err := os.WriteFile(broken, []byte("{% if "+planted+" %}"), 0o644); err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(dir, "ollama/manifests/registry.ollama.ai/library", planted, planted)
	if err := os.MkdirAll(filepath.Dir(manifest), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(manifest, []byte("{"+planted), 0o644); err != nil {
		t.Fatal(err)
	}
	all := [][]string{{"list"}, {"list", "--json"}, {"show", dir + "/none" + planted}, {"run", "-m", "none" + planted, "x"}, {"rm", "none" + planted}}
	for name, path := range paths {
		all = append(all, []string{"show", path}, []string{"chat", "-m", path, "-n", "1", "x"}, []string{"run", "-m", path, "-n", "1", "--temp", "0", "x"})
		if name == "runs" {
			all = append(all, []string{"show", "--json", path}, []string{"inspect", path}, []string{"inspect", "--full", path},
				[]string{"chat", "-m", path, "--chat-template", planted, "x"}, []string{"chat", "-m", path, "--chat-template", broken, "x"},
				[]string{"chat", "-m", path, "--chat-template", "chatml"}, []string{"bench", "speed", "-m", path, "-p", "1", "-n", "1", "-r", "1"}, []string{"bench", "speed", "-m", path, "-p", "1", "-n", "1", "-r", "1", "--json"},
				[]string{"bench", "load", "-m", path, "-r", "1"}, []string{"logits", "-m", path, "--tokens", "1,5", "--out", dir + "/logits" + planted}, []string{"perplexity", "-m", path, "--file", broken},
				[]string{"convert", dir + "/" + planted, dir + "/" + planted + ".gguf"}, []string{"pull", "--offline", planted},
				[]string{"tokenize", "-m", path}, []string{"quantize", path, dir + "/out" + planted + ".gguf", "q8_0"},
				[]string{"methods", planted}, []string{planted}, []string{"run", "--" + planted}, []string{"serve", "-m", path, "-m", path, "--addr", planted})
		}
	}
	for _, args := range all {
		cmd := exec.CommandContext(t.Context(), "grove", args...)
		cmd.Env = append(os.Environ(), "GROVE_MODELS="+dir, "OLLAMA_MODELS="+filepath.Join(dir, "ollama"))
		cmd.Stdin = strings.NewReader("")
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		_ = cmd.Run() // most of them fail
		if args[0] == "run" {
			stdout.Reset() // what the model generates
		}
		if stdout.Len()+stderr.Len() == 0 && args[0] != "logits" {
			t.Errorf("%q says nothing", args)
		}
		for name, text := range map[string]string{"output": stdout.String(), "error": stderr.String()} {
			if at := strings.IndexFunc(text, func(r rune) bool {
				return unicode.IsControl(r) && r != '\n' && r != '\t'
			}); at >= 0 {
				t.Errorf("%q: the standard %s has a control character: %s", args[:1], name, fmt.Sprintf("%.200q", text[max(0, at-80):]))
			}
		}
	}
}
