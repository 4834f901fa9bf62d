// Package flags declares the flags that several commands share, each once, so that it means the same everywhere. A
// command embeds the structs of its flags. Where a default or a word of the help differs between commands, the struct
// names a variable, which the command may set: `set:"zero=all"`.
//
// The tag var names the environment variable that gives a flag its value where the command line does not.
package flags

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"grove"
	"grove/bench"
	"grove/internal/command/exit"
	"grove/internal/command/harmless"
	"grove/internal/command/terminal"
	"grove/internal/fileio"
	"grove/internal/par"
)

// Threads is -t.
type Threads struct {
	N Count `name:"threads" short:"t" placeholder:"N" var:"GROVE_THREADS" help:"Threads; 0: one for each core that the process may use."`
}

// Parsed implements [Hooked].
func (t *Threads) Parsed() Hook { return Hook{Of: t, Do: t.parsed} }

// parsed warns of more threads than the process has processors for: they take turns, and a step waits for all of them.
func (t *Threads) parsed(*kong.Context) error {
	const most = 1024 // above it is an error
	if may := par.Threads(); int(t.N) > may && t.N <= most {
		fmt.Fprintf(os.Stderr, "grove: --threads: %d; the process may use %d processors, and more threads than that make steps slower\n", t.N, may)
	}
	return nil
}

// Parallel is --parallel. The variable parallel is its default.
type Parallel struct {
	N Count `name:"parallel" placeholder:"N" default:"${parallel=4}" var:"GROVE_PARALLEL" help:"Texts of a model that are computed at a time. Default: ${default}."`
}

// Context is -c. The variable context is the meaning of 0.
type Context struct {
	N Count `name:"context" short:"c" placeholder:"N" var:"GROVE_CONTEXT" help:"Tokens of a text, prompt included; 0: ${context=the model's own, 4096 at most}."`
}

// Cache is --cache-type. The variable cache is its default.
type Cache struct {
	Type CacheName `name:"cache-type" placeholder:"TYPE" default:"${cache=f16}" var:"GROVE_CACHE_TYPE" help:"Type of cached keys and values: f32, f16 or q8_0; states of recurrent layers are always f32. Default: ${default}."`
}

// Repack is --no-repack.
type Repack struct {
	Off bool `name:"no-repack" var:"GROVE_NO_REPACK" help:"Read weights from the file, without a copy in memory: slower, the same text."`
}

// Draft names what drafts come from besides the model: models, a datastore.
type Draft struct {
	Path         string `name:"draft" placeholder:"MODEL" var:"GROVE_DRAFT" help:"A smaller model that drafts tokens, named as for --model; best with the same vocabulary."`
	Vocab        vocab  `name:"draft-vocab" placeholder:"N" var:"GROVE_DRAFT_VOCAB" help:"Tokens that the draft model considers, the most frequent ones; 0: all; auto: as many as give the most tokens a second. The text is the same."`
	DraftThreads Count  `name:"draft-threads" placeholder:"N" var:"GROVE_DRAFT_THREADS" help:"Threads that the draft model has for itself, besides those of --threads; 0: none, it shares the model's."`
	Head         string `name:"draft-head" placeholder:"FILE" var:"GROVE_DRAFT_HEAD" help:"A safetensors file with the draft model's acceptance head, by which the method draft-specdec ends its drafts. The text is the same."`
	Heads        string `name:"heads" placeholder:"FILE" var:"GROVE_HEADS" help:"A file of heads or of a draft module for the model (grove convert --heads); without it, the one beside the model's file, if any; off: none. The text is the same."`
	Memory       Bytes  `name:"draft-memory" placeholder:"BYTES" var:"GROVE_DRAFT_MEMORY" help:"Memory that drafting may take besides weights, such as 64MiB: rounds, contexts of the models that draft, and texts that draft at a time, are as large as it allows; without it, any. The text is the same."`
	Judge        string `name:"judge" placeholder:"FILE" var:"GROVE_JUDGE" help:"A safetensors file with the head by which --accept judge finds draft tokens important or not (lossy)."`
	Middle       string `name:"middle" placeholder:"MODEL" var:"GROVE_MIDDLE" help:"A model of a size between the two for methods that need one, with the model's vocabulary; or a type of weights, such as q4_0: the model's own in that type."`
	Store        string `name:"datastore" placeholder:"FILE" var:"GROVE_DATASTORE" help:"Texts to draft from (method rest): a file of grove datastore, made for the model's tokenizer."`
}

