// Package ollama opens the models of ollama's directory: a manifest names the weights, and layers that a Modelfile has made. The
// system message, the first messages and the parameters become metadata of the opened file, so that all that reads a file's
// recommendations has them; adapters are files beside it.
package ollama

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"grove/internal/fileio"
	"grove/internal/weights/gguf"
)

// The keys of metadata that layers become, besides the general.sampling.* of the parameters.
const (
	KeySystem    = "grove.conversation.system"   // the system message of conversations without one
	KeyMessages  = "grove.conversation.messages" // JSON: the messages with which conversations begin
	KeyContext   = "grove.context"               // tokens of a text where nobody chooses
	KeyMaxTokens = "grove.max_tokens"            // of an answer where the request does not say
	KeySeed      = "grove.seed"                  // of requests without one
	KeyStop      = "grove.stop"                  // texts that end answers, unless the request names others
	KeyNotes     = "grove.notes"                 // what of the model is not used, a line each
)

const (
	maxManifest = 1 << 20
	maxLayer    = 1 << 20 // of a text
	kinds       = "application/vnd.ollama.image."
)

// digest is the form of the names of blobs. Any other name could lead out of their directory.
var digest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// Manifest is the layers of a model, each a path of a blob; "" is none.
type Manifest struct {
	path     string
	Model    string
	Adapters []string // LoRA files
	texts    map[string]string
	missing  error // a layer besides the weights has no blob
}

// Is reports whether a path has the form of a manifest's: manifests/HOST/NAMESPACE/NAME/TAG beside a folder of blobs.
func Is(path string) bool {
	dir, ok := root(path)
	if !ok {
		return false
	}
	info, err := os.Stat(filepath.Join(dir, "blobs"))
	if err != nil || !info.IsDir() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	begin := make([]byte, 64)
	n, _ := io.ReadFull(f, begin) // a shorter file is no manifest by its text
	return bytes.HasPrefix(bytes.TrimLeft(begin[:n], " \t\r\n"), []byte("{"))
}

// root returns ollama's directory of a manifest.
func root(path string) (dir string, ok bool) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", false
	}
	for range 4 {
		path = filepath.Dir(path)
	}
	return filepath.Dir(path), filepath.Base(path) == "manifests"
}

// Read reads a manifest in ollama's directory. It reads no layer. Errors: a manifest that is broken, or names no model or one whose blob is missing.
func Read(path string) (*Manifest, error) {
	dir, ok := root(path)
	if !ok {
		return nil, fmt.Errorf("%s: it is no manifest of ollama's directory", path)
	}
	b, err := fileio.ReadRegular(path, maxManifest)
	if err != nil {
		return nil, err
	}
	var file struct {
		Layers []struct {
			MediaType string `json:"mediaType"`
			Digest    string `json:"digest"`
		} `json:"layers"`
	}
	if err := json.Unmarshal(b, &file); err != nil {
		return nil, fmt.Errorf("%s: %w; the manifest is broken: pull the model again", path, err)
	}
	m := &Manifest{path: path, texts: map[string]string{}}
	for _, l := range file.Layers {
		kind, ok := strings.CutPrefix(l.MediaType, kinds)
		if !ok || !slices.Contains([]string{"model", "adapter", "system", "params", "template", "messages", "prompt", "license"}, kind) || kind == "model" && m.Model != "" {
			continue
		}
		blob, err := blobOf(dir, l.Digest)
		switch {
		case err != nil && kind == "model":
			return nil, fmt.Errorf("%s: %w", path, err)
		case err != nil && kind == "license":
			continue // it changes no answer
		case err != nil:
			m.missing = fmt.Errorf("%s: the layer of kind %s: %w; pull the model again", path, kind, err)
			continue
		}
		switch kind {
		case "model":
			m.Model = blob
		case "adapter":
			m.Adapters = append(m.Adapters, blob)
		default:
			m.texts[kind] = cmp.Or(m.texts[kind], blob)
		}
	}
	if m.Model == "" {
		return nil, fmt.Errorf("%s: no layer holds a model", path)
	}
	return m, nil
}

// blobOf returns the file of a digest.
func blobOf(dir, name string) (string, error) {
	if !digest.MatchString(name) {
		return "", fmt.Errorf("%.80q is not a digest", name)
	}
	for _, separator := range []string{"-", ":"} { // as of 2024, and before
		blob := filepath.Join(dir, "blobs", strings.Replace(name, ":", separator, 1))
		if info, err := os.Stat(blob); err == nil && info.Mode().IsRegular() {
			return blob, nil
		}
	}
	return "", fmt.Errorf("blob %s is missing", name)
}

// Plain reports that the model is its weights alone: no layer changes its answers.
func (m *Manifest) Plain() bool {
	return m.missing == nil && len(m.Adapters) == 0 && (len(m.texts) == 0 || len(m.texts) == 1 && m.texts["license"] != "")
}

