package lint

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// A quote is a number in a text that a constant of the code sets: the text must have it, and every place must have the
// constant's value.
type quote struct {
	file  string
	place string // a regular expression whose group is the number; a space matches any white space
	name  string // of the constant: its package's folder, a dot, its name
	unit  float64
}

// The units of quotes, in those of the constants.
const (
	one     = 1
	percent = 0.01
	kib     = 1 << 10
	mib     = 1 << 20
	ms      = float64(time.Millisecond)
	second  = float64(time.Second)
)

// quotes are the numbers that documents, doc comments and help texts quote.
var quotes = []quote{
	{"DESIGN.md", `cover (\d+) indices`, "internal/forest.SlotsPerPage", one},
	{"DESIGN.md", `A page is (\d+) tokens`, "internal/forest.SlotsPerPage", one},
	{"DESIGN.md", `if that is ([\d.]+) % better`, "internal/engine/plan.gainNeeded", percent},
	{"DESIGN.md", `method.Saver.; (\d+) MiB`, "method.MaxSaved", mib},
	{"DESIGN.md", `step to ([\d.]+) times`, "internal/engine/plan.prefillStretch", one},
	{"DESIGN.md", `callers, to (\d+) ms`, "internal/engine/plan.stepLimit", ms},
	{"DESIGN.md", `At most (\d+) rows hang`, "method.MaxLive", one},
	{"DESIGN.md", `runs at most (\d+) drafts`, "internal/engine/plan.MaxDraft", one},
	{"DESIGN.md", `a tree of at most (\d+)`, "internal/engine/speculate.maxDrafts", one},
	{"DESIGN.md", `again after (\d+) rounds`, "internal/engine/plan.leastWait", one},
	{"DESIGN.md", `twice as many, (\d+) at most`, "internal/engine/plan.mostWait", one},
	{"DESIGN.md", `When (\d+) sequences have got slots`, "internal/engine/step.mostPassed", one},
	{"DESIGN.md", `for each (\d+) steps of priority`, "internal/engine/step.prioritySteps", one},
	{"DESIGN.md", `the last (\d+) salts`, "internal/engine/speculate.MaxSalts", one},
	{"DESIGN.md", `called for (\d+) ms: its pages`, "internal/engine/step.idleGrace", ms},
	{"DESIGN.md", `called for (\d+) ms lends`, "internal/engine/step.slotGrace", ms},
	{"DESIGN.md", `(\d+) lines a file`, "internal/lint.maxFileLines", one},
	{"lab/docs/beam.md", `at most (\d+) Mi lines`, "server/batch.MaxLines", mib},
	{"lab/docs/beam.md", `lines of at most (\d+) MiB`, "server/batch.MaxLine", mib},
	{"docs/batch.md", `A line has at most (\d+) MiB`, "server/batch.MaxLine", mib},
	{"docs/batch.md", `a text of 1 to (\d+) bytes`, "server/batch.MaxCustomID", one},
	{"docs/batch.md", `sent again, (\d+) times`, "server/batch.attempts", one},
	{"docs/batch.md", `Of each ([\d,]+) lines`, "server/batch.windowLines", one},
	{"CONTRIBUTING.md", `at most (\d+) lines`, "internal/lint.maxFileLines", one},
	{"docs/adding/method.md", `at most (\d+) lines`, "internal/lint.maxFileLines", one},
	{"CONTRIBUTING.md", `at most (\d+) packages`, "internal/lint.maxPackages", one},
	{"CONTRIBUTING.md", `fewer than (\d+) lines`, "internal/lint.leastLines", one},
	{"CONTRIBUTING.md", `up to (\d+) lines`, "internal/lint.mostLines", one},
	{"docs/cli.md", `whole pages of (\d+) tokens`, "internal/forest.SlotsPerPage", one},
	{"docs/server.md", `Up to (\d[\d,]*) tokens they may`, "internal/engine.DefaultContext", one},
	{"docs/cli.md", `answer within (\d+) seconds`, "cmd/grove.healthTime", second},
	{"docs/cli.md", `0: (\d[\d,]*), or the model's own`, "bench.defaultChunk", one},
	{"docs/cli.md", `from 0 to (\d[\d,]*) threads`, "cmd/grove.maxThreads", one},
	{"docs/server.md", `pages of (\d+) tokens`, "internal/forest.SlotsPerPage", one},
	{"docs/server.md", `open connections . (\d[\d,]*)`, "server.connections", one},
	{"docs/server.md", `as many as (\d+) MiB of events`, "server/openai.maxTaskEvents", mib},
	{"docs/server.md", `At most (\d+) of a key`, "server/openai.maxOwnTasks", one},
	{"docs/server.md", `of a key and (\d+) in all`, "server/openai.maxTasks", one},
	{"docs/server.md", `After (\d+) s in its turn`, "server/serving.memoryTime", second},
	{"docs/server.md", `its lines . (\d+)`, "server/access.maxLines", one},
	{"docs/server.md", `more than (\d+) lines`, "server/access.maxLines", one},
	{"docs/server.md", `header is larger than (\d+) KiB`, "server.headerBytes", kib},
	{"docs/server.md", `together . (\d+) KiB`, "server.headerBytes", kib},
	{"docs/server.md", `together . \d+ KiB, (\d+) s`, "server.headerTime", second},
	{"docs/server.md", `header and body . (\d+) s`, "server.requestTime", second},
	{"docs/server.md", `its body . (\d+) MiB`, "server.bodyBytes", mib},
	{"docs/server.md", `without a request . (\d+) s`, "server.idleTime", second},
	{"docs/server.md", `server stops . (\d+) s`, "server.farewell", second},
	{"docs/server.md", `connection has (\d+) s for its header`, "server.newTime", second},
	{"docs/server.md", `(\d+) KiB (?:are read|of further requests)`, "server/access.aheadBytes", kib},
	{"docs/server.md", `(\d[\d,]*) answers to a prompt`, "server/wire.MaxChoices", one},
	{"docs/server.md", `(\d[\d,]*) answers of a request`, "server/wire.MaxAnswers", one},
	{"docs/answers.md", `more than (\d[\d,]*) messages`, "internal/text/jinja.numbers", one},
	{"docs/answers.md", `a multiple of (\d[\d,]*) are checked`, "internal/text/jinja.numbers", one},
	{"internal/text/jinja/output.go", `a multiple of (\d[\d,]*) count`, "internal/text/jinja.numbers", one},
	{"internal/text/jinja/README.md", `a multiple of (\d[\d,]*) share`, "internal/text/jinja.numbers", one},
	{"docs/server.md", `of a stream . (\d+) s`, "server/driver.WriteTime", second},
	{"docs/server.md", `up to (\d+) KiB of each`, "server/driver.mostUnread", kib},
	{"docs/server.md", `and (\d+) MiB of all`, "server/driver.allUnread", mib},
	{"docs/server.md", `with (\d+) KiB of each besides`, "server/driver.leastUnread", kib},
	{"docs/server.md", `the next (\d+) KiB`, "server/driver.piece", kib},
	{"docs/server.md", `the last (\d+) salts`, "internal/engine/speculate.MaxSalts", one},
	{"docs/server.md", `After (\d+) texts that passed`, "internal/engine/step.mostPassed", one},
	{"docs/server.md", `for each (\d+) steps`, "internal/engine/step.prioritySteps", one},
	{"docs/server.md", `keeps (\d[\d,]*) answers and`, "server/driver.HistoryEntries", one},
	{"docs/server.md", `answers and (\d+) MiB of them`, "server/driver.HistoryBytes", mib},
	{"docs/server.md", `logit_bias. (\d[\d,]*) tokens together`, "server/wire.maxBiases", one},
	{"docs/server.md", `written: (\d+) MiB of them`, "server/driver.MaxKept", mib},
	{"docs/server.md", `repeats (\d+) KiB of the`, "server/llamacpp.maxEcho", kib},
	{"docs/server.md", `and (\d+) biases in`, "server/llamacpp.maxBiasEcho", one},
	{"docs/server.md", `(\d+) objects and lists inside`, "server/wire.MaxDepth", one},
	{"docs/server.md", `(\d[\d,]*) fields of an object`, "server/wire.MaxMembers", one},
	{"docs/server.md", `(\d[\d,]*) characters of a number`, "server/wire.MaxDigits", one},
	{"docs/server.md", `(\d[\d,]*) names and values`, "server/wire.MaxValues", one},
	{"docs/server.md", `at most (\d[\d,]*)\s+token ids`, "server/wire.MaxIDs", one},
	{"docs/server.md", `most (\d+) MiB, and requests have`, "server/serving.leastWork", mib},
	{"docs/server.md", `and (\d+) times while it is worked on`, "server/serving.bodyWork", one},
	{"docs/server.md", `bodies of up to (\d+) KiB`, "server/serving.smallBody", kib},
	{"docs/server.md", `request waits (\d+) s for memory`, "server/serving.workWait", second},
	{"docs/server.md", `vectors take at most (\d+) MiB`, "server/driver.MaxVectors", mib},
	{"docs/server.md", `/detokenize (\d+) MiB`, "server/openai.maxText", mib},
	{"docs/server.md", `header of 1 to (\d+) printable`, "server/driver.maxRequestName", one},
	{"docs/models.md", `at a time . (\d+) of`, "internal/weights/pull.Parallel", one},
	{"docs/models.md", `of (\d+) MiB, \d+ at most`, "internal/weights/pull.SegmentBytes", mib},
	{"docs/models.md", `MiB, (\d+) at most`, "internal/weights/pull.MaxParallel", one},
	{"docs/models.md", `5xx . (\d+), with`, "internal/weights/pull.MaxAttempts", one},
	{"docs/models.md", `0.5 s to (\d+) s`, "internal/weights/pull.MaxBackoff", second},
	{"docs/models.md", `Retry-After.. . (\d+) s`, "internal/weights/pull.MaxWait", second},
	{"docs/models.md", `without a byte . (\d+) s`, "internal/weights/pull.IdleTimeout", second},
	{"docs/models.md", `redirects of a request . (\d+)`, "internal/weights/pull.MaxRedirects", one},
	{"docs/models.md", `a file . (\d+) TiB`, "internal/weights/pull.MaxFileBytes", mib * mib},
	{"docs/models.md", `disk less (\d+) MiB`, "internal/weights/pull.ReserveBytes", mib},
	{"docs/models.md", `list . (\d+) MiB`, "internal/weights/pull.MaxListBytes", mib},
	{"docs/models.md", `MiB, (\d+) pages`, "internal/weights/pull.MaxPages", one},
	{"docs/models.md", `(\d[\d,]*) files, of`, "internal/weights/pull.MaxFiles", one},
	{"docs/models.md", `which (\d[\d,]*) may`, "internal/weights/pull.MaxPulled", one},
	{"docs/models.md", `manifest . (\d+) MiB`, "internal/weights/pull.MaxManifestBytes", mib},
	{"docs/models.md", `(\d+) layers`, "internal/weights/pull.MaxLayers", one},
	{"docs/models.md", `an address . (\d[\d,]*)`, "internal/weights/pull.maxParts", one},
	{"docs/models.md", `a name . (\d[\d,]*) bytes`, "internal/weights/pull.MaxName", one},
	{"docs/models.md", `the hub . (\d+) KiB`, "internal/weights/pull.maxToken", kib},
	{"docs/kubernetes.md", `pages of (\d+) tokens`, "internal/forest.SlotsPerPage", one},
	{"docs/constraints.md", `counts up to (\d+)`, "constrain/schema.maxTally", one},
	{"grove.go", `at a time; 0: (\d+)`, "..defaultParallel", one},
	{"internal/engine/engine.go", `the model's, (\d[\d,]*) at most`, "internal/engine.DefaultContext", one},
	{"internal/engine/engine.go", `rows of a step; 0: (\d+)`, "internal/engine.defaultChunk", one},
	{"method/history.go", `n tokens, 1 to (\d+)`, "method.maxNgram", one},
	{"grove.go", `prefill step; 0: (\d+)`, "internal/engine.defaultChunk", one},
	{"cmd/grove/scoring_perplexity.go", `context=(\d+), or`, "bench.defaultChunk", one},
	{"bench/perplexity.go", `chunk; 0: (\d+), or`, "bench.defaultChunk", one},
}

