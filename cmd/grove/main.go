// Command grove runs language models: it generates text, serves models over HTTP, and inspects, converts and measures
// them. docs/cli.md describes every command, flag, variable and exit code.
package main

import (
	"os"

	"github.com/alecthomas/kong"

	"grove/internal/command/benchmarks"
	"grove/internal/command/flags"
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

// program is the command line.
var program = flags.Program{
	Name: "grove", Description: description,
	Help:     kong.HelpOptions{NoAppDescFormat: true, NoExpandSubcommands: true, Compact: true},
	Commands: func() any { return new(commands) },
}

func main() { os.Exit(program.Run(os.Args[1:])) }
