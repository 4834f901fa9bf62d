package grove

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"

	"grove/internal/engine"
	"grove/internal/engine/speculate"
	"grove/internal/forest"
	"grove/internal/mmap"
	"grove/internal/model"
	_ "grove/internal/model/all" // links the architectures
	"grove/internal/par"
	"grove/internal/resident"
	"grove/internal/sample"
	"grove/internal/text/chat"
	"grove/internal/text/prompt"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
	"grove/method"
	_ "grove/method/all"      // links the methods
	_ "grove/search/programs" // links the searches
)

// Options says how a model is opened. The zero value is the usual case.
type Options struct {
	Context   int           // tokens of a text, prompt included; 0: the model's own, or what half of the memory that is left holds for Parallel texts
	CacheType string        // f32, f16 or q8_0; "": f16, of an encoder f32
	Threads   int           // threads; 0: one for each core that the process may use
	Parallel  int           // texts that are computed at a time; 0: 4
	Chunk     int           // tokens of a prefill step; 0: 512
	NoRepack  bool          // read weights from the file, without a packed copy in memory: slower, the same bits
	Eager     bool          // run every draft of a method, whether it pays or not: slower, the same answers
	Queue     int           // texts that may wait for one of the Parallel texts to end, and more are refused with [ErrBusy]; 0: [Unbounded]; [NoQueue]: none
	Memory    uint64        // bytes that weights and cache may take together; 0: the machine's
	Forget    bool          // do not read or write what drafting learns between runs: it changes the speed alone
	Adapters  []AdapterFile // to open with the model, in this order
	Draft     string        // a smaller model to draft with, named as for [Open]; best with the same vocabulary; "": none
	Datastore string        // a file of texts to draft from, made for the model's tokenizer (grove datastore); "": none
	Middle    string        // a model between the two in size, named as for [Open], for methods that need one; or a type of weights: the model's own in that type; "": none

	// Guides are models that steer answers, named as for [Open], or types of weights for the model's own in that type: a [Request.Search] such as contrast
	// asks for one or two of them, by their numbers from 1. They share the threads, and the bound of Memory.
	Guides []string

	// DraftThreads is the number of threads that the draft model has for itself, so that it can run while the model does; 0: it shares the model's.
	DraftThreads int

	// DraftHead is a safetensors file with a head of the draft model that says how likely its drafts are to be accepted, for the method
	// draft-specdec; see [method.ReadAcceptance]; "": none.
	DraftHead string

	// Heads is a file of heads or of a draft module for the model (grove convert --heads); "": the one that lies beside the model's file, MODEL.heads.gguf
	// beside MODEL.gguf or heads.gguf in its folder, if there is one; [NoHeads]: none, and a module in the model's own file is not used. The answers are the same.
	Heads string

	// SkipAdapters is a file of adapters that stand for layers of tokens, by a period ([Request.SkipLayers]; grove convert --heads); "": none.
	SkipAdapters string

	// DraftMemory bounds the bytes that drafting takes besides weights: caches of the models that draft, and rounds. The drafts of a round,
	// the tokens of a text in the models that draft, and the texts that draft at a time are as many as it allows; 0: any. The answers are
	// the same. A bound that is too small for one draft is an [*OptionError] with the least that would do.
	DraftMemory uint64

	Judge string       // a safetensors file with a head for the rule judge; see [verify.ReadHead]; "": none
	Log   *slog.Logger // is told of the context, and of kernels that this machine does not run correctly, which are then not used; nil: the default logger, of kernels alone

	Prefixes engine.Prefixes // a folder of computed pages that servers share, so that each computes of a prompt what none has; the answers are the same

	// Progress, where it is not nil, is told the bytes of weights that are loaded, of all of the file's, by the goroutine of Open; those of the draft model begin at 0 again.
	Progress func(done, all int64)

	// DraftVocab is the number of tokens of its vocabulary that the draft model considers, the most frequent ones of the
	// texts so far; 0: all; [AutoVocab]. The answers are the same.
	DraftVocab int

	// ChatTemplate is the template of conversations: the name of another template of the model's file or of [chat.Builtin],
	// or a Jinja file; "": the template of the model's file, or that of the family to which its vocabulary belongs.
	ChatTemplate string

	Reasoning Reasoning // whether the model thinks before it answers in conversations; "": as the template does
}

