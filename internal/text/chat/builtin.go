package chat

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed builtin/*.jinja
var builtinFiles embed.FS

// family is a template for models whose files have none.
type family struct {
	name  string
	marks []string // control tokens that show the family; nil: the family must be named
}

var families = []family{
	{"chatml", []string{"<|im_start|>", "<|im_end|>"}},
	{"llama3", []string{"<|start_header_id|>", "<|eot_id|>"}},
	{"gemma", []string{"<start_of_turn>", "<end_of_turn>"}},
	{"granite", []string{"<|start_of_role|>", "<|end_of_role|>"}},
	{"phi3", []string{"<|user|>", "<|assistant|>", "<|end|>"}},
	{"deepseek", []string{"<｜User｜>", "<｜Assistant｜>"}},
	{"mistral", []string{"[INST]", "[/INST]"}},
	{"llama2", nil},
}

// Builtin returns the names of the templates of this package.
func Builtin() (names []string) {
	for _, f := range families {
		names = append(names, f.name)
	}
	return names
}

// NewBuiltin returns a template of this package by its name.
func NewBuiltin(name string, tokens Tokens) (*Template, error) {
	source, err := builtinFiles.ReadFile("builtin/" + name + ".jinja")
	if err != nil {
		return nil, fmt.Errorf("chat: template %.40q: not known; use one of %s", name, strings.Join(Builtin(), ", "))
	}
	return New(name, string(source), tokens)
}
