package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"grove"
	"grove/bench"
)

// perplexityCommand measures how well a model predicts a text.
type perplexityCommand struct {
	modelFlag

	File          string    `short:"f" placeholder:"FILE" help:"Text to predict; without it, standard input."`
	Context       count     `short:"c" placeholder:"N" help:"Tokens of a chunk, the second half of which is scored; 0: 512, or the model's own where that is less."`
	Chunks        count     `placeholder:"N" help:"Chunks at most; 0: all of the text."`
	KL            string    `name:"kl" placeholder:"MODEL" help:"Model to compare with, token by token; it must have the same vocabulary."`
	CacheType     cacheType `placeholder:"TYPE" default:"f16" var:"GROVE_CACHE_TYPE" help:"Type of cached keys and values: f32, f16 or q8_0. Default: ${default}."`
	BaseCacheType cacheType `placeholder:"TYPE" help:"The same for the model compared with, which is MODEL itself without --kl. Default: as --cache-type."`
	Threads       count     `short:"t" placeholder:"N" var:"GROVE_THREADS" help:"Threads; 0: one for each core that may be used."`
	NoRepack      bool      `var:"GROVE_NO_REPACK" help:"Read weights where the file has them."`
	JSON          bool      `name:"json" var:"GROVE_JSON" help:"One JSON object instead of text."`
}

// Run implements the command.
func (c *perplexityCommand) Run() (err error) {
	text, err := c.text()
	if err != nil {
		return err
	}
	m, err := c.openModel(c.modelFlag, c.CacheType)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	o := bench.PerplexityOptions{Context: int(c.Context), Chunks: int(c.Chunks)}
	baseName := ""
	if c.KL != "" || c.BaseCacheType != "" {
		if o.Base, baseName, err = c.openBase(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, o.Base.Close()) }()
	}
	ctx, stop := untilSignal()
	defer stop()
	s := steps{what: "chunk"}
	r, err := m.Perplexity(ctx, text, o, s.show)
	s.end()
	if err != nil {
		return cause(ctx, err)
	}
	if c.JSON {
		return r.WriteJSON(stdout)
	}
	return r.WriteText(stdout, baseName)
}

// text returns the text to predict.
func (c *perplexityCommand) text() (string, error) {
	if c.File == "" {
		return readInput("the text")
	}
	b, err := os.ReadFile(c.File)
	return string(b), err
}

func (c *perplexityCommand) openModel(f modelFlag, t cacheType) (*bench.Model, error) {
	cache, err := grove.ParseCacheType(string(t))
	if err != nil {
		return nil, err
	}
	m, err := f.openBench(bench.Options{
		Threads: int(c.Threads), CacheType: cache, Context: int(c.Context), NoRepack: c.NoRepack,
	})
	return m, asFileError(err)
}

// openBase opens the model to compare with, and names it.
func (c *perplexityCommand) openBase() (m *bench.Model, name string, err error) {
	t := c.BaseCacheType
	if t == "" {
		t = c.CacheType
	}
	base := c.modelFlag
	if c.KL != "" {
		base = modelFlag{c.KL}
	}
	if m, err = c.openModel(base, t); err != nil {
		return nil, "", fmt.Errorf("the model to compare with: %w", err)
	}
	return m, fmt.Sprintf("%s with a cache of %s", filepath.Base(m.Path), t), nil
}
