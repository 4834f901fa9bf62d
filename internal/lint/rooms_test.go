package lint

import "strings"

// rooms is the order of the packages, highest first: a package imports only packages of lower
// lines (rooms of one line, a room/* among them, do not import each other). "." is the root
// package. A suite of tests stands above what it tests.
var rooms = []string{
	"cmd/grove",
	"server",
	"server/serving",
	"server/wire",
	"bench",
	"bench/serving",
	"store",
	".",
	"methodtest",
	"engine",
	"plan",
	"search",
	"diffuse",
	"method/*",
	"method",
	"verify",
	"modeltest",
	"model/*",
	"model",
	"synthetic",
	"internal/oracle",
	"compute",
	"kv",
	"sample",
	"constrain",
	"forest",
	"internal/hftest",
	"hf quantize",
	"chat",
	"tokenizer",
	"tokenizer/pretoken tokenizer/schema",
	"jinja",
	"jinja/value",
	"gguf",
	"safetensors",
	"internal/kernel/matmul",
	"internal/kernel",
	"quant",
	"tensor",
	"internal/cachefile",
	"token",
	"gopher internal/atomicfile internal/lint internal/machine internal/mmap internal/par internal/wrap server/page server/toolcall", // leaves: anyone may import them, they import none
}

// apart lists rooms of which the first may not import the second although it is lower: models and
// methods meet in forests.
var apart = [][2]string{
	{"method", "model"}, {"method", "model/*"},
	{"method/*", "model"}, {"method/*", "model/*"},
}

// linkers are the only rooms that import the packages of model/* and method/*: all others reach
// them through their registries.
var linkers = []string{"cmd/grove", ".", "modeltest", "methodtest"}

// numeric are the rooms whose bits are promised (N7).
var numeric = []string{"compute", "kv", "model", "model/*", "sample", "internal/kernel", "internal/kernel/matmul"}

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
