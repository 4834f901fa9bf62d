package lint

import (
	"slices"
	"strings"
)

// rooms is the order of the packages, highest first: a package imports only packages of lower
// lines (rooms of one line, a room/* among them, do not import each other). "." is the root
// package. A suite of tests stands above what it tests.
var rooms = []string{
	"cmd/grove",
	"internal/command/arguments internal/command/benchmarks internal/command/conversation internal/command/headfile internal/command/scoring internal/command/served",
	"internal/command/canvas internal/command/completion internal/command/flags internal/command/markdown internal/command/summary",
	"internal/command/terminal",
	"internal/command/exit",
	"internal/command/harmless",
	"server",
	"server/adapters server/batches server/far server/openai server/llamacpp server/ollama server/anthropic server/rerank",
	"server/driver",
	"server/catalog",
	"server/serving server/structured",
	"server/access server/exposition server/traces",
	"server/wire",
	"bench",
	"bench/canvas bench/patterns bench/predict bench/serving bench/units bench/workload",
	"batch",
	"weights/pull",
	"weights/pull/hub weights/pull/registry",
	"weights/pull/transfer weights/find",
	".",
	"resident",
	"search/all suite/searchtest",
	"search/*",
	"search",
	"suite/methodtest suite/gophertest",
	"bytewise/tree diffuse/fill",
	"diffuse/board diffuse/latent diffuse/smooth",
	"engine/thoughts score/scorer",
	"score",
	"engine",
	"engine/drafting",
	"engine/learned engine/prefixes",
	"engine/scoring engine/session engine/timing",
	"engine/texts",
	"engine/step",
	"engine/memory engine/plan engine/queue engine/reading",
	"adapters",
	"diffuse",
	"method/all",
	"method/text/* method/logits/* method/model/* method/self/* method/heads/*",
	"method/module",
	"method/grow/retokenize method/grow/growtest",
	"method/grow method/layers method/suffixes method/trigrams",
	"method",
	"method/acceptance method/datastore method/vocabulary",
	"verify",
	"verify/reference",
	"suite/modeltest",
	"model/all",
	"model/arch model/hybrid model/encoder model/seq2seq model/module",
	"model",
	"model/factored",
	"model/synthetic",
	"internal/oracle/modules",
	"internal/oracle",
	"compute",
	"compute/walk",
	"compute/lowrank compute/output compute/perceptron compute/prior compute/substitute compute/transfer compute/vocab",
	"compute/cut compute/route",
	"compute/weight",
	"compute/rotary",
	"kv",
	"bytewise",
	"sample/constrain",
	"sample/constrain/nest",
	"sample/constrain/monitor/gosource",
	"sample/constrain/hmm sample/constrain/monitor sample/constrain/paths sample/constrain/reject",
	"sample/advice",
	"sample",
	"sample/constrain/gbnf sample/constrain/lark sample/constrain/schema",
	"sample/constrain/schema/scalar",
	"suite/schematest",
	"sample/constrain/schema/document",
	"sample/constrain/format",
	"sample/constrain/numbers sample/constrain/pattern",
	"sample/constrain/earley",
	"sample/constrain/vocab",
	"sample/constrain/grammar",
	"sample/constrain/regex",
	"forest",
	"internal/hftest",
	"weights/lora",
	"weights/heads weights/hf weights/quantize",
	"weights/hf/diffusion weights/hf/encoders weights/hf/hybrid weights/hf/mixtures weights/hf/seq2seq",
	"weights/hf/decoder",
	"weights/hf/folder",
	"text/prompt",
	"text/calls",
	"text/answer text/infill text/stream",
	"text/chat",
	"text/tokenizer",
	"text/tokenizer/pretoken text/tokenizer/schema",
	"text/jinja",
	"weights/gguf",
	"weights/safetensors",
	"internal/kernel/measure internal/kernel/selfcheck",
	"internal/kernel/matmul internal/kernel/scan",
	"internal/kernel",
	"weights/tensor",
	"internal/cachefile",
	"remote",
	"text/token",
	"internal/par/schedule",
	"gopher internal/atomicfile internal/guard internal/history internal/lint internal/machine internal/mmap internal/near internal/options internal/par internal/quota internal/stat server/page", // anyone may import them
	"internal/regular",
}

// doors are imports that the order of rooms allows and that are denied by name: no package of from imports one of to, unless
// but lists the package or the edge ("package > imported"). from and to are lists; a name that ends in /... stands for itself
// and all that lies below it.
var doors = []struct {
	from, to string
	but      []string
	why      string
}{
	{"cmd/... internal/command/... bench/...", "compute kv sample/... internal/kernel/...", []string{"bench > internal/kernel/measure"}, "commands and benchmarks use the front door, package grove"},
	{"cmd/... internal/command/...", "engine/...", nil, "commands use the front door, package grove"},
	{"...", "internal/kernel/measure", []string{"bench"}, "only bench measures kernels"},
	{"...", "internal/kernel/selfcheck", []string{"resident"}, "models in memory choose kernels"},
	{"method/...", "model/...", nil, "models and methods stay apart"},
	{"...", "method/text/...", []string{"method/all"}, "methods are reached through their registry"},
	{"...", "method/logits/...", []string{"method/all"}, "methods are reached through their registry"},
	{"...", "method/model/...", []string{"method/all"}, "methods are reached through their registry"},
	{"...", "method/self/...", []string{"method/all"}, "methods are reached through their registry"},
	{"...", "model/arch model/hybrid model/encoder model/seq2seq model/module", []string{"model/all"}, "architectures are reached through their registry"},
	{"...", "model/all", []string{".", "suite/modeltest"}, "the front door links the architectures"},
	{"...", "resident", []string{"."}, "models are opened at the front door"},
	{"server/...", "compute", nil, "the server uses the front door"},
	{"server/...", "engine/...", nil, "the server uses the front door"},
	{"server/...", "internal/kernel/...", nil, "the server uses the front door"},
	{"server/...", "kv", nil, "the server uses the front door"},
	{"server/...", "sample/...", nil, "the server uses the front door"},
}

// denied returns why a package must not import another; "": it may.
func denied(from, to string) string {
	for _, d := range doors {
		if within(from, d.from) && within(to, d.to) && !slices.Contains(d.but, from) && !slices.Contains(d.but, from+" > "+to) {
			return d.why
		}
	}
	return ""
}

// within reports whether a list of patterns stands for a package.
func within(dir, patterns string) bool {
	for pattern := range strings.FieldsSeq(patterns) {
		parent, below := strings.CutSuffix(pattern, "...")
		if dir == strings.TrimSuffix(parent, "/") || below && strings.HasPrefix(dir, parent) {
			return true
		}
	}
	return false
}

// numeric are the rooms whose bits are promised (N7).
var numeric = []string{"compute", "compute/lowrank", "compute/output", "compute/perceptron", "compute/prior", "compute/substitute", "compute/transfer", "compute/vocab", "compute/weight", "compute/rotary", "compute/cut", "compute/route", "kv", "model", "model/arch", "model/hybrid", "model/encoder", "model/seq2seq", "model/module", "sample", "internal/kernel", "internal/kernel/matmul", "internal/kernel/scan"}

// roomOf returns the line of a package directory in rooms and the entry that matches it.
func roomOf(dir string) (rank int, room string, ok bool) {
	for rank, line := range rooms {
		for room := range strings.FieldsSeq(line) {
			if parent, isFamily := strings.CutSuffix(room, "*"); room == dir || isFamily && strings.HasPrefix(dir, parent) {
				return rank, room, true
			}
		}
	}
	return 0, "", false
}
