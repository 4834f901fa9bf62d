package main

import (
	"context"
	"errors"

	"grove"
	"grove/internal/command/flags"
	"grove/lab/scan"
)

// scanCommand is the command that looks for texts that a model has learnt by heart.
type scanCommand struct {
	flags.Named
	flags.Context
	flags.Cache
	flags.Threads
	flags.Repack
	flags.Adapters
	flags.Parallel  `set:"parallel=32"`
	flags.MaxTokens `set:"tokens=200"`
	flags.JSON

	Begin      string      `placeholder:"TEXT" help:"Text before the forced token, special tokens included; without it, the token that begins a text."`
	RankBy     flags.Count `name:"rank-by" default:"3" placeholder:"N" help:"Likeliest tokens behind each forced one, by whose probabilities it is ranked. Default: ${default}."`
	Candidates flags.Count `default:"20" placeholder:"N" help:"Tokens with the highest scores that are taken further and shown. Default: ${default}."`
}

// Run implements the command.
func (c *scanCommand) Run() (err error) {
	adapters, err := c.Adapters.Files(false)
	if err != nil {
		return err
	}
	o := grove.Options{Adapters: adapters, Context: int(c.Context.N), CacheType: string(c.Cache.Type), Threads: int(c.Threads.N), NoRepack: c.Repack.Off, Parallel: int(c.Parallel.N), Forget: true}
	m, err := c.Open(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	return c.Report("text", func(ctx context.Context, show func(done, all int)) (flags.Report, error) {
		return scan.Run(ctx, m, scan.Options{
			Begin: c.Begin, RankBy: int(c.RankBy), Candidates: int(c.Candidates), MaxTokens: c.MaxTokens.Limit(), Progress: show,
		})
	})
}