// Beside puts them into the options that a model is opened with.
func (d Draft) Beside(o *grove.Options) {
	o.Draft, o.DraftVocab, o.DraftThreads, o.Middle = d.Path, int(d.Vocab), int(d.DraftThreads), d.Middle
	o.Datastore, o.Judge, o.DraftHead, o.Heads, o.DraftMemory = d.Store, d.Judge, d.Head, d.Heads, uint64(d.Memory)
}

// Reasoning is --reasoning.
type Reasoning struct {
	How string `name:"reasoning" enum:"auto,on,off" placeholder:"auto|on|off" default:"auto" var:"GROVE_REASONING" help:"Whether the model thinks before it answers: as its template does, always, or not at all. Default: ${default}."`
}

// JSON is --json.
type JSON struct {
	On bool `name:"json" var:"GROVE_JSON" help:"Write JSON instead of text: one object, or one object a line."`
}

// Save is --save.
type Save struct {
	File string `name:"save" placeholder:"FILE" help:"Write the figures to FILE too, as JSON: one object, or one object a line."`
}

// MaxTokens is -n. The variable tokens is its default, the variable end is the meaning of 0.
type MaxTokens struct {
	N tokenLimit `name:"max-tokens" short:"n" placeholder:"N" default:"${tokens}" var:"GROVE_N" help:"Tokens to generate at most; 0: ${end=until the text or the context ends, as -1}. Default: ${default}."`
}

// Limit returns the number of tokens; 0: until the text or the context ends.
func (m MaxTokens) Limit() int { return max(0, int(m.N)) }

// Repeat is -r.
type Repeat struct {
	N Count `name:"repeat" short:"r" placeholder:"N" default:"5" help:"Times that a measurement is repeated; figures are medians. Default: ${default}."`
}

// Temperature is --temp. The variable temp is the value without the flag.
type Temperature struct {
	T *temperature `name:"temp" placeholder:"T" var:"GROVE_TEMP" help:"Temperature; 0 takes the likeliest token each time. Without it, ${temp=0}."`
}

// Or returns the temperature, or another where none is given.
func (t Temperature) Or(other float32) float32 {
	if t.T == nil {
		return other
	}
	return float32(*t.T)
}

// Seed is --seed. The variable seed is the value without the flag.
type Seed struct {
	Value *uint64 `name:"seed" placeholder:"S" var:"GROVE_SEED" help:"Seed of random numbers, from 0 to 2^64-1: the same seed gives the same result. Without it, ${seed}."`
}

// Or returns the seed, or another where none is given.
func (s Seed) Or(other uint64) uint64 {
	if s.Value == nil {
		return other
	}
	return *s.Value
}

// Sampling says how tokens are drawn.
type Sampling struct {
	Stages
	Temperature `set:"temp=the model's own, or 0.8"`
	Seed        `set:"seed=one is drawn and reported"`

	TopK *topK     `name:"top-k" placeholder:"K" var:"GROVE_TOP_K" help:"Draw from the K likeliest tokens; 0: all. Without it, the model's own, or 40."`
	TopP *topP     `name:"top-p" placeholder:"P" var:"GROVE_TOP_P" help:"Draw from the likeliest tokens whose probabilities sum to P; 0 or 1: all. Without it, the model's own, or 0.95."`
	MinP *minP     `name:"min-p" placeholder:"P" var:"GROVE_MIN_P" help:"Draw from tokens at least P times as likely as the likeliest; 0: all. Without it, the model's own, or 0.05."`
	Stop stopTexts `name:"stop" placeholder:"TEXT" sep:"none" var:"GROVE_STOP" help:"End the text before TEXT; may be given several times."`
}

