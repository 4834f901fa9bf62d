package hf

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"grove/text/tokenizer"
	"grove/weights/gguf"
)

// vocabulary adds the tokenizer, the ids that end a text and the chat template.
func (b *builder) vocabulary() {
	if !b.ok() {
		return
	}
	b.setCount(".vocab_size", b.vocab)
	text, err := readFile(filepath.Join(b.dir, "tokenizer.json"))
	if errors.Is(err, os.ErrNotExist) {
		if _, old := os.Stat(filepath.Join(b.dir, "tokenizer.model")); old == nil {
			b.fail("tokenizer.model alone is not supported; tokenizer.json is needed")
			return
		}
	}
	if err != nil {
		b.err = err
		return
	}
	const namesFile = "tokenizer_config.json"
	names, err := readFile(filepath.Join(b.dir, namesFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		b.err = err
		return
	}
	keys, err := tokenizer.MetadataFromJSON(text, names, b.vocab)
	if err != nil {
		b.fail("%w", explained(err))
		return
	}
	b.metadata = append(b.metadata, keys...)
	b.textEnds(keys)
	b.chatTemplate(filepath.Join(b.dir, namesFile), names != nil)
}

// optionalConfig reads a file of settings that may be missing; then it is empty.
func (b *builder) optionalConfig(path string) *config {
	c, err := readConfig(path)
	if err != nil {
		if b.err == nil && !errors.Is(err, os.ErrNotExist) {
			b.err = err
		}
		c = &config{path: path + ": "}
	}
	c.err = b.config.err
	return c
}

// textEnds adds the ids that generation_config.json or config.json name and keys lack: the token that
// begins a text, the one that ends it, and up to two more that end it too.
func (b *builder) textEnds(keys []gguf.KV) {
	const prefix = "tokenizer.ggml."
	named := map[string]int{}
	for _, kv := range keys {
		if id, ok := kv.Value.Any().(uint32); ok {
			named[kv.Key] = int(id)
		}
	}
	generation := b.optionalConfig(filepath.Join(b.dir, generationName))
	places := []string{prefix + "eos_token_id", prefix + "eot_token_id", prefix + "eom_token_id"}
	var taken []int
	if id, ok := named[places[0]]; ok {
		taken, places = append(taken, id), places[1:]
	}
	for _, id := range b.tokenIDs(generation, "eos_token_id") {
		switch {
		case slices.Contains(taken, id):
		case len(places) == 0:
			generation.fail("eos_token_id, or that of %s, names more than three tokens, which GGUF cannot", configName)
		default:
			b.setCount(places[0], id)
			taken, places = append(taken, id), places[1:]
		}
	}
	if _, ok := named[prefix+"bos_token_id"]; ok {
		return
	}
	if ids := b.tokenIDs(generation, "bos_token_id"); len(ids) > 0 {
		b.setCount(prefix+"bos_token_id", ids[0])
	}
}

// tokenIDs returns the ids that a key of c names, or else of config.json: one, or a list.
func (b *builder) tokenIDs(c *config, key string) []int {
	if !c.has(key) {
		c = b.config
	}
	if !c.has(key) {
		return nil
	}
	var ids []int
	if c.values[key][0] == '[' {
		c.value(key, &ids, "an id or a list of ids")
	} else {
		ids = []int{c.count(key, 0, b.vocab-1)}
	}
	for _, id := range ids {
		if id < 0 || id >= b.vocab {
			c.fail("%s names token %d; the model has %d", key, id, b.vocab)
		}
	}
	return ids
}

// chatTemplate adds the template of a file of its own, or those of tokenizer_config.json: one, or several
// by name.
func (b *builder) chatTemplate(namesPath string, named bool) {
	const key = "tokenizer.chat_template"
	text, err := readFile(filepath.Join(b.dir, "chat_template.jinja"))
	switch {
	case err == nil:
		set(b, key, string(text))
		return
	case !errors.Is(err, os.ErrNotExist):
		b.err = err
		return
	case !named:
		return
	}
	c := b.optionalConfig(namesPath)
	if !c.has("chat_template") {
		return
	}
	if c.values["chat_template"][0] == '"' {
		set(b, key, c.textOr("chat_template", ""))
		return
	}
	var list []struct{ Name, Template string }
	c.value("chat_template", &list, "a text or a list of names and templates")
	var others []string
	for _, t := range list {
		switch {
		case t.Name == "default":
			set(b, key, t.Template)
		case slices.Contains(others, t.Name) || t.Name == "":
			c.fail("chat_template: the name %.40q is empty or there twice", t.Name)
		default:
			others = append(others, t.Name)
			set(b, key+"."+t.Name, t.Template)
		}
	}
	if len(others) > 0 {
		b.setValue("tokenizer.chat_templates", gguf.ArrayOf(others))
	}
}