// Open opens the model of a manifest with all that its layers say. Errors: those of [Read] and [gguf.Open], and a layer that cannot be read.
func Open(path string) (*gguf.File, error) {
	m, err := Read(path)
	if err == nil {
		err = m.missing
	}
	if err != nil {
		return nil, fmt.Errorf("ollama: %w", err)
	}
	f, err := gguf.Open(m.Model)
	if err != nil {
		return nil, err
	}
	if err := m.apply(f); err != nil {
		_ = f.Close() // its error would only hide the cause
		return nil, fmt.Errorf("ollama: %s: %w", path, err)
	}
	return f, nil
}

// apply gives a file what the layers say.
func (m *Manifest) apply(f *gguf.File) error {
	f.Adapters = m.Adapters
	var notes []string
	for _, kind := range []string{"license", "system", "template", "prompt", "messages", "params"} {
		path := m.texts[kind]
		if path == "" {
			continue
		}
		b, err := fileio.ReadRegular(path, maxLayer)
		if err != nil {
			return fmt.Errorf("the layer of kind %s: %w", kind, err)
		}
		switch kind {
		case "license":
			if _, ok := f.Lookup("general.license"); !ok {
				first, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
				f.Set("general.license", gguf.Of(strings.ToValidUTF8(first, "\ufffd")))
			}
		case "system":
			f.Set(KeySystem, gguf.Of(strings.ToValidUTF8(string(b), "\ufffd")))
		case "template", "prompt":
			notes = append(notes, "the layer of kind "+kind+" is a Go template of ollama, which is not read; "+instead(f))
		case "messages":
			var list []struct{ Role, Content string }
			if err := json.Unmarshal(b, &list); err != nil {
				return fmt.Errorf("the layer of kind messages: %w", err)
			}
			f.Set(KeyMessages, gguf.Of(string(b)))
		case "params":
			more, err := parameters(f, b)
			if err != nil {
				return fmt.Errorf("the layer of kind params: %w", err)
			}
			notes = append(notes, more...)
		}
	}
	if len(notes) > 0 {
		f.Set(KeyNotes, gguf.ArrayOf(notes))
	}
	return nil
}

// instead says which template conversations have.
func instead(f *gguf.File) string {
	if _, ok := f.Lookup("tokenizer.chat_template"); ok {
		return "conversations have the chat template of the model's GGUF file"
	}
	return "the model's GGUF file has no chat template: --chat-template names one"
}

// names are the parameters that become recommendations for the draw of tokens.
var names = map[string]string{
	"temperature": "temp", "top_k": "top_k", "top_p": "top_p", "min_p": "min_p", "typical_p": "typical_p", "repeat_penalty": "penalty_repeat",
	"repeat_last_n": "penalty_last_n", "presence_penalty": "penalty_present", "frequency_penalty": "penalty_freq",
	"mirostat": "mirostat", "mirostat_tau": "mirostat_tau", "mirostat_eta": "mirostat_eta",
}

// idle are the parameters that change no answer: what a runner does with the machine, and what ollama reads no more.
var idle = []string{
	"num_gpu", "num_thread", "num_batch", "num_keep", "num_gqa", "main_gpu", "low_vram", "f16_kv", "use_mmap", "use_mlock", "numa", "vocab_only", "logits_all",
	"embedding_only", "penalize_newline", "tfs_z", "rope_frequency_base", "rope_frequency_scale", "draft_num_predict",
}

// parameters gives a file the parameters of a Modelfile, and returns a line for each that is not used.
func parameters(f *gguf.File, text []byte) (notes []string, err error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	keys := make([]string, 0, len(all))
	for name := range all {
		keys = append(keys, name)
	}
	slices.Sort(keys)
	for _, name := range keys {
		value := all[name]
		if name == "stop" {
			var stops []string
			if err := json.Unmarshal(value, &stops); err != nil {
				return nil, fmt.Errorf("stop: %w", err)
			}
			stops = slices.DeleteFunc(stops, func(s string) bool { return s == "" })
			f.Set(KeyStop, gguf.ArrayOf(stops))
			continue
		}
		if slices.Contains(idle, name) {
			continue
		}
		var x float64
		if err := json.Unmarshal(value, &x); err != nil {
			notes = append(notes, fmt.Sprintf("the parameter %.40q is %.40s; it must be a number", name, value))
			continue
		}
		key, known := map[string]string{"num_ctx": KeyContext, "num_predict": KeyMaxTokens, "seed": KeySeed}[name]
		switch {
		case known && x != math.Trunc(x), known && math.Abs(x) > math.MaxInt32:
			notes = append(notes, fmt.Sprintf("the parameter %.40q is %.40s; it must be a whole number of 32 bits", name, value))
		case known:
			if x > 0 || name == "seed" && x == 0 { // -1 and -2 of num_predict: no bound; -1 of seed: one is drawn
				f.Set(key, gguf.Of(uint32(x)))
			}
		case names[name] != "":
			f.Set("general.sampling."+names[name], gguf.Of(float32(x)))
		default:
			notes = append(notes, fmt.Sprintf("the parameter %.40q is not known", name))
		}
	}
	return notes, nil
}