// checkQuotes compares quotes with the constants of a module.
func checkQuotes(root fs.FS, m *module, quotes []quote) (bad []string) {
	for _, q := range quotes {
		text, err := fs.ReadFile(root, q.file)
		if err != nil {
			bad = append(bad, err.Error())
			continue
		}
		value, ok := m.constant(q.name)
		if !ok {
			bad = append(bad, fmt.Sprintf("%s: the constant %s of a quote is not there; name the one that took its place", q.file, q.name))
			continue
		}
		want := strings.TrimSuffix(fmt.Sprintf("%.7g", value/q.unit), ".")
		found := regexp.MustCompile(strings.ReplaceAll(q.place, " ", `\s+`)).FindAllSubmatch(text, -1)
		if len(found) == 0 {
			bad = append(bad, fmt.Sprintf("%s: nothing matches %q, which quotes %s (%s); change the place in quotes", q.file, q.place, q.name, want))
		}
		for _, f := range found {
			if got := strings.ReplaceAll(string(f[1]), ",", ""); got != want {
				bad = append(bad, fmt.Sprintf("%s: %q quotes %s, which is %s", q.file, f[0], q.name, want))
			}
		}
	}
	return bad
}

// constant returns the value of a constant of a package.
func (m *module) constant(name string) (float64, bool) {
	at := strings.LastIndex(name, ".")
	dir, ident := name[:at], name[at+1:]
	for _, s := range m.sources {
		if s.dir != path.Clean(dir) {
			continue
		}
		for _, decl := range s.file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				v := spec.(*ast.ValueSpec)
				for i, n := range v.Names {
					if n.Name == ident && i < len(v.Values) {
						x, ok := m.value(dir, v.Values[i])
						if !ok {
							return 0, false
						}
						f, _ := constant.Float64Val(constant.ToFloat(x))
						return f, true
					}
				}
			}
		}
	}
	return 0, false
}

