// Command grove-beam answers files of requests, or embeds files of texts, in a pipeline of Apache Beam. lab/docs/beam.md describes it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/memfs"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/s3"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx"

	"grove/lab/beam"
)

var (
	model  beam.Model
	files  beam.Files
	task   = flag.String("task", "batch", "batch: answer requests in OpenAI's batch format; embed: write the embeddings of texts")
	format = flag.String("format", string(beam.Text), "form of the texts to embed: text, one a line; jsonl, objects with custom_id and text")
)

func init() {
	flag.StringVar(&files.Input, "input", "", "file of the input, or a pattern of several: a path, gs://... or s3://...")
	flag.StringVar(&files.Output, "output", "", "file of the answers or embeddings, which is replaced")
	flag.StringVar(&files.Errors, "errors", "", "file of the lines without an answer, which is replaced (default: beside the output, NAME.errors.jsonl)")
	flag.StringVar(&model.Path, "model", "", "model on each worker: a GGUF file, a folder or a name (default: the model inside this program)")
	flag.StringVar(&model.Name, "name", "", "name of the model in requests (default: that of its file)")
	flag.StringVar(&model.Identity, "identity", "", "identity that the model must have on each worker (default: any)")
	flag.StringVar(&model.CacheType, "cache-type", "f16", "type of cached keys and values: f32, f16 or q8_0")
	flag.StringVar(&model.ChatTemplate, "chat-template", "", "chat template: a name, or a Jinja file on each worker (default: the model's own)")
	flag.IntVar(&model.Context, "context", 0, "tokens of a text, prompt included; 0: the model's own, as memory allows")
	flag.IntVar(&model.Threads, "threads", 0, "threads of a worker; 0: one for each core")
	flag.IntVar(&model.Parallel, "parallel", 16, "texts that a worker computes at a time")
	flag.IntVar(&model.Flight, "flight", 0, "requests that a worker has under way at a time; 0: twice --parallel")
	flag.Uint64Var(&model.Memory, "memory-limit", 0, "bytes of weights, caches and requests in a worker; 0: those of the machine")
}

func main() {
	flag.Parse()
	sdk.Init() // a worker of a runner stays in it
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := errors.Join(run(ctx), beam.Close()); err != nil {
		fmt.Fprintln(os.Stderr, "grove-beam:", err)
		os.Exit(1)
	}
}

// run builds the pipeline of the flags and runs it to its end.
func run(ctx context.Context) error {
	if flag.NArg() > 0 {
		return fmt.Errorf("%q is no flag; see -help", flag.Arg(0))
	}
	p, s := sdk.NewPipelineWithRoot()
	var err error
	switch *task {
	case "batch":
		err = beam.Batch(s, model, files)
	case "embed":
		err = beam.Embed(s, model, files, beam.Format(*format))
	default:
		err = fmt.Errorf("--task is %q; it must be batch or embed", *task)
	}
	if err != nil {
		return err
	}
	return beamx.Run(ctx, p)
}
