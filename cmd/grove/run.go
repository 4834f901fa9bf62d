package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/alecthomas/kong"

	"grove"
	"grove/internal/command/conversation"
	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/internal/command/harmless"
	"grove/internal/command/terminal"
	"grove/internal/text/token"
	"grove/internal/weights/find"
)

// runCommand continues a prompt.
type runCommand struct {
	flags.Request   `set:"text=Text to continue; without it, --prompt, --file or standard input."`
	flags.MaxTokens `set:"tokens=256"`
	flags.JSON
	flags.TextFile
	flags.Constraint
	flags.Skip
	flags.Heal

	Ahead string `placeholder:"FILE" help:"File of lab hmm, with which --regex or --choice looks ahead: legal texts that the model is likely to write are preferred."`

	SkipLayers string `name:"skip-layers" placeholder:"OPTIONS" var:"GROVE_SKIP_LAYERS" help:"Let the answer's tokens skip layers, the more the later they come: to=N layers at last, and with commas from=N at first, first=N of the model's first ones, over=N tokens; or period=N: all but each Nth substitute those for which --skip-adapters has adapters (lossy)."`

	PrefixLM bool `name:"prefix-lm" var:"GROVE_PREFIX_LM" help:"Let the tokens of the prompt see each other, for models that were trained as prefix LMs. The prompt must fit in a step."`

	Suffix  *string `placeholder:"TEXT" var:"GROVE_SUFFIX" help:"Text after the gap: the model fills the gap between the prompt and TEXT. The vocabulary must have tokens for that."`
	Predict string  `placeholder:"TEXT" var:"GROVE_PREDICT" help:"Text that the answer is likely to contain, such as a text to edit. It changes the speed alone."`
	Session string  `placeholder:"FILE" var:"GROVE_SESSION" help:"File of computed keys and values, for a later prompt with the same beginning. It changes the speed alone."`

	Prompt *string `name:"prompt" short:"p" placeholder:"TEXT" help:"The text to continue, in place of the argument."`

	bounded bool // -n is on the command line
}

// Parsed implements [flags.Hooked].
func (c *runCommand) Parsed() flags.Hook { return flags.Hook{Of: c, Do: c.parsed} }

// parsed notes whether -n is on the command line.
func (c *runCommand) parsed(line *kong.Context) error {
	c.bounded = flags.OnLine(line, "max-tokens")
	return nil
}

// Valid refuses a number of tokens where a text belongs, which llama.cpp's --predict takes.
func (c *runCommand) Valid() error {
	if _, err := strconv.Atoi(c.Predict); err == nil {
		return fmt.Errorf("--predict: %s is a number; --predict takes a text that the answer is likely to contain, and -n %s bounds the tokens", c.Predict, c.Predict)
	}
	return nil
}

// Run implements the command.
func (c *runCommand) Run() (err error) {
	text, err := c.Resolve()
	if err != nil {
		return err
	}
	if c.converses(text) {
		fmt.Fprintf(os.Stderr, "grove: no text is given: holding a conversation, as 'grove chat %.80s' does\n", harmless.Line(*c.First))
		talk := &chatCommand{Request: c.Request}
		if c.bounded {
			talk.MaxTokens = c.MaxTokens
		}
		return talk.hold(nil)
	}
	prompt, err := c.prompt(text)
	if err != nil {
		return err
	}
	if err := terminal.CheckOptional(c.Session); err != nil {
		return fmt.Errorf("--session: %w", err)
	}
	constraint, err := c.constraint()
	if err != nil {
		return err
	}
	o, err := c.Options()
	o.SkipAdapters = c.SkipAdapters
	if err != nil {
		return err
	}
	m, err := openModel(c.Model, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	ctx, stop := terminal.UntilSignal()
	defer stop()
	r, err := c.RequestOf(m)
	if err != nil {
		return err
	}
	r.Constraint, r.Prefix, r.SkipLayers = constraint, c.PrefixLM, c.SkipLayers
	c.Heal.Put(&r)
	r.Prompt, r.Suffix, r.MaxTokens, r.Prediction, r.Session = prompt, c.Suffix, c.Limit(), c.Predict, c.Session
	bar := terminal.Tokens("reading")
	defer bar.End()
	r.Progress = bar.Show
	g, err := m.Generate(ctx, r)
	var canvas *grove.DiffusionError
	if !c.bounded && errors.As(err, &canvas) && canvas.Setting == "length" { // nobody asked for a canvas that does not fit
		r.MaxTokens = 0
		g, err = m.Generate(ctx, r)
	}
	if err != nil {
		return c.Refused(err)
	}
	line := new(terminal.Status)
	defer line.End()
	g.WatchSearch(func(p grove.SearchProgress) { line.Show(p) })
	a := answer{Model: m.Info().Name, Prompt: prompt, Suffix: c.Suffix, Tokens: []answerToken{}, source: m.Info().EncoderDecoder}
	err = c.generate(g, &a, func() { bar.End(); line.End() })
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	} else if err != nil {
		return err
	}
	a.Stats = conversation.Summarize(g.Stats())
	a.Stats.Advice = c.AdviceOf(m).String()
	fmt.Fprintln(os.Stderr, "grove:", a.Stats)
	a.Stats.WriteSuggestions(os.Stderr)
	if c.JSON.On {
		err = errors.Join(err, a.write(terminal.Stdout))
	}
	return err
}

