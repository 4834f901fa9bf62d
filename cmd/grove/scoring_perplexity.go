// scoring_perplexity.go has the commands that tell how likely texts are to a model.

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"grove"
	"grove/bench"
	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/search/programs"
)

// Perplexity is the command that measures how well a model predicts a text.
type Perplexity struct {
	flags.Named
	flags.Context `set:"context=512, or the model's own where that is less"`
	flags.Cache
	flags.Threads
	flags.Repack
	flags.JSON
	flags.TextFile
	flags.Chunks

	Units         float64         `placeholder:"P" help:"Also find lexical units: runs of tokens that are each predicted with a probability above P, such as 0.9; 0: do not."`
	Pauses        bool            `help:"Also learn, from the text, the entropy at which the search adadec pauses."`
	KL            string          `name:"kl" placeholder:"MODEL" help:"Base model to compare with, token by token; it must have the same vocabulary."`
	BaseCacheType flags.CacheName `placeholder:"TYPE" help:"Type of cached keys and values of the base model, which without --kl is the model itself. Default: as --cache-type."`
}

// Run implements the command.
func (c *Perplexity) Run() (err error) {
	text, err := c.Read("the text")
	if err != nil {
		return err
	}
	m, err := c.openModel(c.Model, c.Cache.Type)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	o := bench.PerplexityOptions{Context: int(c.Context.N), Chunks: int(c.Chunks.Most), Units: c.Units}
	if c.Pauses {
		o.Pauses = new(programs.AdadecLearner)
	}
	if c.KL != "" || c.BaseCacheType != "" {
		if o.Base, o.BaseName, err = c.openBase(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, o.Base.Close()) }()
	}
	return c.Report("chunk", func(ctx context.Context, show func(done, all int)) (flags.Report, error) {
		return m.Perplexity(ctx, text, o, show)
	})
}

func (c *Perplexity) openModel(f flags.Model, t flags.CacheName) (*bench.Model, error) {
	cache, err := grove.ParseCacheType(string(t))
	if err != nil {
		return nil, err
	}
	m, err := f.OpenBench(bench.Options{
		Threads: int(c.Threads.N), CacheType: cache, Context: int(c.Context.N), NoRepack: c.Repack.Off,
	})
	return m, exit.File(err)
}

// openBase opens the base model and returns its description.
func (c *Perplexity) openBase() (m *bench.Model, name string, err error) {
	t := c.BaseCacheType
	if t == "" {
		t = c.Cache.Type
	}
	base := c.Model
	if c.KL != "" {
		base = flags.Model{Path: c.KL}
	}
	if m, err = c.openModel(base, t); err != nil {
		return nil, "", fmt.Errorf("the base model: %w", err)
	}
	return m, fmt.Sprintf("%s with a cache of %s", filepath.Base(m.Path), t), nil
}
