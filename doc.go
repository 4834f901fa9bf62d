// Package grove runs language models on the CPU and decodes several tokens a step without changing the answer. For
// the same model file, prompt, settings and seed, the tokens and their log-probabilities are the same bit for bit:
// alone or beside other answers, with drafts or without, for any number of threads and any size of prefill step.
//
// # A program
//
//	m, err := grove.Open("gopher-target", grove.Options{}) // a model inside the package; or the path of a GGUF file
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer m.Close()
//	g, err := m.Generate(ctx, grove.Request{Prompt: "func main()", MaxTokens: 60, Sampling: m.DefaultSampling()})
//	if err != nil {
//		log.Fatal(err)
//	}
//	for t, err := range g.Tokens() {
//		if err != nil {
//			log.Fatal(err)
//		}
//		fmt.Print(t.Text)
//	}
//
// [Generation.Text] returns the whole text instead, and [Generation.Stats] the figures. The zero [Sampling] takes the
// likeliest token each time; [Model.DefaultSampling] and [Model.DefaultPenalties] are what the model's file recommends.
// Without [Request.Seed] a seed is drawn, and Stats reports it.
//
// # Chat
//
// [Model.Chat] answers a list of [Message] by the template of the model's file. [Model.NewConversation] keeps what is
// computed between turns. [Generation.Parts] tells thoughts, content and calls of tools apart (docs/answers.md).
// [Model.ApplyTemplate] returns the prompt alone. A control token that is spelled in a
// message is plain text.
//
// # Embeddings, logits, tokens
//
// [Model.Embed] returns the vector of a text, [Model.EmbedTokens] a vector for each token. [Model.Logits] and
// [Model.Logprobs] return a row for each token of a text, [Model.States] the streams behind chosen layers. [Model.Tokenize] and [Model.Detokenize] convert between
// text and ids.
//
// # Adapters
//
// [Options.Adapters] and [Model.LoadAdapter] open LoRA adapters, and [Request.Adapters] says which work on a text, with their scales
// (docs/adapters.md). Texts with different adapters share steps, and the answer of each is that which it has alone.
//
// # Sessions
//
// [Request.Session] names a file that keeps the computed keys and values of a text. A later prompt with the same
// beginning is not computed again. Within a process the cache finds equal beginnings by itself; [Request.CacheSalt]
// keeps requests apart.
//
// # Drafting
//
// Methods draft tokens, the model verifies several in one step, and a rule accepts some. [Request.Method] names the
// methods; the default, [MethodAuto], takes the exact methods that are marked so and whose needs are met, and runs
// the drafts that pay by the measured cost of steps. [Options.Draft] adds a draft model, [Request.Prediction] a text
// that the answer probably contains. [Methods] lists the methods and [Rules] the rules, with their grades: an exact
// answer is that of plain decoding, a same-distribution answer has its distribution, a lossy one differs. Stats
// reports the grade. [Model.Tune] measures the cost of steps ahead of time.
//
// # Constraints
//
// [Request.Constraint] holds an answer to a JSON schema, a regular expression, a grammar, a list of texts or a program of
// the caller's: no other token is drawn, and no legal one is forbidden (docs/constraints.md). [Model.CheckConstraint]
// compiles one ahead of a request, and [CheckText] says where a text leaves a language. [Request.Heal] lets a prompt that ends inside a word go on.
//
// # Searches and sequences
//
// [Request.Search] names a program that computes several answers and chooses one; [Searches] lists them.
// [Model.NewSequence] opens a text that a program of the caller's own takes further: it draws, forks, truncates and
// cancels, with a [Stage] of its own that changes logits or allows some tokens only. [Combiner] draws one token for
// two sequences.
//
// # Errors
//
// Errors have kinds, for errors.Is: [ErrBusy], [ErrContext], [ErrClosed], [ErrCancelled], [ErrPanic], [ErrEncoder], [ErrSource], [ErrPrefix],
// [ErrSession], [ErrSessionFile], [ErrCost], [ErrCacheFull], [ErrMemory], [ErrCacheRange], [ErrNotFinite], [ErrAllMasked],
// [ErrConstraint]. [OptionError] reports options and requests that cannot be honoured, and [PromptError] a prompt that exceeds the
// context; both are types, for errors.As. A cancelled context ends a computation within the time of a layer.
//
// # Concurrency
//
// A [Model] is safe for concurrent use: the answers of all goroutines share steps, [Options.Parallel] at a time, and
// further ones wait, any number unless [Options.Queue] bounds it. A [Generation], a [Conversation], a [Sequence] and a
// [Combiner] are each for one goroutine at a time. [Model.Close] ends what still runs, with [ErrClosed].
//
// # The source
//
// Ten places, the loop of the next token first:
//
//  1. [Model.Generate] (generate.go): a request becomes a sequence, a draw and a stream of tokens.
//  2. Sequence.Next (internal/engine/sequence.go) and round (internal/engine/round.go): one round of drafts, a step, a rule.
//  3. Maker (internal/engine/step/maker.go): the rows of all waiting sequences become one forward pass.
//  4. Forest (internal/forest/forest.go): sequences, trees of draft rows, and which rows a row sees.
//  5. Cache (internal/kv/cache.go): pages of keys and values, found by content.
//  6. Exec (internal/compute/exec.go): the operations of a forward pass; internal/kernel has their loops.
//  7. Qwen 3 (internal/model/arch/qwen3.go): an architecture, as its paper writes it.
//  8. Drafter (method/method.go): the contract of methods, and what they are told; prompt lookup is the smallest of them.
//  9. Planner.Choose (internal/engine/plan/planner.go): which drafts pay by the cost of steps on this machine.
//  10. Rules (internal/verify/verify.go): which drafts become text; internal/verify/reference is the whole of speculation over tables.
//
// docs/where.md answers where a thing is decided. "go list -f '{{.ImportPath}}: {{.Doc}}' ./..." lists the packages; a package
// imports packages of lower lines of internal/lint/rooms_test.go only. In the root: cmd, bench and server on top of this package; method, search,
// constrain, diffuse and score are the kinds that others may add to; internal is the floor; lab, a module of its own, answers questions.
package grove

