package hf

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"grove/internal/text/tokenizer"
	"grove/internal/weights/gguf"
)

// Vocabulary adds the tokenizer, the ids that end a text and the chat template.
func (b *FolderBuilder) Vocabulary() {
	if !b.OK() {
		return
	}
	b.SetCount(".vocab_size", b.Vocab)
	text, err := ReadFile(filepath.Join(b.Dir, "tokenizer.json"))
	if errors.Is(err, os.ErrNotExist) {
		if _, old := os.Stat(filepath.Join(b.Dir, "tokenizer.model")); old == nil {
			b.Fail("tokenizer.model alone is not supported; tokenizer.json is needed")
			return
		}
	}
	if err != nil {
		b.Err = err
		return
	}
	const namesFile = "tokenizer_config.json"
	names, err := ReadFile(filepath.Join(b.Dir, namesFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		b.Err = err
		return
	}
	keys, err := tokenizer.MetadataFromJSON(text, names, b.Vocab)
	if err != nil {
		b.Fail("%w", Explained(err))
		return
	}
	b.Metadata = append(b.Metadata, keys...)
	b.TextEnds(keys)
	b.ChatTemplate(filepath.Join(b.Dir, namesFile), names != nil)
}

// OptionalConfig reads a file of settings that may be missing; then it is empty.
func (b *FolderBuilder) OptionalConfig(path string) *FolderConfig {
	c, err := ReadConfig(path)
	if err != nil {
		if b.Err == nil && !errors.Is(err, os.ErrNotExist) {
			b.Err = err
		}
		c = &FolderConfig{Path: path + ": "}
	}
	c.Err = b.Config.Err
	return c
}

// TextEnds adds the ids that generation_config.json or config.json name and keys lack: the token that
// begins a text, the one that ends it, and up to two more that end it too.
func (b *FolderBuilder) TextEnds(keys []gguf.KV) {
	const prefix = "tokenizer.ggml."
	named := map[string]int{}
	for _, kv := range keys {
		if id, ok := kv.Value.Any().(uint32); ok {
			named[kv.Key] = int(id)
		}
	}
	generation := b.OptionalConfig(filepath.Join(b.Dir, GenerationName))
	places := []string{prefix + "eos_token_id", prefix + "eot_token_id", prefix + "eom_token_id"}
	var taken []int
	if id, ok := named[places[0]]; ok {
		taken, places = append(taken, id), places[1:]
	}
	for _, id := range b.TokenIDs(generation, "eos_token_id") {
		switch {
		case slices.Contains(taken, id):
		case len(places) == 0:
			generation.Fail("eos_token_id, or that of %s, names more than three tokens, which GGUF cannot", ConfigName)
		default:
			b.SetCount(places[0], id)
			taken, places = append(taken, id), places[1:]
		}
	}
	if _, ok := named[prefix+"bos_token_id"]; ok {
		return
	}
	if ids := b.TokenIDs(generation, "bos_token_id"); len(ids) > 0 {
		b.SetCount(prefix+"bos_token_id", ids[0])
	}
}

// TokenIDs returns the ids that a key of c names, or else of config.json: one, or a list.
func (b *FolderBuilder) TokenIDs(c *FolderConfig, key string) []int {
	if !c.Has(key) {
		c = b.Config
	}
	if !c.Has(key) {
		return nil
	}
	var ids []int
	if c.Values[key][0] == '[' {
		c.Value(key, &ids, "an id or a list of ids")
	} else {
		ids = []int{c.Count(key, 0, b.Vocab-1)}
	}
	for _, id := range ids {
		if id < 0 || id >= b.Vocab {
			c.Fail("%s names token %d; the model has %d", key, id, b.Vocab)
		}
	}
	return ids
}

// ChatTemplate adds the template of a file of its own, else those of tokenizer_config.json, one or several by name, else that of a processor, and
// the further ones of additional_chat_templates.
func (b *FolderBuilder) ChatTemplate(namesPath string, named bool) {
	text, err := ReadFile(filepath.Join(b.Dir, "chat_template.jinja"))
	switch {
	case err == nil:
		FolderSet(b, templateKey, string(text))
	case !errors.Is(err, os.ErrNotExist):
		b.Err = err
		return
	case !named || !b.namedTemplates(namesPath):
		if c := b.OptionalConfig(filepath.Join(b.Dir, "chat_template.json")); c.Has("chat_template") {
			FolderSet(b, templateKey, c.TextOr("chat_template", ""))
		}
	}
	b.additionalTemplates()
}

// templateKey is the key of the template; names of further ones stand behind it.
const templateKey = "tokenizer.chat_template"

// mostTemplates is the most files of additional_chat_templates that are read.
const mostTemplates = 64

// additionalTemplates adds the templates of a folder of them, by the names of their files.
func (b *FolderBuilder) additionalTemplates() {
	const suffix = ".jinja"
	dir := filepath.Join(b.Dir, "additional_chat_templates")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // there is none
	}
	var others []string
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), suffix)
		if !ok || name == "" || len(others) == mostTemplates {
			continue
		}
		text, err := ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			b.Err = err
			return
		}
		if slices.ContainsFunc(b.Metadata, func(kv gguf.KV) bool { return kv.Key == templateKey+"."+name }) {
			b.Fail("additional_chat_templates: tokenizer_config.json has a template %.40q too", name)
			return
		}
		others = append(others, name)
		FolderSet(b, templateKey+"."+name, string(text))
	}
	if i := slices.IndexFunc(b.Metadata, func(kv gguf.KV) bool { return kv.Key == templateNames }); i >= 0 && len(others) > 0 {
		earlier, _ := b.Metadata[i].Value.Any().([]string)
		b.Metadata[i].Value = gguf.ArrayOf(append(slices.Clone(earlier), others...))
	} else if len(others) > 0 {
		b.SetValue(templateNames, gguf.ArrayOf(others))
	}
}

// templateNames is the key of the names of further templates.
const templateNames = "tokenizer.chat_templates"

// namedTemplates adds the templates of tokenizer_config.json, and reports whether it has any.
func (b *FolderBuilder) namedTemplates(namesPath string) bool {
	c := b.OptionalConfig(namesPath)
	if !c.Has("chat_template") {
		return false
	}
	if c.Values["chat_template"][0] == '"' {
		FolderSet(b, templateKey, c.TextOr("chat_template", ""))
		return true
	}
	var list []struct{ Name, Template string }
	c.Value("chat_template", &list, "a text or a list of names and templates")
	var others []string
	for _, t := range list {
		switch {
		case t.Name == "default":
			FolderSet(b, templateKey, t.Template)
		case slices.Contains(others, t.Name) || t.Name == "":
			c.Fail("chat_template: the name %.40q is empty or there twice", t.Name)
		default:
			others = append(others, t.Name)
			FolderSet(b, templateKey+"."+t.Name, t.Template)
		}
	}
	if len(others) > 0 {
		b.SetValue(templateNames, gguf.ArrayOf(others))
	}
	return true
}
