package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"grove"
	"grove/text/token"
)

// runCommand continues a prompt.
type runCommand struct {
	requestFlags

	MaxTokens count   `short:"n" placeholder:"N" default:"256" var:"GROVE_N" help:"Tokens to generate; 0: until the text or the context ends. Default: ${default}."`
	Suffix    *string `placeholder:"TEXT" var:"GROVE_SUFFIX" help:"Text that follows: the model fills in what is between the prompt and this. For models whose vocabulary has tokens for that."`
	Predict   string  `placeholder:"TEXT" var:"GROVE_PREDICT" help:"What the answer is expected to contain, such as a text to be edited: a matter of speed alone."`
	Session   string  `placeholder:"FILE" var:"GROVE_SESSION" help:"File that keeps what was computed, for a later prompt that begins alike: a matter of speed alone."`
	JSON      bool    `name:"json" var:"GROVE_JSON" help:"Write one JSON object at the end instead of text."`

	Prompt *string `arg:"" optional:"" help:"Text to continue; without it, standard input is read."`
}

// Run implements the command.
func (c *runCommand) Run() (err error) {
	prompt, err := c.prompt()
	if err != nil {
		return err
	}
	m, err := c.openModel("")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	ctx, stop := untilSignal()
	defer stop()
	r := c.request()
	r.Prompt, r.Suffix, r.MaxTokens, r.Prediction, r.Session = prompt, c.Suffix, int(c.MaxTokens), c.Predict, c.Session
	g, err := m.Generate(ctx, r)
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