// Sampling says how tokens are drawn; the zero value takes the likeliest one each time.
type Sampling = sample.Params

// DefaultSampling returns the customary settings: temperature 0.8, top-k 40, top-p 0.95, min-p 0.05. Its Seed is 0;
// [Request.Seed] decides. [Model.DefaultSampling] has those that a model's file recommends.
func DefaultSampling() Sampling { return sample.DefaultParams() }

// Model is an open model. It is safe for concurrent use.
type Model struct {
	resident *resident.Model

	// These are the resident model's.
	engine    *engine.Engine
	model     model.Model
	tokenizer *tokenizer.Tokenizer
	templates *chat.Templates

	prompts     *prompt.Maker // of conversations
	advice      Advice
	constraints constraints
}

const (
	defaultParallel = 4
	maxThreads      = 1024

	// Unbounded is the value of [Options.Queue], and of [Info], by which any number of texts may wait.
	Unbounded = 1 << 30
	// NoQueue is the value of [Options.Queue] by which no text waits.
	NoQueue = -1
	// NoHeads is the value of [Options.Heads] for a model without heads.
	NoHeads = resident.NoHeads

	// AutoVocab is the value of [Options.DraftVocab] by which it is chosen for the most tokens a second: by the measured cost of both
	// models' steps, how often drafts are accepted, and the frequencies of tokens.
	AutoVocab = method.AutoVocab
)

// OptionError reports options that are invalid, by themselves or for the model that was opened.
type OptionError = resident.OptionError

// Open opens a GGUF file, a Hugging Face folder (see package hf) or, where no file has that name, a model of package
// gopher by its name. Errors: an [*OptionError]; a *gguf.FormatError or *safetensors.FormatError for a damaged file; a
// *model.LoadError or the tokenizer's error for a model that cannot be run; those of package hf and of the file system.
func Open(path string, o Options) (*Model, error) {
	f, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	return open(f, o)
}

// OpenFile opens the file of a model as [Open] does, and loads no weights.
func OpenFile(path string) (*gguf.File, error) { return resident.OpenFile(path) }

// OpenBytes opens a GGUF file that is in memory. The bytes must not change while the model is open.
func OpenBytes(data []byte, o Options) (*Model, error) {
	f, err := gguf.Parse(data)
	if err != nil {
		return nil, err
	}
	return open(f, o)
}

func open(f *gguf.File, o Options) (*Model, error) {
	checked.Choose(o.Log)
	if err := o.check(); err != nil {
		_ = f.Close() // its error would only hide the cause
		return nil, &OptionError{Err: err}
	}
	r, err := resident.Open(f, o.resident())
	if err != nil {
		return nil, err
	}
	m := &Model{resident: r, engine: r.Engine, model: r.Model, tokenizer: r.Tokenizer, templates: r.Templates}
	if err := mmap.Catch(func() error { return m.read(o) }); err != nil {
		m.Close()
		return nil, err
	}
	if o.Log != nil {
		r.LogContext(o.Log)
	}
	return m, nil
}

// resident says how the model is brought into memory, and what beside it.
func (o Options) resident() resident.Options {
	queue := max(o.Queue, 0) // NoQueue is none
	if o.Queue == 0 {
		queue = Unbounded
	}
	return resident.Options{
		Context: o.Context, CacheType: o.CacheType, Threads: cmp.Or(o.Threads, par.Threads()), Parallel: cmp.Or(o.Parallel, defaultParallel), Chunk: o.Chunk,
		NoRepack: o.NoRepack, Queue: queue, Memory: o.Memory, Progress: o.Progress, Eager: o.Eager, Forget: o.Forget, Adapters: o.Adapters,
		Draft: o.Draft, DraftThreads: o.DraftThreads, DraftVocab: o.DraftVocab, DraftHead: o.DraftHead, Heads: o.Heads, SkipAdapters: o.SkipAdapters, DraftMemory: o.DraftMemory, Middle: o.Middle, Guides: o.Guides, Judge: o.Judge, Datastore: o.Datastore, Prefixes: o.Prefixes,
	}
}

