package benchmarks

import (
	"context"
	"errors"

	"grove"
	"grove/bench"
	"grove/internal/command/flags"
)

// layersCommand searches which layers each token of a text needs.
type layersCommand struct {
	flags.Named
	flags.Context `set:"context=64"`
	flags.Cache
	flags.Threads
	flags.Repack
	flags.JSON
	flags.TextFile
	flags.Chunks `set:"chunks=8"`

	Least    int  `default:"1" placeholder:"N" help:"Fewest layers of a token. Default: ${default}."`
	Patterns int  `default:"64" placeholder:"N" help:"Sets of layers of one size to search for a token; all, where there are no more. Default: ${default}."`
	Own      bool `help:"Score the model's own likeliest token, not that of the text."`
}

// Run implements the command.
func (c *layersCommand) Run() (err error) {
	text, err := c.Read("the text")
	if err != nil {
		return err
	}
	cache, err := grove.ParseCacheType(string(c.Cache.Type))
	if err != nil {
		return err
	}
	size := int(c.Context.N)
	if size == 0 {
		size = defaultLayersChunk
	}
	m, err := c.OpenBench(bench.Options{Threads: int(c.Threads.N), CacheType: cache, Context: size, NoRepack: c.Repack.Off})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	return c.Report("pass", func(ctx context.Context, show func(done, all int)) (flags.Report, error) {
		o := bench.PatternOptions{Least: c.Least, Patterns: c.Patterns, Told: show}
		return m.Layers(ctx, text, bench.PerplexityOptions{Context: size, Chunks: int(c.Chunks.Most)}, bench.PatternTextOptions{PatternOptions: o, Own: c.Own})
	})
}

// defaultLayersChunk is the tokens of a chunk where none are given.
const defaultLayersChunk = 64
