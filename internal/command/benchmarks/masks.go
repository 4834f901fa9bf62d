package benchmarks

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"grove"
	"grove/bench"
	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/internal/text/tokenizer"
	"grove/internal/weights/gguf"
)

// masksCommand measures the masks of schemas. It needs no tensors.
type masksCommand struct {
	flags.Model
	flags.JSON
	flags.MemberOrder `set:"order=free"`

	Against   string `placeholder:"PEER" enum:",llama.cpp" default:"" help:"Another engine to measure on the same schemas: llama.cpp, by its package for Node."`
	Package   string `placeholder:"DIR" help:"With --against: the folder in which node-llama-cpp was installed; without it, those of NODE_PATH, and the current one."`
	Converter string `placeholder:"FILE" help:"With --against: a program that reads a schema from its standard input and writes llama.cpp's grammar; without it, what node-llama-cpp makes of schemas."`
	File      string `arg:"" help:"Schemas in the layout of MaskBench, one JSON object a line with name, schema and tests; compressed by gzip or not."`
}

// Run implements the command.
func (c *masksCommand) Run() error {
	if c.Against == "" && (c.Package != "" || c.Converter != "") {
		return exit.With(exit.CodeUsage, errors.New("--package and --converter need --against llama.cpp"))
	}
	in, err := os.Open(c.File)
	if err != nil {
		return exit.File(err)
	}
	schemas, err := bench.ReadMaskSchemas(in)
	if err := errors.Join(err, in.Close()); err != nil {
		return exit.File(err)
	}
	t, f, err := c.Model.Tokenizer()
	if err != nil {
		return err
	}
	defer f.Close()
	m, err := grove.NewMaskMeter(t)
	if err != nil {
		return err
	}
	return c.Report("schemas", func(ctx context.Context, show func(done, all int)) (flags.Report, error) {
		o := bench.MaskOptions{FreeOrder: c.Order == "free"}
		if c.Against != "" {
			if o.Peer, err = c.openPeer(ctx, f, t); err != nil {
				return nil, err
			}
			defer o.Peer.Close()
		}
		return bench.Masks(ctx, m, schemas, o, show)
	})
}

// openPeer starts llama.cpp with the model's vocabulary.
func (c *masksCommand) openPeer(ctx context.Context, f *gguf.File, t *tokenizer.Tokenizer) (*bench.MaskPeer, error) {
	paths := f.Paths()
	if len(paths) == 0 {
		return nil, exit.With(exit.CodeUsage, errors.New("--against needs a GGUF file that llama.cpp can open too: -m FILE"))
	}
	folders := []string{c.Package}
	if c.Package == "" {
		folders = append(filepath.SplitList(os.Getenv("NODE_PATH")), ".")
	}
	dir, err := bench.FindMaskPeer(folders)
	if err != nil {
		return nil, exit.With(exit.CodeUsage, err)
	}
	return bench.OpenMaskPeer(ctx, bench.MaskPeerOptions{Package: dir, Vocabulary: paths[0], Tokenizer: t, Converter: c.Converter})
}
