// Command lab has the programs of grove's laboratory that open models: what trains drafters, what looks into models, and what plans
// machines. README.md beside the module says what each answers.
package main

import (
	"errors"
	"os"

	"github.com/alecthomas/kong"

	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/internal/command/terminal"
)

// commands is the command line. Flags are those of grove's commands.
type commands struct {
	flags.Offline

	States statesCommand `cmd:"" help:"Write the states that a model computes of texts."`
	HMM    hmmCommand    `cmd:"" name:"hmm" help:"Distil a hidden Markov model of a model's texts, with which constraints look ahead."`
	Scan   scanCommand   `cmd:"" help:"Look for texts that a model has learnt by heart."`
	Plan   planCommand   `cmd:"" help:"Predict what decoding costs on machines: replicas, layers split, attention apart."`
}

func main() { os.Exit(run(os.Args[1:])) }

// run runs the command of the arguments and returns the exit code.
func run(args []string) int {
	open := func() *kong.Kong {
		return kong.Must(&commands{}, kong.Name("lab"), kong.Description("Programs of grove's laboratory."),
			kong.ConfigureHelp(kong.HelpOptions{NoExpandSubcommands: true, Compact: true}),
			kong.ValueFormatter(flags.Describe), kong.Resolvers(kong.ResolverFunc(flags.Variables)),
			kong.WithHyphenPrefixedParameters(true), kong.Writers(terminal.Stdout, os.Stderr))
	}
	parser := open()
	args, err := flags.RewriteArguments(parser.Model, func() *kong.Application { return open().Model }, args, os.Stderr)
	if err != nil {
		return exit.Report(os.Stderr, err)
	}
	command, err := flags.ParseArguments(parser, args)
	if err == nil {
		err = flags.RunArguments(command)
	}
	if parse := new(exit.ParseError); errors.As(err, &parse) {
		command = parse.Line
	}
	return exit.Report(os.Stderr, flags.Blame(command, err))
}
