package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"grove"
	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/internal/command/harmless"
	"grove/internal/command/terminal"
	"grove/internal/weights/tensor"
	"grove/lab/distill/states"
)

// statesCommand is the command that writes the states that a model computes of texts.
type statesCommand struct {
	flags.Model
	flags.TextFile
	flags.Cache
	flags.Threads
	flags.Repack
	flags.Adapters
	flags.Out

	Layers    flags.States `required:"" placeholder:"LIST" help:"States that are written: numbers K and ranges, the stream behind the first K layers (0: the embeddings; last: the stream before the final norm), and final, the state behind the final norm. Example: 0,4..6,final."`
	IDs       string       `name:"ids" placeholder:"FILE" help:"File of token ids instead of texts: little-endian numbers, computed exactly as they are."`
	IDsType   string       `name:"ids-type" enum:"u16,i32" placeholder:"u16|i32" default:"u16" help:"Type of the numbers of --ids. Default: ${default}."`
	Length    flags.Count  `placeholder:"N" help:"Tokens of a text at most: what is longer is cut into texts of so many; 0: the model's own context, as memory allows."`
	MaxTokens flags.Count  `placeholder:"N" help:"Tokens that are computed at most, of all texts together; 0: all."`
	Type      string       `enum:"f32,f16" placeholder:"f32|f16" default:"f32" help:"Type of the values that are written. Default: ${default}."`

	Files []string `arg:"" optional:"" name:"file" help:"Files of text, each a text of its own; without them, --file."`
}

// Run implements the command.
func (c *statesCommand) Run() (err error) {
	if c.Out.File == "" {
		return exit.With(exit.CodeUsage, errors.New("--out is missing: states are not written to standard output"))
	}
	texts, err := c.texts()
	if err != nil {
		return err
	}
	adapters, err := c.Adapters.Files(false)
	if err != nil {
		return err
	}
	if err := c.Out.Check(append([]string{c.IDs, c.TextFile.File}, c.Files...)...); err != nil {
		return err
	}
	if info, err := os.Stat(c.Out.File); err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
		return exit.Output(fmt.Errorf("write %s: it is a pipe; states need a file that is written at any place", c.Out.File))
	}
	m, err := c.Open(grove.Options{Adapters: adapters, Context: int(c.Length), CacheType: string(c.Cache.Type), Threads: int(c.Threads.N), NoRepack: c.Repack.Off, Parallel: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	if err := c.Out.Check(m.Files()...); err != nil {
		return err
	}
	o := states.Options{Texts: texts, IDs: c.IDs, Length: int(c.Length), MaxTokens: int(c.MaxTokens)}
	o.Type, o.Bytes = map[string]tensor.Type{"f32": tensor.F32, "f16": tensor.F16}[c.Type], map[string]int{"u16": 2, "i32": 4}[c.IDsType]
	if o.States.Layers, o.States.Final, err = c.Layers.Of(m.Info().Layers); err != nil {
		return exit.With(exit.CodeUsage, fmt.Errorf("--layers: %w", err))
	}
	return c.write(m, o)
}

// write writes the file.
func (c *statesCommand) write(m *grove.Model, o states.Options) error {
	ctx, stop := terminal.UntilSignal()
	defer stop()
	bar := terminal.Tokens("computing")
	defer bar.End()
	o.Progress = bar.Show
	o.Metadata = map[string]string{"command": "lab " + strings.Join(os.Args[1:], " "), "layers": c.Layers.String(), "cache_type": string(c.Cache.Type)}
	n, tokens := 0, 0
	err := terminal.WriteFileAt(c.Out.File, func(to io.WriterAt) (err error) {
		n, tokens, err = states.Write(ctx, m, o, to)
		return err
	})
	switch bar.End(); {
	case err != nil && ctx.Err() == nil && exit.Code(err) != exit.CodeOutput:
		return exit.File(err)
	case err != nil:
		return exit.Cause(ctx, err)
	}
	fmt.Fprintf(os.Stderr, "grove: %s: %d texts, %d tokens\n", harmless.Line(c.Out.File), n, tokens)
	return nil
}

// texts returns the texts that the flags and arguments name.
func (c *statesCommand) texts() (states.Texts, error) {
	switch given := c.TextFile.File != ""; {
	case c.IDs != "" && (given || len(c.Files) > 0):
		return nil, exit.With(exit.CodeUsage, errors.New("the texts are given twice: leave out --ids, or --file and the arguments"))
	case given && len(c.Files) > 0:
		return nil, exit.With(exit.CodeUsage, errors.New("the texts are given twice: leave out --file or the arguments"))
	case c.IDs == "" && len(c.Files) == 0:
		text, err := c.TextFile.Read("the text")
		return func(do func(name, text string) error) error { return do("the text", text) }, err
	}
	return func(do func(name, text string) error) error {
		for _, path := range c.Files {
			text, err := flags.ReadText(path)
			if err == nil {
				err = do(path, text)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}, nil
}
