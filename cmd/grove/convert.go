package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"grove"
	"grove/internal/atomicfile"
	"grove/internal/mmap"
	"grove/internal/par"
	"grove/weights/gguf"
	"grove/weights/hf"
	"grove/weights/quantize"
)

// mixName is the name of a mix of types.
type mixName string

// Validate asks the library.
func (n mixName) Validate() error { return quantize.Known(string(n)) }

// convertCommand writes a folder of Hugging Face as one GGUF file.
type convertCommand struct {
	Type    mixName `placeholder:"TYPE" default:"auto" help:"Type of the weights: auto (as they are), F32, F16, BF16, Q8_0, or another of those of quantize. Default: ${default}."`
	Threads count   `short:"t" placeholder:"N" help:"Threads; 0: one for each core that may be used."`

	Folder string `arg:"" help:"Folder with config.json, safetensors files and tokenizer.json."`
	Out    string `arg:"" help:"GGUF file to write."`
}

// Run implements the command.
func (c *convertCommand) Run() error {
	f, err := hf.Open(c.Folder)
	if err != nil {
		return fileError{err}
	}
	return rewrite(f, c.Out, c.Type, false, c.Threads)
}

// quantizeCommand writes a model in other types.
type quantizeCommand struct {
	AllowRequantize bool  `help:"Quantise weights that are quantised already, which loses more than once."`
	Threads         count `short:"t" placeholder:"N" help:"Threads; 0: one for each core that may be used."`

	In   string  `arg:"" help:"GGUF file, or folder as for convert."`
	Out  string  `arg:"" help:"GGUF file to write."`
	Type mixName `arg:"" help:"Type of the weights: F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K, Q3_K_S, Q3_K_M, Q3_K_L, Q4_K_S, Q4_K_M, Q5_K_S, Q5_K_M, Q6_K, IQ4_NL, IQ4_XS or MXFP4_MOE."`
}

// Run implements the command.
func (c *quantizeCommand) Run() error {
	f, err := hf.OpenModel(c.In)
	if err != nil {
		return fileError{err}
	}
	return rewrite(f, c.Out, c.Type, c.AllowRequantize, c.Threads)
}

// maxThreads is more than a job of this kind can use.
const maxThreads = 1024

// rewrite writes a model's file, which it closes, under another name.
func rewrite(f *gguf.File, path string, mix mixName, again bool, threads count) (err error) {
	defer func() { err = errors.Join(err, f.Close()) }()
	if threads > maxThreads {
		return &grove.OptionError{Err: fmt.Errorf("%d threads; at most %d", threads, maxThreads)}
	}
	job, err := quantize.New(f, string(mix), again)
	if err != nil {
		return fileError{err}
	}
	if threads == 0 {
		threads = count(par.Threads())
	}
	pool := par.New(int(threads))
	defer pool.Close()
	ctx, stop := untilSignal()
	defer stop()
	bar := newProgress("writing", job.Size(), true)
	err = write(ctx, path, job, pool, bar.set)
	bar.end()
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err == nil {
		fmt.Fprintf(os.Stderr, "grove: %s: %d tensors, %.1f MB from %.1f MB\n", path, len(job.Tensors()), float64(info.Size())/1e6, float64(f.Size())/1e6)
	}
	return asOutputError(err)
}

// write does the job. What goes wrong is a fault of the model, unless it is one of the new file.
func write(ctx context.Context, path string, job *quantize.Job, pool *par.Pool, report func(int64)) error {
	var fault error
	err := atomicfile.Write(path, func(w io.Writer) error {
		fault = mmap.Catch(func() error { return job.Write(ctx, outputTo{w}, pool, report) })
		return fault
	})
	var output outputError
	switch {
	case ctx.Err() != nil && err != nil:
		return context.Cause(ctx)
	case fault != nil && !errors.As(fault, &output):
		return asFileError(fault)
	case errors.As(err, &output):
		return err
	}
	return asOutputError(err)
}

// outputTo marks the errors of a writer as outputErrors.
type outputTo struct{ io.Writer }

// Write implements [io.Writer].
func (o outputTo) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	return n, asOutputError(err)
}
