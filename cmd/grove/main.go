// Command grove runs language models: it generates text, and shows what a model file holds and how it
// sees text. docs/cli.md describes every command, flag, variable and exit code.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"grove/internal/kernel"
)

const description = `Grove runs language models on the CPU.

Examples:
  grove run "func main() {"                     with the model inside this program
  grove run -m MODEL.gguf "Once upon a time"    with a model of yours
  grove run -m MODEL.gguf --temp 0 --json < prompt.txt
  grove chat -m MODEL.gguf                      talk with it
  grove inspect MODEL.gguf                      what the file holds
  echo "some text" | grove tokenize -m MODEL.gguf`

// commands is the command line.
type commands struct {
	Run        runCommand        `cmd:"" help:"Continue a text."`
	Chat       chatCommand       `cmd:"" help:"Talk with a model."`
	Serve      serveCommand      `cmd:"" help:"Serve models over HTTP, by OpenAI's API."`
	Inspect    inspectCommand    `cmd:"" help:"Show what a model file holds: metadata and tensors."`
	Tokenize   tokenizeCommand   `cmd:"" help:"Turn text on standard input into token ids, or back."`
	Convert    convertCommand    `cmd:"" help:"Write a folder of Hugging Face as one GGUF file."`
	Quantize   quantizeCommand   `cmd:"" help:"Write a model with its weights in smaller types."`
	Logits     logitsCommand     `cmd:"" help:"Write a model's logits at every position of a list of tokens."`
	Embed      embedCommand      `cmd:"" help:"Turn a text into a vector that stands for what it means."`
	Perplexity perplexityCommand `cmd:"" help:"Measure how well a model predicts a text, and how far it is from another."`
	Methods    methodsCommand    `cmd:"" help:"List the methods of drafting several tokens a step."`
	Verify     verifyCommand     `cmd:"" help:"Prove on a model that methods give what they promise."`
	Bench      benchCommand      `cmd:"" help:"Measure models and kernels on this machine."`
	Tune       tuneCommand       `cmd:"" help:"Measure what steps of a model cost on this machine, and keep it."`
	Models     modelsCommand     `cmd:"" help:"List the models that are on this machine."`
	Version    versionCommand    `cmd:"" help:"Show what this program is built from."`
}

func main() { os.Exit(run(os.Args[1:])) }

// run does what the arguments ask for and returns the exit code.
func run(args []string) (code int) {
	defer func() {
		if fault := recover(); fault != nil {
			code = reportFault(os.Stderr, fault)
		}
	}()
	parser := kong.Must(&commands{},
		kong.Name("grove"), kong.Description(description),
		kong.ConfigureHelp(kong.HelpOptions{NoAppDescFormat: true, NoExpandSubcommands: true, Compact: true}),
		kong.ValueFormatter(describe), kong.Resolvers(kong.ResolverFunc(variables)),
		kong.WithHyphenPrefixedParameters(true),
	)
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if err == nil {
		err = chooseKernels(os.Getenv("GROVE_KERNELS"))
	}
	if err == nil {
		err = command.Run()
	}
	return report(os.Stderr, err)
}

// chooseKernels makes the named implementation run instead of the fastest, "" meaning that one.
func chooseKernels(name string) error {
	known := kernel.Implementations()
	switch {
	case name == "":
	case slices.Contains(known, name):
		kernel.Use(name)
	default:
		return &variableError{"GROVE_KERNELS", fmt.Errorf("%q is not among the kernels of this machine: %s", name, strings.Join(known, ", "))}
	}
	return nil
}
