package main

import (
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// makeAdapter is the script command adapter: it writes a random adapter of a model.
func makeAdapter(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: adapter model seed file")
	}
	base, err := openCraft(args[0])
	ts.Check(err)
	defer base.Close()
	seed, err := strconv.ParseUint(args[1], 10, 64)
	ts.Check(err)
	picks := func(name string) bool { return strings.Contains(name, "attn_q") || strings.Contains(name, "ffn_down") }
	metadata, tensors, err := synthetic.Adapter(base, seed, 8, tensor.F16, picks, nil)
	ts.Check(err)
	ts.Check(gguf.WriteFile(ts.MkAbs(args[2]), metadata, tensors))
}
