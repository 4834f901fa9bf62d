// Command _recommend writes into GGUF files of the gophers how their tokens are to be drawn, as export.py does for new ones:
//
//	go run ./lab/train/recommend gopher/gopher-*.q8_0.gguf
//
// It leaves tensors and other keys as they are. The values are those of a folder's generation_config.json.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"grove/internal/weights/gguf"
	"grove/internal/weights/hf"
)

const prefix = "general.sampling."

func main() {
	folder := flag.String("from", "internal/gopher/testdata/gopher-nano", "folder of Hugging Face with the generation_config.json")
	flag.Parse()
	if err := run(*folder, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "_recommend:", err)
		os.Exit(1)
	}
}

func run(folder string, paths []string) error {
	source, err := hf.Open(folder)
	if err != nil {
		return err
	}
	defer source.Close()
	var keys []gguf.KV
	for _, kv := range source.Metadata {
		if strings.HasPrefix(kv.Key, prefix) {
			keys = append(keys, kv)
		}
	}
	for _, path := range paths {
		if err := write(path, keys); err != nil {
			return err
		}
	}
	return nil
}

// write writes a file anew, with keys before its description.
func write(path string, keys []gguf.KV) error {
	data, err := os.ReadFile(path) // not mapped: the file is replaced
	if err != nil {
		return err
	}
	f, err := gguf.Parse(data)
	if err != nil {
		return err
	}
	metadata := slices.DeleteFunc(slices.Clone(f.Metadata), func(kv gguf.KV) bool { return strings.HasPrefix(kv.Key, prefix) })
	at := slices.IndexFunc(metadata, func(kv gguf.KV) bool { return kv.Key == "general.description" })
	if at < 0 {
		return fmt.Errorf("%s has no general.description", path)
	}
	return gguf.WriteFile(path, slices.Insert(metadata, at, keys...), f.Tensors)
}
