package main

import (
	_ "embed"
	"slices"
	"strings"
)

// figure is one figure.
type figure struct {
	name   string // of a Go benchmark, without the word Benchmark before it
	unit   string
	quoted string // what it stands for: a file, and words of it with colons between

	from  string // the line of the output: members and their values, with blanks between; "": the first line
	field string // of the line, with dots between the names of objects inside objects; "": the seconds that the command takes
}

// The units of figures.
const (
	rate    = "tokens/s"
	times   = "x"
	seconds = "sec"
	micros  = "us"
	sizes   = "B"
)

// higher reports whether a larger value of a unit is better.
func higher(unit string) bool { return unit == rate || unit == times }

// probe is a command of grove and the figures that it gives. In its arguments {SHAPE-TYPE} is the file of a model of random weights, {go} the
// workload of the Go distribution, {schemas} a file of schemas, {out} a file that the command writes its lines to instead of standard
// output, and {addr} the address of the server that serve starts.
type probe struct {
	args    string
	serve   string // the arguments of a server that runs beside the command; "": none
	figures []figure
}

// speed returns the probe of a model's steps at a depth.
func speed(model, flags string, figures ...figure) probe {
	return probe{args: "bench speed -m " + model + " -r 1 --json " + flags, figures: figures}
}

// serving returns the probe of a number of answers at a time.
func serving(concurrency, name, quoted string) probe {
	return probe{
		args: "bench serve --url http://{addr} --requests " + concurrency + " --concurrency " + concurrency +
			` --prompt-tokens 5 -n 64 --ignore-eos --extra-body {"method":"off"} --save {out}`,
		serve:   "serve -m {0.5b-Q8_0} --addr {addr}",
		figures: []figure{{name, rate, quoted, "", "output_tokens_per_second"}},
	}
}

// table returns the probes of a type of weights in README.md's table.
func table(t string) []probe {
	quoted := "README.md: " + t + ": "
	return []probe{
		speed("{0.5b-"+t+"}", "-p 1,8 -n 0",
			figure{"Decode/" + t, rate, quoted + "decode", "rows=1 logits=all", "tokens_per_second"},
			figure{"Rows8/" + t, rate, quoted + "a step of 8 rows", "rows=8 logits=all", "tokens_per_second"}),
		speed("{0.5b-"+t+"}", "-p 512 -n 0",
			figure{"Prompt512/" + t, rate, quoted + "prompt of 512", "rows=512 logits=last", "tokens_per_second"}),
	}
}