// units are the names of package time that constants use.
var units = map[string]time.Duration{"Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}

// value returns the value of a constant expression of numbers, units of time and other constants of the package.
func (m *module) value(dir string, e ast.Expr) (constant.Value, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		v := constant.MakeFromLiteral(e.Value, e.Kind, 0)
		return v, v.Kind() == constant.Int || v.Kind() == constant.Float
	case *ast.ParenExpr:
		return m.value(dir, e.X)
	case *ast.Ident:
		f, ok := m.constant(dir + "." + e.Name)
		return constant.MakeFloat64(f), ok
	case *ast.SelectorExpr:
		unit, ok := units[e.Sel.Name]
		return constant.MakeInt64(int64(unit)), ok
	case *ast.BinaryExpr:
		x, okX := m.value(dir, e.X)
		y, okY := m.value(dir, e.Y)
		switch {
		case !okX || !okY:
			return nil, false
		case e.Op == token.SHL:
			n, ok := constant.Uint64Val(constant.ToInt(y))
			return constant.Shift(constant.ToInt(x), token.SHL, uint(n)), ok
		case e.Op == token.ADD, e.Op == token.SUB, e.Op == token.MUL, e.Op == token.QUO:
			return constant.BinaryOp(x, e.Op, y), true
		}
	}
	return nil, false
}

