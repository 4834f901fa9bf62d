package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"grove/bench/serving"
	"grove/internal/atomicfile"
)

// benchServe measures a server.
type benchServe struct {
	URL          string        `name:"url" placeholder:"URL" default:"http://127.0.0.1:8080" help:"The server. Default: ${default}."`
	Model        string        `placeholder:"NAME" help:"Name of the model, as the server calls it; without it, the first that the server lists."`
	API          string        `name:"api" placeholder:"API" default:"completions" help:"What to ask for: completions or chat. Default: ${default}."`
	APIKey       string        `name:"api-key" placeholder:"KEY" var:"GROVE_API_KEY" help:"Key that the server wants to be shown."`
	Requests     count         `placeholder:"N" default:"100" help:"Requests that are measured. Default: ${default}."`
	Concurrency  count         `placeholder:"N" help:"Requests at a time; 0: 8, or with --rate as many as come."`
	Rate         float64       `placeholder:"R" help:"Requests that begin a second, at random times; 0: one begins when another has ended."`
	Prompts      string        `placeholder:"FILE" help:"Tasks, as for bench methods; without it, stories made up for the purpose."`
	PromptTokens count         `placeholder:"N" help:"Tokens of a made-up prompt, about; 0: a mix of 16 to 256."`
	MaxTokens    count         `short:"n" placeholder:"N" help:"Tokens of every answer at most; 0: what a task says, else 128; for made-up prompts a mix of 16 to 128."`
	Temp         temperature   `placeholder:"T" default:"0" help:"Temperature. Default: ${default}."`
	IgnoreEOS    bool          `name:"ignore-eos" help:"Ask for answers of their full length. Not every server knows how."`
	ExtraBody    string        `name:"extra-body" placeholder:"JSON" help:"Object whose fields are added to every request, such as {\"method\": \"off\"} for grove without drafting."`
	Seed         uint64        `placeholder:"S" default:"1" help:"Seed of made-up prompts, of the times of --rate and of the server's draws. Default: ${default}."`
	Warmup       count         `placeholder:"N" default:"1" help:"Requests that go ahead and do not count. Default: ${default}."`
	Timeout      time.Duration `placeholder:"TIME" default:"10m" help:"Time that a request may take. Default: ${default}."`
	JSON         string        `name:"json" placeholder:"FILE" help:"Write the figures to FILE too, as one JSON object."`
}

// defaultAnswer is the length of answers to tasks that do not say, in tokens.
const defaultAnswer = 128

// Validate refuses what cannot be measured.
func (c *benchServe) Validate() error {
	if c.Prompts != "" && c.PromptTokens > 0 {
		return errors.New("--prompt-tokens is for made-up prompts, and --prompts names a file")
	}
	if c.PromptTokens > 1<<20 {
		return fmt.Errorf("--prompt-tokens: %d is more than %d", c.PromptTokens, 1<<20)
	}
	o := c.options()
	o.Tasks = []serving.Task{{MaxTokens: max(1, int(c.MaxTokens))}}
	return o.Validate()
}

// options returns what the flags say, without tasks.
func (c *benchServe) options() serving.Options {
	concurrency := int(c.Concurrency)
	if concurrency == 0 && c.Rate == 0 {
		concurrency = 8
	}
	return serving.Options{
		URL: c.URL, APIKey: c.APIKey, Model: c.Model, API: serving.API(c.API), Requests: int(c.Requests), Concurrency: concurrency,
		Rate: c.Rate, Seed: c.Seed, Temperature: float64(c.Temp), IgnoreEOS: c.IgnoreEOS, ExtraBody: c.ExtraBody, Timeout: c.Timeout, Warmup: int(c.Warmup),
	}
}

// Run implements the command.
func (c *benchServe) Run() error {
	o := c.options()
	var err error
	if o.Tasks, err = c.tasks(); err != nil {
		return err
	}
	ctx, stop := untilSignal()
	defer stop()
	s := steps{what: "requests"}
	r, err := serving.Run(ctx, o, s.show)
	s.end()
	if r == nil {
		return cause(ctx, err)
	}
	return errors.Join(r.WriteTable(stdout), c.keep(r), cause(ctx, err), unanswered(ctx, r))
}

// tasks reads the tasks, or makes them up.
func (c *benchServe) tasks() ([]serving.Task, error) {
	if c.Prompts == "" {
		return serving.Mix(c.Seed, int(c.Requests+c.Warmup), int(c.PromptTokens), int(c.MaxTokens)), nil
	}
	prompts, err := readWorkload(c.Prompts)
	if err != nil {
		return nil, err
	}
	tasks := make([]serving.Task, len(prompts))
	for i, p := range prompts {
		tasks[i] = serving.Task{Prompt: p.Prompt, Prediction: p.Prediction, MaxTokens: defaultAnswer}
		switch {
		case c.MaxTokens > 0:
			tasks[i].MaxTokens = int(c.MaxTokens)
		case p.MaxTokens > 0:
			tasks[i].MaxTokens = p.MaxTokens
		}
	}
	return tasks, nil
}

// keep writes the figures to the file that is to hold them.
func (c *benchServe) keep(r *serving.Report) error {
	if c.JSON == "" {
		return nil
	}
	return asOutputError(atomicfile.Write(c.JSON, r.WriteJSON))
}

// unanswered returns an error where nothing was answered although there was time for it.
func unanswered(ctx context.Context, r *serving.Report) error {
	if r.Completed > 0 || ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("grove: none of %d requests was answered", r.Requests)
}
