// Command _make turns a float model into the one that package gopher embeds:
//
//	go run ./gopher/_make IN.gguf OUT.gguf
//
// Matrices become Q8_0 where their rows are whole blocks; everything else stays as it is. The same
// file gives the same bytes.
package main

import (
	"fmt"
	"os"
	"slices"

	"grove/gguf"
	"grove/quant"
	"grove/tensor"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: go run ./gopher/_make IN.gguf OUT.gguf")
		os.Exit(2)
	}
	if err := convert(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "_make:", err)
		os.Exit(1)
	}
}

func convert(in, out string) error {
	f, err := gguf.Open(in)
	if err != nil {
		return err
	}
	defer f.Close()
	tensors := make([]tensor.View, len(f.Tensors))
	for i, t := range f.Tensors {
		if tensors[i], err = pack(t); err != nil {
			return fmt.Errorf("tensor %q: %w", t.Name, err)
		}
	}
	return gguf.WriteFile(out, metadata(f), tensors)
}

// pack returns a matrix as Q8_0, and other tensors as they are.
func pack(t tensor.View) (tensor.View, error) {
	row, whole := tensor.Q8_0.RowBytes(t.Shape[len(t.Shape)-1])
	if len(t.Shape) != 2 || !whole {
		return t, nil
	}
	values := make([]float32, t.Elems())
	if err := quant.Unpack(t.Type, values, t.Data); err != nil {
		return t, err
	}
	t.Type, t.Data = tensor.Q8_0, make([]byte, row*t.Shape[0])
	return t, quant.Pack(t.Type, t.Data, values)
}

// metadata returns the keys of f, those that tell the types of tensors renewed and last.
func metadata(f *gguf.File) []gguf.KV {
	const version, fileType = "general.quantization_version", "general.file_type"
	keys := slices.DeleteFunc(slices.Clone(f.Metadata), func(kv gguf.KV) bool {
		return kv.Key == version || kv.Key == fileType
	})
	return append(keys,
		gguf.KV{Key: version, Value: gguf.Of(uint32(2))},  // of the formats of blocks: the one in use
		gguf.KV{Key: fileType, Value: gguf.Of(uint32(7))}) // mostly Q8_0
}
