// Command _canvas measures what a model of masked diffusion writes by each policy and cache:
//
//	go run ./gopher/train/_canvas -m gopher-diffusion [-policies "static;threshold:p=0.9"] [-caches "none;dual"] [-json ANSWERS.jsonl] TASKS.jsonl
//
// TASKS.jsonl is what train/tasks.py writes: beginnings of functions that are held out. For each task every setting fills a canvas with the likeliest tokens, one
// setting after the other, so that all have the same load of the machine. A line of the table: tokens a second, passes an answer, rows a token; nats a token of the answer by
// another model (-judge), behind the same prompt; and the share of the answers in which go/parser finds no error before the last line. The line "plain" is the judge's own text.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"grove"
	"grove/gopher"
	"grove/text/token"
)

// settings are what an answer is made by.
type settings struct {
	Model  string `json:"model"`
	Policy string `json:"policy,omitempty"`
	Cache  string `json:"cache,omitempty"`
	model  *grove.Model
}

// answer is what one setting wrote for one task.
type answer struct {
	settings
	Task     string     `json:"task"`
	IDs      []token.ID `json:"ids"`
	Logprobs []float32  `json:"logprobs"`
	Passes   int        `json:"passes"`
	Rows     int        `json:"rows"`
	Seconds  float64    `json:"seconds"`
	Nats     float64    `json:"nats"` // by the judge, of all tokens
	Parses   bool       `json:"parses"`
}

// task is a line of the file of tasks.
type task struct {
	ID     string `json:"id"`
	Prompt string `json:"prompt"`
}

type command struct {
	judge  *grove.Model
	block  int
	tokens int
	all    []settings
	sums   []sum
	trace  *json.Encoder // nil: none
}

// sum is what the answers of a setting have together.
type sum struct {
	answers, parse, tokens, passes, rows int
	seconds, nats                        float64
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "_canvas:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	name, judge := flag.String("m", "gopher-diffusion", "models of masked diffusion, with commas between them"), flag.String("judge", gopher.Name, "model that reads the answers")
	policies, caches := flag.String("policies", "static;threshold:p=0.9;entropy", "policies"), flag.String("caches", "none", "caches")
	trace, most := flag.String("json", "", "file for the answers"), flag.Int("tasks", 60, "most tasks")
	c := &command{}
	flag.IntVar(&c.block, "block", 32, "tokens of a block")
	flag.IntVar(&c.tokens, "n", 64, "tokens of an answer")
	threads := flag.Int("threads", 0, "threads of grove")
	flag.Parse()
	if flag.NArg() != 1 {
		return errors.New("a file of tasks is missing")
	}
	tasks, err := read(flag.Arg(0), *most)
	if err != nil {
		return err
	}
	if c.judge, err = grove.Open(*judge, grove.Options{Threads: *threads, Forget: true}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.judge.Close()) }()
	c.all = append(c.all, settings{Model: "plain", model: c.judge})
	for name := range strings.SplitSeq(*name, ",") {
		m, err := grove.Open(name, grove.Options{Threads: *threads, Forget: true})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, m.Close()) }()
		for policy := range strings.SplitSeq(*policies, ";") {
			for cache := range strings.SplitSeq(*caches, ";") {
				c.all = append(c.all, settings{name, policy, cache, m})
			}
		}
	}
	if *trace != "" {
		f, err := os.Create(*trace)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		c.trace = json.NewEncoder(f)
	}
	return c.tasks(tasks)
}

// read reads the first tasks of a file.
func read(path string, most int) (tasks []task, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d := json.NewDecoder(bufio.NewReader(f))
	for len(tasks) < most {
		var t task
		if err := d.Decode(&t); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		tasks = append(tasks, t)
	}
	return tasks, nil
}

// tasks asks every setting for every task, and writes the table.
func (c *command) tasks(tasks []task) error {
	c.sums = make([]sum, len(c.all))
	for n, t := range tasks {
		for i := range c.all {
			s := c.all[(i+n)%len(c.all)] // each is first in turn
			a, err := c.ask(s, t)
			if err != nil {
				return fmt.Errorf("%s %s %s: %s: %w", s.Model, s.Policy, s.Cache, t.ID, err)
			}
			c.sums[(i+n)%len(c.all)].add(a)
			if c.trace != nil {
				if err := c.trace.Encode(a); err != nil {
					return err
				}
			}
		}
	}
	fmt.Println("| model | policy | cache | tokens/s | passes an answer | tokens a pass | rows a token | nats a token | parse, % |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|")
	for i, s := range c.all {
		fmt.Println(c.sums[i].line(s))
	}
	return nil
}

// ask lets a setting write the answer of a task, and the judge read it.
func (c *command) ask(s settings, t task) (a answer, err error) {
	r := grove.Request{Prompt: t.Prompt, MaxTokens: c.tokens, Sampling: grove.Sampling{}}
	if s.Policy != "" {
		r.Diffusion = &grove.Diffusion{Block: c.block, Policy: s.Policy, Cache: s.Cache}
	}
	start := time.Now()
	g, err := s.model.Generate(context.Background(), r)
	if err != nil {
		return a, err
	}
	var text strings.Builder
	for tok, err := range g.Tokens() {
		if err != nil {
			return a, err
		}
		text.WriteString(tok.Text)
		a.IDs, a.Logprobs = append(a.IDs, tok.ID), append(a.Logprobs, tok.Logprob)
	}
	stats := g.Stats()
	a.settings, a.Task, a.Seconds, a.Passes, a.Rows = s, t.ID, time.Since(start).Seconds(), stats.Passes, stats.Rows
	if s.Policy == "" {
		a.Passes, a.Rows = len(a.IDs), stats.PromptTokens+len(a.IDs)
	}
	a.Parses = parses(t.Prompt, text.String())
	a.Nats, err = nats(c.judge, g.Prompt(), a.IDs)
	return a, err
}

// nats returns the nats of an answer behind a prompt by a model.
func nats(m *grove.Model, prompt, answer []token.ID) (total float64, err error) {
	at := 0
	all := append(prompt[:len(prompt):len(prompt)], answer...)
	err = m.Logprobs(context.Background(), all, func(row grove.LogprobRow) error {
		if at++; at >= len(prompt) && at < len(all) {
			total -= float64(row.Of(all[at]))
		}
		return nil
	})
	return total, err
}

func (s *sum) add(a answer) {
	s.answers++
	s.tokens += len(a.IDs)
	s.passes += a.Passes
	s.rows += a.Rows
	s.seconds += a.Seconds
	s.nats += a.Nats
	if a.Parses {
		s.parse++
	}
}

func (s *sum) line(of settings) string {
	n, tokens := float64(s.answers), float64(max(1, s.tokens))
	return fmt.Sprintf("| %s | %s | %s | %.0f | %.1f | %.2f | %.1f | %.2f | %.0f |", of.Model, of.Policy, of.Cache, tokens/s.seconds, float64(s.passes)/n,
		tokens/float64(s.passes), float64(s.rows)/tokens, s.nats/tokens, 100*float64(s.parse)/n)
}