// read reads what the model's file, and the options, say of conversations and of the draw of tokens.
func (m *Model) read(o Options) error {
	if o.ChatTemplate != "" {
		if err := m.templates.Choose(o.ChatTemplate); err != nil {
			return err
		}
	}
	var err error
	m.advice = sample.ReadAdvice(m.resident.File)
	m.prompts, err = prompt.New(m.templates, m.tokenizer, o.Reasoning)
	return err
}

// check refuses numbers that make no sense for any model.
func (o Options) check() error {
	if _, err := ParseCacheType(o.CacheType); err != nil {
		return err
	}
	for _, v := range []struct {
		name string
		n    int
	}{{"context", o.Context}, {"threads", o.Threads}, {"parallel", o.Parallel}, {"chunk", o.Chunk}, {"draft threads", o.DraftThreads}} {
		if v.n < 0 {
			return fmt.Errorf("grove: %s is %d", v.name, v.n)
		}
	}
	if o.Queue < NoQueue || o.Queue > Unbounded {
		return fmt.Errorf("grove: Options.Queue is %d; it must be NoQueue (-1) or from 0 (Unbounded) to %d", o.Queue, Unbounded)
	}
	switch {
	case o.DraftVocab < AutoVocab:
		return fmt.Errorf("grove: Options.DraftVocab is %d; it must be AutoVocab (-1), 0 (all) or more", o.DraftVocab)
	case o.DraftVocab == AutoVocab && o.Draft == "":
		return errors.New("grove: the draft vocabulary is auto, and no draft model is given; add one (--draft)")
	case o.DraftVocab > 0 && o.Draft == "":
		return fmt.Errorf("grove: the draft vocabulary has %d tokens, and no draft model is given; add one (--draft)", o.DraftVocab)
	}
	if o.DraftThreads > 0 && o.Draft == "" {
		return fmt.Errorf("grove: the draft model has %d threads and none is given; add one (--draft)", o.DraftThreads)
	}
	if o.DraftHead != "" && o.Draft == "" {
		return fmt.Errorf("grove: a head for drafts (%s), and no draft model", o.DraftHead)
	}
	if n := max(o.Threads, o.DraftThreads); n > maxThreads {
		return fmt.Errorf("grove: %d threads; at most %d", n, maxThreads)
	}
	return nil
}

// ParseCacheType returns the type of cache that a name stands for; "" is F16.
func ParseCacheType(name string) (tensor.Type, error) { return resident.ParseCacheType(name) }

// Close ends what is computed, within a layer's time, stops the model's threads and unmaps its file. It writes what
// drafting has learned of the model to the user's cache directory, unless [Options.Forget] is set. Calls that are under
// way, and later ones that compute or that begin an answer, give [ErrClosed]; conversations and sequences can still be
// closed, and what needs no computing works on: Info, tokens, templates. A further Close returns what the first returned.
// A [Stage] must not call it.
func (m *Model) Close() error { return m.resident.Close() }

// Files returns the files, and folders of files, that the model, its adapters and the models beside it were opened from: no result is to be written there.
func (m *Model) Files() []string { return m.resident.Files() }

// Info describes an open model.
type Info struct {
	Name, Arch     string
	SampleDigest   string // names the hyperparameters, and the weights by the first bytes of each tensor
	Context        int    // tokens of a text
	TrainedContext int    // the longest text that the model was trained for, the bound of Context
	Vocabulary     int
	Width          int // of states
	Layers         int
	Encoder        bool // it gives embeddings and generates no text
	Diffusion      bool // it fills a canvas by masked diffusion
	EncoderDecoder bool // it is an encoder-decoder: the prompt is the source that its encoder reads
	Threads        int
	Parallel       int // texts that are computed at a time
	Queue          int // texts that may wait besides; [Unbounded]: any number
	WeightBytes    int // memory that the weights take
	CacheBytes     int // memory that the cache can come to use
	GuideBytes     int // memory that the weights and caches of the guides can come to use

	Draft    string   // the draft model's name, and how its tokens become the model's; "": there is none
	Middle   string   // the middle model's name; "": there is none
	Guides   []string // the guides' names, and whether their tokens are the model's
	Heads    []string // the families of heads and draft modules that draft for the model, each with its name, and what of the file is left out
	Sampling Advice   // what the model's file recommends

	Drafting   DraftSize  // how large drafting may be
	DraftBytes DraftBytes // what it takes besides weights and the rounds of texts, which [Stats] has
}