var probes = slices.Concat(table("Q8_0"), table("Q4_0"), table("F16"), []probe{
	speed("{0.5b-Q8_0}", "-p 1,8 -d 4032 -n 0",
		figure{"Depth4032/rows1", rate, "docs/figures.md: At a depth of 4032 tokens: F16: 1 row", "rows=1 logits=all", "tokens_per_second"},
		figure{"Depth4032/rows8", rate, "docs/figures.md: At a depth of 4032 tokens: F16: 8 rows", "rows=8 logits=all", "tokens_per_second"}),
	speed("{0.5b-mamba2-Q8_0}", "-p 1,32 -n 0",
		figure{"Mamba2/rows1", rate, "docs/figures.md: A tree of 32 rows of Mamba 2: where one row takes 17", "rows=1 logits=all", "tokens_per_second"},
		figure{"Mamba2/rows32", rate, "docs/figures.md: A tree of 32 rows of Mamba 2: takes 80 ms", "rows=32 logits=all", "tokens_per_second"}),
	speed("{0.5b-delta-Q8_0}", "-p 1 -n 0",
		figure{"Delta/rows1", rate, "internal/kernel/README.md: `0.5b-delta`", "rows=1 logits=all", "tokens_per_second"}),
	serving("1", "Serve/alone", "docs/figures.md: eight requests at a time over one, generation alone: 37 tokens/s"),
	serving("8", "Serve/eight", "docs/figures.md: eight requests at a time over one, generation alone: 160"),
	speed("gopher-target", "-p 1,8 -n 0",
		figure{"Gopher/rows1", rate, "docs/figures.md: gopher-4m: whose steps took 0.25 ms", "rows=1 logits=all", "tokens_per_second"},
		figure{"Gopher/rows8", rate, "docs/figures.md: gopher-4m: real runs", "rows=8 logits=all", "tokens_per_second"}),
	{args: "bench methods -m gopher-target --workload {go} --limit 3 -n 128 --methods auto --save {out}", figures: []figure{
		{"Gopher/auto", times, "docs/figures.md: gopher-4m, auto", "method=auto category=overall", "speed_up"},
	}},
	{args: "bench methods -m gopher-target --workload {go} --limit 6 --methods auto --replay --cost-model {0.5b-Q8_0} --save {out}", figures: []figure{
		{"Replay/edit", times, "README.md: edits of a text decode up to five times as fast", "method=auto category=edit", "speed_up"},
		{"Replay/random", times, "docs/figures.md: replay, 0.5 B Q8_0, auto: random", "method=auto category=random", "speed_up"},
	}},
	{args: "bench masks -m gopher-target --json {schemas}", figures: []figure{
		{"Masks/mask", micros, "docs/cli.md: grove bench masks: `masks`", "", "summary.masks.mean"},
		{"Masks/compile", micros, "docs/cli.md: grove bench masks: `compile_us`", "", "summary.compile.mean"},
	}},
	{args: "run -m gopher-target --method off -n 1 func", figures: []figure{
		{"Start/gopher", seconds, "README.md: go run ./cmd/grove run", "", ""},
	}},
	{args: "bench load -m {0.5b-Q8_0} -r 1 --json", figures: []figure{
		{"Load/seconds", seconds, "docs/cli.md: bench load: gives the seconds", "", "seconds"},
		{"Load/memory", sizes, "docs/cli.md: bench load: the most memory that the process held", "", "peak_bytes"},
	}},
})

// The figures that no command gives.
var (
	size   = figure{name: "Binary/size", unit: sizes, quoted: "README.md: one static Go program"}
	checks = []figure{
		{"Checks/tests", seconds, "README.md: the tests, a few minutes", "== go test: ", " s\n"},
		{"Checks/all", seconds, "CONTRIBUTING.md: at most 15 minutes on two cores", "== all checks passed in ", " s\n"},
	}
)

// unmeasured are the words of README.md's figures that the ledger does not measure, and why.
var unmeasured = map[string]string{
	"beside llama.cpp in the same run": "it is another program: lab/peers measures it beside grove",
	"0.5 billion":                      "it is the size of the model",
	"1.1 to 1.8 times":                 "it is 8 times Decode over Rows8",
	"a prompt of 512 takes half the time that ik_llama.cpp takes": "it needs that program, built for the machine: lab/peers measures it beside grove",
}

// allFigures returns all figures, in the order in which they are measured.
func allFigures() (all []figure) {
	for _, p := range probes {
		all = append(all, p.figures...)
	}
	return append(append(all, size), checks...)
}

// wanted reports whether a figure is one of those that names or beginnings of names ask for; none ask for all.
func wanted(figure string, names []string) bool {
	for _, n := range names {
		if figure == n || strings.HasPrefix(figure, n+"/") {
			return true
		}
	}
	return len(names) == 0
}

// schemas are the schemas of {schemas}, in the layout of MaskBench.
//
//go:embed schemas.jsonl
var schemas []byte

// chosen returns the figures that are wanted.
func chosen(figures []figure, names []string) (some []figure) {
	for _, f := range figures {
		if wanted(f.name, names) {
			some = append(some, f)
		}
	}
	return some
}

// names returns the names of a probe's figures.
func (p probe) names() string {
	var names []string
	for _, f := range p.figures {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}