// Drafting says how tokens are drafted.
type Drafting struct {
	Method methodNames `name:"method" placeholder:"NAMES" default:"auto" var:"GROVE_METHOD" help:"Methods that draft several tokens a step: auto, off, or names with commas between (see grove methods). Default: ${default}."`
	Accept
}

// Accept says how draft tokens are accepted.
type Accept struct {
	Rule acceptRule `name:"accept" placeholder:"RULE" default:"exact" var:"GROVE_ACCEPT" help:"Rule that accepts draft tokens: exact, the method's own; or a rule of grove methods, such as typical or threshold:beta=5,tau=3, which accept tokens that are likely enough (lossy). Default: ${default}."`
}

// Request is the flags of a command that generates text: the model, how it is opened, and how it generates.
type Request struct {
	Subject
	Sampling
	Context
	Threads
	Cache
	Repack
	Drafting
	Draft
	Adapters
	Diffusion
	NoCanvas bool `name:"no-canvas" var:"GROVE_NO_CANVAS" help:"Of a diffusion model: do not show at a terminal how the canvas fills. Nor do TERM=dumb and NO_COLOR."`
	Search
}

// Options returns how the model is opened, for one text at a time.
func (f *Request) Options() (grove.Options, error) {
	adapters, err := f.Adapters.Files(false)
	o := grove.Options{
		Context: int(f.Context.N), CacheType: string(f.Cache.Type), Threads: int(f.Threads.N), Parallel: 1, NoRepack: f.Repack.Off, Adapters: adapters,
	}
	f.Beside(&o)
	return o, errors.Join(err, f.put(&o))
}

// RequestOf returns the request that the flags describe for an open model, without a prompt. What no flag says is as the
// model's file recommends.
func (f *Request) RequestOf(m *grove.Model) (r grove.Request, err error) {
	if r = f.request(m.Advice()); r.Penalties.DRY.Multiplier != 0 {
		r.Penalties.DRY.Breakers, err = m.Breakers(f.DRYBreakers)
	}
	return r, err
}

// request returns the request that the flags describe for a model that recommends something.
func (f *Request) request(a grove.Advice) grove.Request {
	r := grove.Request{Seed: f.Seed.Value, Stop: f.Stop, Method: string(f.Method), Accept: string(f.Accept.Rule), Search: f.Program, Sampling: grove.DefaultSampling(), Diffusion: f.Diffusion.Setting()}
	s := &r.Sampling
	a.Apply(s, &r.Penalties)
	s.Temperature = f.Temperature.Or(s.Temperature)
	set(&s.TopK, f.TopK)
	set(&s.TopP, f.TopP)
	set(&s.MinP, f.MinP)
	f.Stages.apply(&r)
	return r
}

// set sets a setting to the value of a flag, where that is given.
func set[T, F int | float32 | topK | topP | minP](to *T, flag *F) {
	if flag != nil {
		*to = T(*flag)
	}
}

// AdviceOf returns what the model's file recommends and no flag overrides.
func (f *Request) AdviceOf(m *grove.Model) grove.Advice {
	a := m.Advice()
	drop(&a.Temperature, f.T != nil)
	drop(&a.TopK, f.TopK != nil)
	drop(&a.TopP, f.TopP != nil)
	drop(&a.MinP, f.MinP != nil)
	drop(&a.XTC, f.XTC != nil)
	drop(&a.Mirostat, f.Mirostat != nil)
	drop(&a.Order, f.Order != nil)
	drop(&a.Repeat, f.Repeat != nil)
	drop(&a.RepeatWindow, f.RepeatLast != nil || a.Repeat == nil)
	return a
}

func drop[T any](field **T, given bool) {
	if given {
		*field = nil
	}
}

// allMethods is the value of --methods that stands for all methods.
const allMethods = "all"

// Methods is --methods: methods that are measured or tested, each by itself. The variable methods is its default.
type Methods struct {
	Names methodList `name:"methods" placeholder:"NAMES" default:"${methods}" help:"Methods with commas between, each by itself; a + joins methods that work together; all: auto and every method whose needs are met. Default: ${default}."`
}

