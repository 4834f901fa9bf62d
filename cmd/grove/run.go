package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"grove"
	"grove/token"
)

// runCommand continues a prompt.
type runCommand struct {
	modelFlag

	MaxTokens  count       `short:"n" placeholder:"N" default:"256" var:"GROVE_N" help:"Tokens to generate; 0: until the text or the context ends. Default: ${default}."`
	Temp       temperature `placeholder:"T" default:"0.8" var:"GROVE_TEMP" help:"Temperature; 0 takes the likeliest token each time. Default: ${default}."`
	TopK       topK        `placeholder:"K" default:"40" var:"GROVE_TOP_K" help:"Draw from the K likeliest tokens; 0: all. Default: ${default}."`
	TopP       topP        `placeholder:"P" default:"0.95" var:"GROVE_TOP_P" help:"Draw from the likeliest tokens that have probability P together; 1: all. Default: ${default}."`
	MinP       minP        `placeholder:"P" default:"0.05" var:"GROVE_MIN_P" help:"Draw from tokens at least P times as likely as the likeliest; 0: all. Default: ${default}."`
	Seed       *uint64     `placeholder:"S" var:"GROVE_SEED" help:"Seed that makes a text reproducible; without it, one is drawn and reported."`
	Suffix     *string     `placeholder:"TEXT" var:"GROVE_SUFFIX" help:"Text that follows: the model fills in what is between the prompt and this. For models whose vocabulary has tokens for that."`
	Stop       []string    `placeholder:"TEXT" sep:"none" var:"GROVE_STOP" help:"End before this text; may be given several times."`
	Context    count       `short:"c" placeholder:"N" var:"GROVE_CONTEXT" help:"Tokens of the text, prompt included; 0: the model's own, 4096 at most."`
	Threads    count       `short:"t" placeholder:"N" var:"GROVE_THREADS" help:"Threads; 0: one for each core that may be used."`
	CacheType  cacheType   `placeholder:"TYPE" default:"f16" var:"GROVE_CACHE_TYPE" help:"Type of cached keys and values: f32, f16 or q8_0. Default: ${default}."`
	NoRepack   bool        `var:"GROVE_NO_REPACK" help:"Read weights where the file has them: less memory while loading, slower, the same text."`
	Method     methodNames `placeholder:"NAMES" default:"auto" var:"GROVE_METHOD" help:"How several tokens a step are drafted: auto, off, or names with commas between (see grove methods). Default: ${default}."`
	Accept     acceptRule  `placeholder:"RULE" default:"exact" var:"GROVE_ACCEPT" help:"How guesses become text: exact, by the method's own rule, or typical, those that are likely enough (lossy). Default: ${default}."`
	Draft      string      `placeholder:"FILE" var:"GROVE_DRAFT" help:"GGUF file of a smaller model, to draft with; best with the same vocabulary."`
	DraftVocab count       `placeholder:"N" var:"GROVE_DRAFT_VOCAB" help:"Tokens that the draft model considers, the most frequent ones; 0: all. The answer is the same."`
	Predict    string      `placeholder:"TEXT" var:"GROVE_PREDICT" help:"What the answer is expected to contain, such as a text to be edited: a matter of speed alone."`
	JSON       bool        `name:"json" var:"GROVE_JSON" help:"Write one JSON object at the end instead of text."`

	Prompt *string `arg:"" optional:"" help:"Text to continue; without it, standard input is read."`
}

// Validate refuses a stop string that is everywhere.
func (c *runCommand) Validate() error {
	if slices.Contains(c.Stop, "") {
		return errors.New("--stop: the text is empty")
	}
	return nil
}

// Run implements the command.
func (c *runCommand) Run() (err error) {
	prompt, err := c.prompt()
	if err != nil {
		return err
	}
	m, err := c.open(grove.Options{
		Context: int(c.Context), CacheType: string(c.CacheType), Threads: int(c.Threads), Parallel: 1,
		NoRepack: c.NoRepack, Draft: c.Draft, DraftVocab: int(c.DraftVocab),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	if d := m.Info().Draft; d != "" {
		fmt.Fprintln(os.Stderr, "grove: draft:", d)
	}
	ctx, stop := untilSignal()
	defer stop()
	g, err := m.Generate(ctx, grove.Request{
		Prompt: prompt, Suffix: c.Suffix, MaxTokens: int(c.MaxTokens), Seed: c.Seed, Stop: c.Stop,
		Method: string(c.Method), Accept: string(c.Accept), Prediction: c.Predict,
		Sampling: grove.Sampling{
			Temperature: float32(c.Temp), TopK: int(c.TopK), TopP: float32(c.TopP), MinP: float32(c.MinP),
		},
	})
	if err != nil {
		return err
	}
	a := answer{Model: m.Info().Name, Prompt: prompt, Suffix: c.Suffix, Tokens: []answerToken{}}
	err = c.generate(g, &a)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	} else if err != nil {
		return err
	}
	a.Stats = measure(g.Stats())
	fmt.Fprintln(os.Stderr, "grove:", a.Stats)
	if c.JSON {
		err = errors.Join(err, a.write(stdout))
	}
	return err
}

// prompt returns the text to continue.
func (c *runCommand) prompt() (string, error) {
	if c.Prompt != nil {
		return *c.Prompt, nil
	}
	return readInput("the prompt")
}

// generate computes the answer; what there is of it goes into a, and to standard output as it comes
// unless JSON is asked for.
func (c *runCommand) generate(g *grove.Generation, a *answer) (err error) {
	var live io.Writer = stdout
	if c.JSON {
		live = io.Discard
	}
	if _, err := io.WriteString(live, a.Prompt); err != nil {
		return err
	}
	for t, err := range g.Tokens() {
		if err == nil {
			a.add(t)
			_, err = io.WriteString(live, t.Text)
		}
		if err != nil {
			return errors.Join(err, endLine(live))
		}
	}
	if a.Suffix != nil {
		if _, err := io.WriteString(live, *a.Suffix); err != nil {
			return err
		}
	}
	return endLine(live)
}

func endLine(w io.Writer) error {
	_, err := io.WriteString(w, "\n")
	return err
}

// answer is what --json writes.
type answer struct {
	Model  string        `json:"model"`
	Prompt string        `json:"prompt"`
	Suffix *string       `json:"suffix,omitempty"`
	Text   string        `json:"text"`
	Tokens []answerToken `json:"tokens"`
	Stats  stats         `json:"stats"`
}

type answerToken struct {
	ID      token.ID `json:"id"`
	Text    string   `json:"text"`
	Logprob float32  `json:"logprob"`
}

// add appends a token. Text that is set free at the end, without a token, belongs to the last one.
func (a *answer) add(t grove.Token) {
	a.Text += t.Text
	if n := len(a.Tokens); t.ID != token.None {
		a.Tokens = append(a.Tokens, answerToken{t.ID, t.Text, t.Logprob})
	} else if n > 0 {
		a.Tokens[n-1].Text += t.Text
	}
}

func (a *answer) write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(a)
}
