package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"grove"
	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/internal/text/token"
	"grove/score"
)

// Score is the command that scores texts behind a prompt.
type Score struct {
	flags.Subject `set:"text=The prompt; several words are one prompt. Without it, questions are read from --file or standard input."`
	flags.TextFile
	flags.Context
	flags.Cache
	flags.Threads
	flags.Repack
	flags.JSON

	Choices       []string `name:"continuation" sep:"none" placeholder:"TEXT" help:"Text to score behind the prompt; may be given several times."`
	Answer        *int     `placeholder:"N" help:"Place of the right choice, from 0."`
	Delimiter     string   `default:" " placeholder:"TEXT" help:"Text between prompt and choice, where there is no white space yet. Default: a blank."`
	Unconditional *string  `placeholder:"TEXT" help:"Second prompt, without a question, such as 'Answer:', for the normalisation by mutual information."`
	Tokens        bool     `help:"Also write the tokens of each choice (--json)."`
}

// Run implements the command.
func (c *Score) Run() (err error) {
	questions, err := c.questions()
	if err != nil {
		return err
	}
	m, err := c.Open(grove.Options{Context: int(c.Context.N), CacheType: string(c.Cache.Type), Threads: int(c.Threads.N), NoRepack: c.Repack.Off, Parallel: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	return c.Report("question", func(ctx context.Context, show func(done, all int)) (flags.Report, error) {
		return c.score(ctx, m, questions, show)
	})
}

// questions returns the question of the arguments, or those of the file.
func (c *Score) questions() ([]score.Question, error) {
	prompt, err := c.Resolve()
	switch {
	case err != nil:
		return nil, err
	case c.Tokens && !c.JSON.On:
		return nil, exit.With(exit.CodeUsage, errors.New("--tokens is of --json; add it"))
	case prompt == nil && len(c.Choices) == 0 && c.Answer == nil:
		text, err := c.Read("the questions, a JSON object on each line")
		if err != nil {
			return nil, err
		}
		all, err := score.ParseQuestions(text)
		if err != nil {
			return nil, exit.With(exit.CodeFile, err)
		}
		return all, nil
	case c.File != "":
		return nil, exit.With(exit.CodeUsage, errors.New("the question is given twice: leave out --file, or the prompt and --continuation"))
	case len(c.Choices) == 0:
		return nil, exit.With(exit.CodeUsage, errors.New("there is nothing to score behind the prompt: add --continuation TEXT"))
	case c.Answer != nil && (*c.Answer < 0 || *c.Answer >= len(c.Choices)):
		return nil, exit.With(exit.CodeUsage, fmt.Errorf("--answer: %d; it must be the place of a choice, from 0 to %d", *c.Answer, len(c.Choices)-1))
	}
	q := score.Question{Choices: c.Choices, Answer: c.Answer}
	if prompt != nil {
		q.Prompt = *prompt
	}
	return []score.Question{q}, nil
}

// score answers the questions. Of several, those that do not fit the context are left out and counted.
func (c *Score) score(ctx context.Context, m *grove.Model, questions []score.Question, show func(done, all int)) (*report, error) {
	r := &report{tally: score.NewTally(score.Norms(c.Unconditional != nil))}
	if c.Tokens {
		r.piece = func(id token.ID) string {
			raw, _ := m.Piece(id) // a token of the vocabulary
			return strings.ToValidUTF8(string(raw), "\ufffd")
		}
	}
	for i, q := range questions {
		got, err := m.Score(ctx, q.Prompt, q.Continuations(c.Delimiter), grove.ScoreOptions{Unconditional: c.Unconditional})
		switch {
		case err == nil:
			r.add(i, q, got.Continuations)
		case len(questions) > 1 && errors.Is(err, grove.ErrContext):
			r.leftOut++
		case len(questions) > 1:
			return nil, fmt.Errorf("question %d: %w", i, err)
		default:
			return nil, err
		}
		show(i+1, len(questions))
	}
	if len(r.answers) == 0 {
		return nil, fmt.Errorf("none of %d questions fits the context of %d tokens; give a larger one with -c", len(questions), m.Info().Context)
	}
	return r, nil
}
