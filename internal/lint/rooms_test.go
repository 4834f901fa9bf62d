package lint

import (
	"slices"
	"strings"
)

// rooms is the order of the packages, highest first: a package imports only packages of lower
// lines (rooms of one line do not import each other). "." is the root
// package. A suite of tests stands above what it tests.
var rooms = []string{
	"cmd/grove",
	"server",
	"server/batches server/far server/llamacpp server/ollama server/openai",
	"server/anthropic",
	"internal/command/benchmarks server/driver",
	"internal/command/conversation internal/command/flags server/serving",
	"internal/command/terminal server/access server/structured",
	"bench internal/command/exit server/traces server/wire",
	"internal/suite/front",
	".",
	"internal/suite/searchtest search/programs",
	"internal/resident search",
	"diffuse/fill internal/suite/gophertest score search/bytewise",
	"internal/engine",
	"internal/engine/pages internal/suite/modeltest method/all",
	"internal/engine/step internal/model/all method/heads method/models method/self",
	"constrain/gosource diffuse internal/engine/adapters internal/engine/reading internal/engine/speculate internal/model/arch internal/model/module method/module",
	"constrain internal/engine/plan internal/model internal/suite/growtest method/grow method/layers method/logits method/text",
	"constrain/earley constrain/hmm internal/text/prompt internal/weights/heads internal/weights/lora method method/vocabulary",
	"constrain/vocab internal/compute internal/text/chat internal/verify internal/weights/hf internal/weights/pull method/datastore",
	"internal/compute/weight internal/hftest internal/kernel/measure internal/kernel/selfcheck internal/model/synthetic internal/oracle internal/sample internal/text/tokenizer internal/weights/find internal/weights/quantize",
	"constrain/lark constrain/schema internal/compute/rotary internal/kernel/matmul internal/kernel/scan internal/kv internal/suite/schematest internal/weights/gguf internal/weights/safetensors",
	"bench/serving constrain/grammar internal/forest internal/kernel internal/mmap internal/par/schedule internal/text/calls server/batch server/far/remote",
	"constrain/regex constrain/schema/document internal/command/completion internal/command/harmless internal/suite/methodtest internal/suite/scripts internal/text/answer internal/text/jinja internal/text/token internal/text/tokenizer/pretoken internal/verify/reference internal/weights/tensor",
	"internal/fileio internal/gopher internal/history internal/lint internal/machine internal/options internal/par internal/stat server/exposition server/page", // anyone may import them
}

// doors are imports that the order of rooms allows and that are denied by name: no package of from imports one of to, unless
// but lists the package or the edge ("package > imported"). from and to are lists; a name that ends in /... stands for itself
// and all that lies below it.
var doors = []struct {
	from, to string
	but      []string
	why      string
}{
	{"cmd/... internal/command/... bench/...", "internal/compute internal/kv internal/sample constrain/... internal/kernel/...", []string{"bench > internal/kernel/measure"}, "commands and benchmarks use the front door, package grove"},
	{"cmd/... internal/command/...", "internal/engine/...", nil, "commands use the front door, package grove"},
	{"...", "internal/kernel/measure", []string{"bench"}, "only bench measures kernels"},
	{"...", "internal/kernel/selfcheck", []string{"internal/resident"}, "models in memory choose kernels"},
	{"method/...", "internal/model/...", nil, "models and methods stay apart"},
	{"...", "method/text method/logits method/models method/self method/heads", []string{"method/all"}, "methods are reached through their registry"},
	{"...", "search/programs", []string{".", "bench", "cmd/grove"}, "searches are reached through their registry"},
	{"...", "internal/model/arch internal/model/module", []string{"internal/model/all"}, "architectures are reached through their registry"},
	{"...", "internal/model/all", []string{".", "internal/suite/modeltest"}, "the front door links the architectures"},
	{"...", "internal/resident", []string{"."}, "models are opened at the front door"},
	{"server/...", "internal/compute internal/engine/... internal/kernel/... internal/kv internal/sample constrain/...", nil, "the server uses the front door"},
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
var numeric = []string{"internal/compute", "internal/compute/weight", "internal/compute/rotary", "internal/kv", "internal/model", "internal/model/arch", "internal/model/module", "internal/sample", "internal/kernel", "internal/kernel/matmul", "internal/kernel/scan"}

// roomOf returns the line of a package directory in rooms and the entry that matches it.
func roomOf(dir string) (rank int, room string, ok bool) {
	for rank, line := range rooms {
		for room := range strings.FieldsSeq(line) {
			if room == dir {
				return rank, room, true
			}
		}
	}
	return 0, "", false
}