// All reports whether all methods are asked for.
func (f Methods) All() bool { return f.Names == allMethods }

// List returns the methods, each as [grove.Request] takes it. All methods include those whose needs the model may not meet.
func (f Methods) List() (names []string) {
	if !f.All() {
		return f.Names.split()
	}
	for _, m := range grove.Methods() {
		names = append(names, m.Name)
	}
	return append(names, grove.MethodAuto)
}

// LeftOut returns the function that reports a method of all methods whose needs the model does not meet; nil: a named
// method is not left out.
func (f Methods) LeftOut() func(method string, err error) {
	if !f.All() {
		return nil
	}
	return func(method string, err error) {
		fmt.Fprintf(os.Stderr, "grove: %s is left out: %s\n", method, harmless.Line(strings.TrimPrefix(err.Error(), "grove: ")))
	}
}

// describe returns the help of a flag or argument, with its environment variable.
func describe(value *kong.Value) string {
	if name := value.Tag.Get("var"); name != "" {
		return value.Help + " ($" + name + ")"
	}
	return value.Help
}

// Chunks is --chunks. The variable chunks is its default.
type Chunks struct {
	Most Count `name:"chunks" placeholder:"N" default:"${chunks=0}" help:"Chunks of the text to read at most; 0: all of the text. Default: ${default}."`
}

// TextFile is --file.
type TextFile struct {
	File string `name:"file" short:"f" placeholder:"FILE" help:"File of the text; without it, or with -, standard input."`
}

// Read returns the first of the texts that is not nil, else that of the file, else that of standard input, which it names so at a
// terminal. It refuses several.
func (f TextFile) Read(name string, texts ...*string) (string, error) {
	texts = slices.DeleteFunc(texts, func(text *string) bool { return text == nil })
	switch {
	case len(texts) > 1 || len(texts) > 0 && f.File != "":
		return "", exit.With(exit.CodeUsage, fmt.Errorf("%s is given twice: leave out all but one of --prompt, --file and the argument", name))
	case len(texts) > 0:
		return *texts[0], nil
	case f.File == "" || f.File == "-":
		return terminal.ReadInput(name)
	}
	b, err := fileio.ReadText(f.File, terminal.MaxText)
	return string(b), exit.File(err)
}

// ReadText returns the text of a file of several, which must be regular and UTF-8, of [terminal.MaxText] bytes at most.
func ReadText(path string) (string, error) {
	text, err := fileio.ReadRegular(path, terminal.MaxText)
	if err == nil && !utf8.Valid(text) {
		err = fmt.Errorf("%s: this is no text in UTF-8", path)
	}
	return string(text), exit.File(err)
}

// Out is --out, of results that are bytes.
type Out struct {
	File string `name:"out" short:"o" placeholder:"FILE" help:"File to write; without it, standard output."`
}

// Check refuses to write bytes to a terminal, to what cannot be written, and to the files that are read.
func (o *Out) Check(reads ...string) error {
	if o.File == "" && terminal.Is(os.Stdout) {
		return exit.With(exit.CodeUsage, errors.New("the result is bytes: name a file with --out, or redirect standard output"))
	}
	return terminal.CheckOptional(o.File, reads...)
}

// Write writes the result with what fill writes.
func (o *Out) Write(fill func(io.Writer) error) error {
	if o.File == "" {
		return fill(terminal.Stdout)
	}
	return terminal.WriteFile(o.File, fill)
}

// Prompts is --prompts. The variable prompts is the source of tasks without the flag.
type Prompts struct {
	File string `name:"prompts" placeholder:"FILE" help:"Tasks, one JSON object a line, as for bench methods; without it, ${prompts}."`
}

// Read reads the tasks of the file.
func (p Prompts) Read() ([]bench.Prompt, error) { return ReadWorkload(p.File) }

// ReadWorkload reads the tasks of a file.
func ReadWorkload(path string) ([]bench.Prompt, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, exit.File(err)
	}
	prompts, err := bench.ReadWorkload(f)
	return prompts, exit.File(errors.Join(err, f.Close()))
}