// TestQuotes holds the numbers of documents to the constants of the code.
func TestQuotes(t *testing.T) {
	root := os.DirFS("../..")
	m, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range checkQuotes(root, m, quotes) {
		t.Error(v)
	}
}

// TestCheckQuotes plants numbers that are stale, gone or unnamed.
func TestCheckQuotes(t *testing.T) {
	root := fstest.MapFS{
		"internal/kv/k.go": {Data: []byte("package kv\n\nimport \"time\"\n\nconst half = 1.0 / 2\n\nconst (\n\tsize = (3 + 1) << 10\n\twait = 2 * time.Minute\n\tboth = size * 2\n\tname = \"n\"\n)\n")},
		"a.md":             {Data: []byte("A page of 4 KiB, 8,192 bytes for\ntwo, and 4 KiB more; half is 50 %, the wait 120 s.\n")},
		"b.md":             {Data: []byte("A page of 5 KiB.\n")},
	}
	m, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		q    quote
		want string
	}{
		{"right", quote{"a.md", `of (\d+) KiB`, "internal/kv.size", kib}, ""},
		{"over a line end", quote{"a.md", `(\d[\d,]*) bytes for two`, "internal/kv.both", one}, ""},
		{"a share", quote{"a.md", `is (\d+) %`, "internal/kv.half", percent}, ""},
		{"a time", quote{"a.md", `wait (\d+) s`, "internal/kv.wait", second}, ""},
		{"stale", quote{"b.md", `of (\d+) KiB`, "internal/kv.size", kib}, `b.md: "of 5 KiB" quotes internal/kv.size, which is 4`},
		{"gone from the text", quote{"b.md", `wait (\d+) s`, "internal/kv.wait", second}, "nothing matches"},
		{"gone from the code", quote{"b.md", `of (\d+) KiB`, "internal/kv.most", kib}, "the constant internal/kv.most of a quote is not there"},
		{"not a number", quote{"b.md", `of (\d+) KiB`, "internal/kv.name", kib}, "is not there"},
		{"no file", quote{"c.md", `x`, "internal/kv.size", one}, "c.md: file does not exist"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := strings.Join(checkQuotes(root, m, []quote{c.q}), "\n")
			if got != c.want && (c.want == "" || !strings.Contains(got, c.want)) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
