package tokenizer

import (
	"log/slog"
	"strings"
	"sync/atomic"

	"grove/internal/text/tokenizer/pretoken"
	"grove/internal/weights/gguf"
)

// assumed is the pre-tokenizer that [Assume] was told; nil: none.
var assumed atomic.Pointer[string]

// Assume names the pre-tokenizer of byte-level GGUF files that name none (tokenizer.ggml.pre), for the process: files from before May 2024. Without it they
// have llama.cpp's default, and a warning is logged. Errors: a name that is not known.
func Assume(name string) error {
	_, err := pretoken.Find(name)
	if err == nil {
		assumed.Store(&name)
	}
	return err
}

// preOf returns the pre-tokenizer of a byte-level file that names none.
func preOf(f *gguf.File) string {
	if name := assumed.Load(); name != nil {
		return *name
	}
	slog.Warn("the file names no pre-tokenizer (tokenizer.ggml.pre): texts are cut by llama.cpp's default, which may be another way than the model has learned; --pre-tokenizer names the right one, such as llama-bpe or qwen2",
		"file", strings.Join(f.Paths(), " "))
	return "default"
}