import (
	"cmp"
	"reflect"
	"runtime/debug"

	"grove/internal/compute"
	"grove/internal/kernel"
)

// Build describes the code that runs.
type Build struct {
	Version  string // of this module; "(devel)" where it was not built as a released version
	Revision string // of the source, "" where it is not known; "+dirty" follows where it was changed
	Numerics string // outputs are bit-equal between builds that share it
	Kernels  string // the implementation of the kernels in use: an instruction set, or "portable"
	Named    bool   // [UseKernels] chose it; else it is the fastest that equals the portable one

	// Checks are the comparisons so far of implementations with the portable one. One that differs is never used.
	Checks []KernelCheck
}

// The linker sets these in the programs of a release: the version, and the commit of the source.
var release, commit string

// Numerics is the numerics version: outputs are bit-equal between builds that share it.
const Numerics = compute.NumericsVersion

// Version returns what is known of this build. It chooses the kernels, as [Open] does.
func Version() Build {
	checked.Choose(nil)
	checks, named := checked.Checked()
	b := Build{Version: "(devel)", Numerics: Numerics, Kernels: kernel.Implementation(), Named: named, Checks: checks}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	path := reflect.TypeFor[Build]().PkgPath() // this module's: the package is at its root
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == path && m.Version != "" {
			b.Version = m.Version
		}
	}
	if info.Main.Path == path {
		b.Revision = revision(info.Settings)
	}
	b.Version, b.Revision = cmp.Or(release, b.Version), cmp.Or(commit, b.Revision)
	return b
}

func revision(settings []debug.BuildSetting) (rev string) {
	dirty := ""
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			rev = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+dirty"
		}
	}
	if rev == "" {
		return ""
	}
	return rev + dirty
}
