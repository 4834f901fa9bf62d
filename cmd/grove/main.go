// Command grove runs language models: it generates text, serves models over HTTP, and inspects, converts and measures
// them. docs/cli.md describes every command, flag, variable and exit code.
package main

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"

	"grove"
	"grove/internal/command/benchmarks"
	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/internal/command/terminal"
)

const description = `Grove runs language models on the CPU.

Examples:
  grove run --stop func "func (f *File) Close() error"
                                                with the model inside this program
  grove run -m MODEL.gguf "Once upon a time"    with a model file
  grove run -m MODEL.gguf --temp 0 --json < prompt.txt
  grove chat -m MODEL.gguf                      hold a conversation
  grove inspect MODEL.gguf                      show metadata and tensors
  echo "some text" | grove tokenize -m MODEL.gguf`

// commands is the command line.
type commands struct {
	flags.Offline

	Run        runCommand         `cmd:"" help:"Continue a text."`
	Chat       chatCommand        `cmd:"" help:"Hold a conversation with a model."`
	Serve      serveCommand       `cmd:"" help:"Serve models over HTTP, with OpenAI's API."`
	Batch      Batch              `cmd:"" help:"Answer a file of requests, in OpenAI's batch format."`
	Health     healthCommand      `cmd:"" help:"Ask a server whether it takes requests."`
	Inspect    inspectCommand     `cmd:"" help:"Show what a model file holds: metadata and tensors."`
	Tokenize   tokenizeCommand    `cmd:"" help:"Turn text on standard input into token ids, or back."`
	Check      checkCommand       `cmd:"" help:"Say whether a text is legal under a schema or a grammar, and where it is not."`
	Merge      mergeCommand       `cmd:"" help:"Write a model with what LoRA adapters add to it as one GGUF file."`
	Convert    convertCommand     `cmd:"" help:"Write a Hugging Face folder, a model or a drafting head, as one GGUF file."`
	Quantize   quantizeCommand    `cmd:"" help:"Write a model with its weights in smaller types."`
	Logits     logitsCommand      `cmd:"" help:"Write a model's logits at every position of a list of tokens."`
	Rerank     rerankCommand      `cmd:"" help:"Rank documents by a query."`
	Embed      embedCommand       `cmd:"" help:"Turn a text into a vector (an embedding)."`
	Score      Score              `cmd:"" help:"Compare texts by their log-probabilities behind a prompt, and answer questions with choices."`
	Perplexity Perplexity         `cmd:"" help:"Measure how well a model predicts a text, and how far it is from a base model."`
	Datastore  datastoreCommand   `cmd:"" help:"Make a file of texts to draft from."`
	Methods    methodsCommand     `cmd:"" help:"List the methods that draft tokens."`
	Verify     verifyCommand      `cmd:"" help:"Prove on a model that methods keep the promise of their grade."`
	Bench      benchmarks.Command `cmd:"" help:"Measure models and kernels on this machine."`
	Tune       tuneCommand        `cmd:"" help:"Measure the cost of a model's steps on this machine, and save it."`
	Pull       pullCommand        `cmd:"" help:"Pull models by name into the caches of this machine."`
	Models     modelsCommand      `cmd:"" aliases:"list,ls" help:"List the models that are on this machine."`
	Show       showCommand        `cmd:"" help:"Show what a model is and what it can do."`
	RM         rmCommand          `cmd:"" name:"rm" aliases:"remove" help:"Remove models from the caches of this machine."`
	PS         psCommand          `cmd:"" name:"ps" help:"List the models of a running server: status, memory, requests."`
	Stop       stopCommand        `cmd:"" help:"Close a model of a running server, to free its memory."`
	Completion completionCommand  `cmd:"" help:"Write the script that completes command lines in a shell."`
	Complete   completeCommand    `cmd:"" hidden:"" passthrough:""`
	Version    versionCommand     `cmd:"" help:"Show the version of the program, its numerics and its kernels."`
}

func main() { os.Exit(run(os.Args[1:])) }

// run runs the command of the arguments and returns the exit code.
func run(args []string) (code int) {
	defer func() {
		if fault := recover(); fault != nil {
			code = exit.ReportFault(os.Stderr, fault)
		}
	}()
	parser := kong.Must(&commands{}, append(options(), alone(args))...)
	args, err := flags.RewriteArguments(parser.Model, func() *kong.Application { return kong.Must(&commands{}, options()...).Model }, args, os.Stderr)
	if err != nil {
		return exit.Report(os.Stderr, err)
	}
	command, err := flags.ParseArguments(parser, args)
	if err == nil {
		err = chooseKernels(os.Getenv("GROVE_KERNELS"))
	}
	if err == nil {
		err = flags.RunArguments(command)
	}
	if parse := new(exit.ParseError); errors.As(err, &parse) {
		if command = parse.Line; strings.HasPrefix(err.Error(), `expected "<`) {
			err = fmt.Errorf("%w; '%s --help' shows the arguments", err, command.Selected().FullPath())
		}
	}
	return exit.Report(os.Stderr, flags.Blame(command, err))
}

// options returns how kong reads the command line.
func options() []kong.Option {
	return []kong.Option{
		kong.Name("grove"), kong.Description(description),
		kong.ConfigureHelp(kong.HelpOptions{NoAppDescFormat: true, NoExpandSubcommands: true, Compact: true}),
		kong.ValueFormatter(flags.Describe), kong.Resolvers(kong.ResolverFunc(flags.Variables)),
		kong.WithHyphenPrefixedParameters(true), kong.Writers(terminal.Stdout, os.Stderr),
	}
}

// alone leaves the other commands out where the arguments begin with the name of one: kong describes every flag of every command that it has, which takes
// longer than all else before a model is opened. Help, completion and hints about names need all.
func alone(args []string) kong.Option {
	var others []string
	found := false
	for f := range reflect.TypeFor[commands]().Fields() {
		_, passes := f.Tag.Lookup("passthrough")
		command := len(args) > 0 && strings.ToLower(f.Name) == args[0] && !passes && args[0] != "completion"
		if found = found || command; !command && !f.Anonymous {
			others = append(others, f.Name)
		}
	}
	if !found {
		return kong.IgnoreFields()
	}
	return kong.IgnoreFields(`^commands\.(` + strings.Join(others, "|") + ")$")
}

// chooseKernels makes the named implementation of the kernels run; "": the fastest.
func chooseKernels(name string) error {
	if name == "" {
		return nil
	}
	if err := grove.UseKernels(name); err != nil {
		return &exit.VariableError{Name: "GROVE_KERNELS", Err: err}
	}
	return nil
}
