package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A budget is the most lines that the packages of a part of the house may have together. Tests and generated files do not
// count.
type budget struct {
	name     string
	packages string // a list of patterns, as in doors
	lines    int
	ceiling  int // of a part that is over its budget: its present size, which may only fall; 0: none
}

// budgets are the parts of the house. A package belongs to one of them.
var budgets = []budget{
	{"core", "engine/... method method/grow method/grow/retokenize verify sample forest kv", 20500, 0},
	{"constraints", "sample/constrain/... distill", 22000, 0},
	{"arithmetic", "compute/... internal/kernel/... model model/factored", 13800, 0},
	{"architectures", "model/all model/arch model/hybrid model/encoder model/seq2seq", 7000, 0},
	{"draft modules", "model/module", 2000, 0},
	{"adapters", "adapters server/adapters weights/lora", 2000, 0},
	{"weights", "weights/gguf weights/quantize weights/safetensors weights/tensor", 5500, 0},
	{"folders of Hugging Face", "weights/hf/...", 7400, 0},
	{"heads of other models", "weights/heads internal/command/headfile", 2500, 0},
	{"models by name", "weights/find weights/pull/...", 4000, 0},
	{"tokenizers", "text/infill text/token text/tokenizer/...", 4500, 0},
	{"conversations", "text/chat text/jinja text/prompt text/stream", 4200, 0},
	{"answers", "text/answer", 1800, 0},
	{"calls", "text/calls", 1500, 0},
	{"access", "server/access", 1500, 0},
	{"bodies", "server/wire", 2100, 0},
	{"traces", "server/traces", 1000, 0},
	{"forms of answers", "server/structured", 1500, 0},
	{"server", "server server/catalog server/driver server/openai server/llamacpp server/page server/serving", 6700, 0},
	{"other APIs", "server/ollama server/anthropic server/rerank", 2100, 0},
	{"files and batches of clients", "server/batches", 1800, 0},
	{"batches and models behind routes", "batch internal/command/served", 1600, 0},
	{"scans of models", "scan", 1000, 0},
	{"commands", "cmd/grove internal/command/arguments internal/command/exit internal/command/flags internal/command/harmless internal/command/scoring internal/command/summary", 5700, 0},
	{"far models", "remote server/far", 2500, 0},
	{"completion", "internal/command/completion", 1000, 0},
	{"terminal", "internal/command/terminal internal/command/conversation", 2200, 0},
	{"Markdown and canvases at a terminal", "internal/command/canvas internal/command/markdown", 1000, 0},
	{"benchmarks", "internal/command/benchmarks bench/...", 7600, 0},
	{"front door", ". resident sample/advice", 4800, 0},
	{"search", "search/...", 4900, 0},
	{"scores", "score/...", 1000, 0},
	{"diffusion", "diffuse/...", 4050, 0},
	{"bytes", "bytewise/...", 1200, 0},
	{"suites and models for tests", "suite/... model/synthetic internal/oracle internal/oracle/modules internal/hftest method/grow/growtest verify/reference internal/history", 10500, 0},
	{"predictions of steps", "internal/par/schedule", 1000, 0},
	{"indexes and heads for methods", "method/acceptance method/datastore method/suffixes method/trigrams method/vocabulary", 1500, 0},
	{"drafting with modules", "method/module", 2000, 0},
	{"layers for methods", "method/layers", 1000, 0},
	{"helpers", "internal/atomicfile internal/cachefile internal/guard internal/lint internal/machine internal/mmap internal/near internal/options internal/par internal/quota internal/regular internal/stat gopher method/all", 2100, 0},
}

// methodBudgets are the budgets of methods: those of a family, method/NAME/..., and of the package of one method.
const (
	familyLines = 3000
	methodLines = 300
)

// families are the families of methods.
const families = "method/text/... method/logits/... method/model/... method/self/... method/heads/..."

// allBudgets returns the budgets of the house, of the families of methods and of each method.
func (m *module) allBudgets() []budget {
	all, lines := slices.Clone(budgets), packageLines(m)
	for family := range strings.FieldsSeq(families) {
		all = append(all, budget{"methods " + family, family, familyLines, 0})
	}
	for _, dir := range slices.Sorted(maps.Keys(lines)) {
		if within(dir, families) {
			all = append(all, budget{dir, dir, methodLines, 0})
		}
	}
	return all
}

// size returns the lines of a budget's packages.
func (b budget) size(lines map[string]int) (n int) {
	for dir, of := range lines {
		if within(dir, b.packages) {
			n += of
		}
	}
	return n
}

// check returns what is wrong with the size of a budget's packages: too many lines, or a ceiling that nothing needs.
func (b budget) check(n int) string {
	switch {
	case n > max(b.lines, b.ceiling):
		return fmt.Sprintf("%s: %d lines, more than %d", b.name, n, max(b.lines, b.ceiling))
	case b.ceiling > 0 && n > 0 && n <= b.lines:
		return fmt.Sprintf("%s: %d lines are within the budget of %d: remove the ceiling", b.name, n, b.lines)
	}
	return ""
}

// checkBudgets limits the parts of the house, and finds packages that belong to no budget or to several.
func checkBudgets(m *module) (bad []string) {
	lines := packageLines(m)
	for _, b := range m.allBudgets() {
		if fault := b.check(b.size(lines)); fault != "" {
			bad = append(bad, fault)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(lines)) {
		if _, _, known := roomOf(dir); !known || within(dir, families) {
			continue // it has no place at all, or a budget of its own
		}
		of := 0
		for _, b := range budgets {
			if within(dir, b.packages) {
				of++
			}
		}
		if of != 1 {
			bad = append(bad, fmt.Sprintf("%s: the package belongs to %d budgets, not to one", dir, of))
		}
	}
	return bad
}

// budgetTable lists the parts with their sizes and budgets. It names exceptions.
func budgetTable(m *module) string {
	var b strings.Builder
	lines := packageLines(m)
	for _, part := range m.allBudgets() {
		fmt.Fprintf(&b, "%6d of %6d  %s", part.size(lines), part.lines, part.name)
		if part.ceiling > 0 {
			fmt.Fprintf(&b, ": an exception up to %d, which may only fall", part.ceiling)
		}
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}
