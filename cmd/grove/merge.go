package main

import (
	"errors"
	"slices"

	"grove"
	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/internal/command/terminal"
	"grove/internal/par"
	"grove/internal/weights/gguf"
	"grove/internal/weights/lora"
	"grove/internal/weights/quantize"
)

// mergeCommand writes a model with what adapters add to it.
type mergeCommand struct {
	flags.Threads
	flags.Out

	Base     string   `arg:"" complete:"MODEL" help:"Model, as -m of other commands takes it."`
	Adapters []string `arg:"" optional:"" name:"adapter" placeholder:"ADAPTER[=SCALE]" help:"LoRA adapter of the model, a GGUF file or a folder of PEFT, and how much of it; without SCALE, 1. A model of ollama's that has an adapter of its own needs no other."`
}

// Run implements the command.
func (c *mergeCommand) Run() error {
	if c.Out.File == "" {
		return exit.With(exit.CodeUsage, errors.New("--out is missing: a model is not written to standard output"))
	}
	files, err := flags.Adapters{Lora: c.Adapters}.Files(false)
	if err != nil {
		return err
	}
	base, err := flags.Model{Path: c.Base}.File()
	if err != nil {
		return err
	}
	if own := base.Adapters; len(own)+len(files) == 0 {
		return exit.With(exit.CodeUsage, errors.Join(errors.New("no adapter is named, and the model has none of its own"), base.Close()))
	}
	for _, path := range slices.Backward(base.Adapters) {
		files = slices.Insert(files, 0, grove.AdapterFile{Path: path, Scale: 1})
	}
	paths := base.Paths()
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	if err := terminal.CheckFile(c.Out.File, paths...); err != nil {
		return errors.Join(err, base.Close())
	}
	pool := par.New(min(par.Threads(), maxThreads))
	defer pool.Close()
	f, err := merge(base, files, pool)
	base.Adapters = nil
	if err != nil {
		return exit.File(errors.Join(err, base.Close()))
	}
	return rewrite(f, c.Out.File, quantize.Keep, true, c.Threads.N)
}

// merge presents a model with adapters merged into it.
func merge(base *gguf.File, files []grove.AdapterFile, pool *par.Pool) (f *gguf.File, err error) {
	var all []*lora.Adapter
	var scales []float64
	for _, file := range files {
		var a *lora.Adapter
		if a, err = lora.Open(file.Path, base); err != nil {
			break
		}
		all, scales = append(all, a), append(scales, file.Scale)
	}
	if err == nil {
		if f, err = lora.Merge(base, all, scales, pool); err == nil {
			return f, nil
		}
	}
	for _, a := range all {
		err = errors.Join(err, a.Close())
	}
	return nil, err
}