// DraftSize is how large drafting may be.
type DraftSize = speculate.MemorySize

// DraftBytes are the bytes of drafting, by what they hold.
type DraftBytes = speculate.MemoryBytes

// Info returns what the model is and what it takes.
func (m *Model) Info() Info {
	i := m.model.Info()
	seqs, queue := m.engine.Slots()
	draft, middle := "", ""
	if d := m.resident.Draft; d != nil {
		draft = fmt.Sprintf("%s: %v", d.Name(), m.resident.VocabMap)
	}
	if d := m.resident.Middle; d != nil {
		middle = d.Name()
	}
	guides, guideBytes := m.resident.GuideInfo()
	drafting, bytes := m.resident.DraftSize()
	return Info{
		Drafting: drafting, DraftBytes: bytes,
		Name: i.Name, Arch: i.Arch, SampleDigest: i.SampleDigest, Context: m.engine.Context(), TrainedContext: i.Context, Vocabulary: i.Vocabulary, Width: i.Width, Layers: len(i.Layers), Encoder: i.Embeds(), EncoderDecoder: i.Source != nil, Diffusion: i.Diffusion != nil,
		Threads: m.resident.Pool.Threads(), Parallel: seqs, Queue: queue, WeightBytes: i.Bytes, CacheBytes: m.engine.CacheBytes(), Draft: draft, Middle: middle, Guides: guides, GuideBytes: guideBytes, Heads: m.resident.Heads(), Sampling: m.advice,
	}
}

// Vocabulary returns the number of tokens that the model knows.
func (m *Model) Vocabulary() int { return m.model.Info().Vocabulary }

// PageTokens is the number of tokens of a page of the cache: texts share whole pages.
const PageTokens = forest.SlotsPerPage

// busy says which option a text is refused by, where too many are queued.
func (m *Model) busy(err error) error {
	if !errors.Is(err, ErrBusy) {
		return err
	}
	parallel, queue := m.engine.Slots()
	return fmt.Errorf("grove: Options.Queue: %d answers run and %d wait, as many as Options.Parallel and Options.Queue allow: %w", parallel, queue, ErrBusy)
}

// Load counts the sequences, pages and steps of a model's engine at a moment.
type Load = engine.Load

// Load returns what the model's engine does. It does not wait for a step.
func (m *Model) Load() Load { return m.engine.Load() }

// GuideLoads returns what the engines of the guides do, in the order of [Options.Guides]. It does not wait for a step.
func (m *Model) GuideLoads() (all []Load) {
	for _, d := range m.resident.Guides {
		all = append(all, d.Engine.Load())
	}
	return all
}

// generates returns an [*OptionError] where the model gives no text, and [ErrClosed] where it is closed.
func (m *Model) generates() error {
	if err := m.engine.Closed(); err != nil {
		return err
	}
	if err := m.engine.CheckGenerates(); err != nil {
		return &OptionError{Err: err}
	}
	return nil
}

// prefixed returns an [*OptionError] where a prompt of n tokens is to be a prefix and cannot, for the request or the model.
func (m *Model) prefixed(r *Request, n int) error {
	if !r.Prefix {
		return nil
	}
	if r.Session != "" || r.Heal || r.HealExact {
		return &OptionError{Err: errors.New("grove: Request.Prefix: a session, or the healed end of a prompt, is of a text whose tokens see what is before them")}
	}
	if err := m.engine.CheckPrefix(n); err != nil {
		return &OptionError{Err: err}
	}
	return nil
}

// Piece returns the bytes that a token stands for by itself, which need not be whole characters; an id out of range is an error.
func (m *Model) Piece(id token.ID) ([]byte, error) { return m.tokenizer.AppendPiece(nil, id, true) }

// Detokenize returns the text of ids; an id out of range is an error.
func (m *Model) Detokenize(ids []token.ID) (string, error) { return m.tokenizer.Decode(ids, true) }
