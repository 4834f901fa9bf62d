package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"grove"
	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/internal/command/harmless"
	"grove/internal/command/terminal"
)

// rerankCommand ranks documents by a query.
type rerankCommand struct {
	flags.Subject `set:"text=The query, and behind it the documents; without these, each line of --file or of standard input is one."`
	flags.TextFile
	flags.Context
	flags.Threads
	flags.Repack
	flags.JSON

	Top int `name:"top-n" placeholder:"N" help:"Documents that are written, the best ones; 0: all."`
}

// ranked is a line of --json.
type ranked struct {
	Index    int     `json:"index"`
	Score    float32 `json:"score"`
	Document string  `json:"document"`
}

// Run implements the command.
func (c *rerankCommand) Run() (err error) {
	query, documents, err := c.texts()
	if err != nil {
		return err
	}
	m, err := c.Open(grove.Options{Context: int(c.Context.N), Threads: int(c.Threads.N), NoRepack: c.Repack.Off, Parallel: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	ctx, stop := terminal.UntilSignal()
	defer stop()
	all, err := m.Rerank(ctx, query, documents)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	}
	if c.Top > 0 {
		all = all[:min(c.Top, len(all))]
	}
	out := json.NewEncoder(harmless.JSON(terminal.Stdout))
	for _, r := range all {
		if c.JSON.On {
			err = out.Encode(ranked{r.Index, r.Score, documents[r.Index]})
		} else {
			_, err = fmt.Fprintf(terminal.Stdout, "%v\t%d\t%s\n", r.Score, r.Index, harmless.Line(documents[r.Index]))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// texts returns the query and the documents.
func (c *rerankCommand) texts() (query string, documents []string, err error) {
	words, err := c.Texts()
	switch {
	case err != nil:
		return "", nil, err
	case len(words) == 0:
		return "", nil, exit.With(exit.CodeUsage, errors.New("the query is missing: it stands before the documents"))
	case c.Top < 0:
		return "", nil, exit.With(exit.CodeUsage, fmt.Errorf("--top-n: %d; it must be 0 or more", c.Top))
	case len(words) > 1 && c.File != "":
		return "", nil, exit.With(exit.CodeUsage, errors.New("the documents are given twice: leave out --file or the arguments"))
	case len(words) > 1:
		return words[0], words[1:], nil
	}
	text, err := c.Read("the documents, one on each line", nil)
	for line := range strings.Lines(text) {
		documents = append(documents, strings.TrimRight(line, "\r\n"))
	}
	return words[0], documents, err
}
