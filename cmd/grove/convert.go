package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"grove"
	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/internal/command/harmless"
	"grove/internal/command/terminal"
	"grove/internal/mmap"
	"grove/internal/par"
	"grove/internal/weights/gguf"
	"grove/internal/weights/hf"
	"grove/internal/weights/quantize"
)

// mixName is the name of a mix: which tensor gets which type.
type mixName string

// Valid asks the library.
func (n mixName) Valid() error { return quantize.Known(string(n)) }

// Values returns the names, for completion.
func (n mixName) Values() []string { return quantize.Names() }

// convertCommand writes a folder of Hugging Face, a model or a drafting head, as one GGUF file.
type convertCommand struct {
	flags.Threads
	HeadfileFlags

	Type mixName `placeholder:"TYPE" default:"auto" help:"Type of the weights: auto (as they are), F32, F16, BF16, Q8_0, or another type of quantize. Default: ${default}."`

	Folder string `arg:"" help:"Folder with config.json, safetensors files and, of a model, tokenizer.json."`
	Out    string `arg:"" help:"GGUF file to write."`
}

// Run implements the command.
func (c *convertCommand) Run() error {
	f, err := c.Open(c.Folder, string(c.Type), hf.Open)
	if err != nil {
		return err
	}
	return rewrite(f, c.Out, c.Type, false, c.Threads.N)
}

// quantizeCommand writes a model in other types.
type quantizeCommand struct {
	flags.Threads

	AllowRequantize bool `var:"GROVE_ALLOW_REQUANTIZE" help:"Quantize weights that are quantized already, which loses precision twice."`

	In   string  `arg:"" help:"GGUF file, folder as for convert, or a name that 'grove models' lists."`
	Out  string  `arg:"" help:"GGUF file to write."`
	Type mixName `arg:"" help:"Type of the weights: F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K, Q3_K_S, Q3_K_M, Q3_K_L, Q4_K_S, Q4_K_M, Q5_K_S, Q5_K_M, Q6_K, IQ4_NL, IQ4_XS or MXFP4_MOE."`
}

// Run implements the command.
func (c *quantizeCommand) Run() error {
	f, err := c.open()
	if err != nil {
		return exit.File(err)
	}
	return rewrite(f, c.Out, c.Type, c.AllowRequantize, c.Threads.N)
}

// open opens the model: a path, or a name as other commands have them.
func (c *quantizeCommand) open() (*gguf.File, error) {
	if _, err := os.Stat(c.In); err == nil {
		return hf.OpenModel(c.In)
	}
	path, err := flags.Find(c.In)
	if err != nil {
		return nil, err
	}
	return grove.OpenFile(path)
}

// maxThreads is the largest number of threads that a conversion takes.
const maxThreads = 1024

// rewrite writes the tensors of a file in other types to a new file, and closes the first.
func rewrite(f *gguf.File, path string, mix mixName, again bool, threads flags.Count) (err error) {
	defer func() { err = errors.Join(err, f.Close()) }()
	if threads > maxThreads {
		return &grove.OptionError{Err: fmt.Errorf("--threads: %d; it must be from 0 to %d", threads, maxThreads)}
	}
	if err := terminal.CheckFile(path, f.Paths()...); err != nil {
		return err
	}
	if len(f.Adapters) > 0 {
		return exit.With(exit.CodeUsage, errors.New("the model has an adapter of its own, a layer of ollama's manifest, which would be lost; grove merge makes one file of both"))
	}
	job, err := quantize.New(f, string(mix), again)
	switch {
	case errors.Is(err, quantize.ErrQuantized):
		return exit.With(exit.CodeUsage, err)
	case err != nil:
		return exit.File(err)
	}
	if threads == 0 {
		threads = flags.Count(par.Threads())
	}
	pool := par.New(int(threads))
	defer pool.Close()
	ctx, stop := terminal.UntilSignal()
	defer stop()
	bar := terminal.Bytes("writing")
	err = write(ctx, path, job, pool, bar.ShowOf(job.Size()))
	bar.End()
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err == nil {
		fmt.Fprintf(os.Stderr, "grove: %s: %d tensors, %.1f MB from %.1f MB\n", harmless.Line(path), len(job.Tensors()), float64(info.Size())/1e6, float64(f.Size())/1e6)
	}
	return exit.Output(err)
}

// write writes the new file. An error counts as one of the model, unless it is one of the new file.
func write(ctx context.Context, path string, job *quantize.Job, pool *par.Pool, report func(int64)) error {
	err := terminal.WriteFile(path, func(w io.Writer) error {
		return mmap.Catch(func() error { return job.Write(ctx, w, pool, report) })
	})
	switch {
	case ctx.Err() != nil && err != nil:
		return context.Cause(ctx)
	case err != nil && exit.Code(err) != exit.CodeOutput:
		return exit.File(err)
	}
	return err
}
