// Command lab has the programs of grove's laboratory that open models: what trains drafters, what looks into models, and what plans
// machines. README.md beside the module says what each answers.
package main

import (
	"os"

	"github.com/alecthomas/kong"

	"grove/internal/command/flags"
)

// commands is the command line. Flags are those of grove's commands.
type commands struct {
	flags.Offline

	States statesCommand `cmd:"" help:"Write the states that a model computes of texts."`
	HMM    hmmCommand    `cmd:"" name:"hmm" help:"Distil a hidden Markov model of a model's texts, with which constraints look ahead."`
	Scan   scanCommand   `cmd:"" help:"Look for texts that a model has learnt by heart."`
	Plan   planCommand   `cmd:"" help:"Predict what decoding costs on machines: replicas, layers split, attention apart."`
}

// program is the command line.
var program = flags.Program{
	Name: "lab", Description: "Programs of grove's laboratory.",
	Help:     kong.HelpOptions{NoExpandSubcommands: true, Compact: true},
	Commands: func() any { return new(commands) },
}

func main() { os.Exit(program.Run(os.Args[1:])) }