// horizon is how many tokens a text looks ahead that has no limit of its own.
const horizon = 256

// constraint returns the constraint of the flags, nil for none.
func (c *runCommand) constraint() (*grove.Constraint, error) {
	made, err := c.Constraint.Of()
	if err != nil || c.Ahead == "" {
		return made, err
	}
	if made == nil || made.Regex == "" && made.Choices == nil {
		return nil, exit.With(exit.CodeUsage, errors.New("--ahead needs --regex or --choice, whose texts it looks for"))
	}
	if made.Lookahead, err = grove.OpenLookahead(c.Ahead, horizon); err != nil {
		return nil, exit.File(err)
	}
	if n := c.Limit(); n > 0 {
		made.Lookahead.Tokens = n
	}
	return made, nil
}

// converses reports whether a person at a terminal named a model that can answer, and no text.
func (c *runCommand) converses(text *string) bool {
	other := c.Prompt != nil || c.Suffix != nil || c.File != "" || c.Predict != "" || c.Session != "" || c.Program != "" || c.JSON.On || c.Constraint.Given() || c.Ahead != ""
	if c.First == nil || text != nil || other || !terminal.Is(os.Stdin) || !terminal.Is(os.Stdout) {
		return false
	}
	d, err := find.Model{Path: c.Model.Path}.Describe(grove.OpenFile)
	return err == nil && slices.Contains(d.Capabilities, "chat")
}

// prompt returns the text to continue.
func (c *runCommand) prompt(text *string) (string, error) {
	if c.First != nil && text == nil && c.Prompt == nil && c.File == "" && terminal.Is(os.Stdin) {
		fmt.Fprintf(os.Stderr, "grove: run continues a text; 'grove chat %s' holds a conversation\n", harmless.Line(*c.First))
	}
	return c.Read("the prompt", text, c.Prompt)
}

// openModel opens the model of a text. It reports how its draft model is related to it, its middle model, and recommendations that are not used.
func openModel(f flags.Model, o grove.Options) (*grove.Model, error) {
	m, err := f.Open(o)
	if err != nil {
		return nil, err
	}
	i := m.Info()
	if i.Draft != "" {
		fmt.Fprintln(os.Stderr, "grove: draft:", harmless.Line(i.Draft))
	}
	for _, heads := range i.Heads {
		fmt.Fprintln(os.Stderr, "grove: heads:", harmless.Line(heads))
	}
	if i.Middle != "" {
		fmt.Fprintln(os.Stderr, "grove: middle model:", harmless.Line(i.Middle))
	}
	for _, guide := range i.Guides {
		fmt.Fprintln(os.Stderr, "grove: guide:", harmless.Line(guide))
	}
	for _, line := range i.Sampling.Ignored {
		fmt.Fprintln(os.Stderr, "grove: the model recommends what is not used:", harmless.Line(line))
	}
	return m, nil
}

// generate computes the answer into a and, unless JSON is asked for, writes it to standard output token by token. The prompt is
// written when it has been read, once begin has cleared the line that shows how far that is; a source is not, as the answer is no part of its text.
func (c *runCommand) generate(g *grove.Generation, a *answer, begin func()) (err error) {
	live, view := terminal.NewWrapper(terminal.Stdout), conversation.NewCanvas(c.NoCanvas || c.JSON.On)
	if c.JSON.On {
		live = terminal.NewWrapper(io.Discard)
	}
	prompt := sync.OnceValue(func() error {
		begin()
		if a.source {
			return nil
		}
		return live.Text(a.Prompt)
	})
	g.WatchCanvas(func(runs []grove.CanvasRun) {
		if err == nil {
			err = prompt()
		}
		if err == nil {
			err = view.Show(live, runs)
		}
	})
	for t, e := range g.Tokens() {
		if err == nil {
			err = prompt()
		}
		if err = errors.Join(err, view.Clear(), e); err == nil {
			a.add(t)
			err = live.Text(t.Text)
		}
		if err != nil {
			return errors.Join(err, live.End())
		}
	}
	if err == nil {
		err = prompt()
	}
	if err := errors.Join(err, view.Clear()); err != nil {
		return err
	}
	if a.Suffix != nil {
		if err := live.Text(*a.Suffix); err != nil {
			return err
		}
	}
	return live.End()
}

// answer is the object that --json writes.
type answer struct {
	Model  string               `json:"model"`
	Prompt string               `json:"prompt"`
	Suffix *string              `json:"suffix,omitempty"`
	Text   string               `json:"text"`
	Tokens []answerToken        `json:"tokens"`
	Stats  conversation.Summary `json:"stats"`

	source bool // the prompt is one
}

type answerToken struct {
	ID      token.ID `json:"id"`
	Text    string   `json:"text"`
	Logprob float32  `json:"logprob"`
}

// add appends a token. Text without a token, at the end, belongs to the last token.
func (a *answer) add(t grove.Token) {
	a.Text += t.Text
	if n := len(a.Tokens); t.ID != token.None {
		a.Tokens = append(a.Tokens, answerToken{t.ID, t.Text, t.Logprob})
	} else if n > 0 {
		a.Tokens[n-1].Text += t.Text
	}
}

// write writes the answer as JSON.
func (a *answer) write(w io.Writer) error {
	e := json.NewEncoder(harmless.JSON(w))
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(a)
}
