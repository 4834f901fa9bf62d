package bench

import (
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// goFiles is the fixed list of files of the Go distribution from which tasks are made.
//
//go:embed goset.txt
var goFiles string

// goSeed is the seed of the tasks: the workload is the same every time.
const goSeed = 20

// function is a function of a file.
type function struct {
	file, name   string
	before, text string // the source before it, and its own
	body         int    // offset of the body in text, after the brace
}

// GoTasks returns tasks made from the Go distribution's sources below root (GOROOT): complete a function, edit one by renaming an identifier, repeat
// with changes, generate JSON, and random text, one of each from every file that exists. Each task has a recorded answer, for replay.
func GoTasks(root string) (tasks []Prompt, err error) {
	r := rand.New(rand.NewPCG(goSeed, 0))
	err = eachFile(root, r, func(i int, f function, all []function) {
		for _, p := range []Prompt{complete(f), edit(f), repeat(f, r), listing(all), random(r)} {
			p.ID = fmt.Sprintf("%s-%d", p.Category, i)
			tasks = append(tasks, p)
		}
	})
	return tasks, err
}

// eachFile calls do with a function, drawn by r, and all functions of every file of the list that this version of Go has.
func eachFile(root string, r *rand.Rand, do func(i int, f function, all []function)) error {
	n := 0
	for i, name := range strings.Fields(goFiles) {
		all, err := functions(filepath.Join(root, "src", filepath.FromSlash(name)), name)
		if err != nil || len(all) == 0 {
			continue // another version of Go
		}
		n++
		do(i, all[r.IntN(len(all))], all)
	}
	if n == 0 {
		return fmt.Errorf("workload: %s holds no sources of the Go distribution", root)
	}
	return nil
}

// functions returns the functions of a file that are neither tiny nor huge.
func functions(path, name string) (all []function, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		from, to, body := set.Position(f.Pos()).Offset, set.Position(f.End()).Offset, set.Position(f.Body.Lbrace).Offset+1
		if to-from < 150 || to-from > 1500 {
			continue
		}
		start := max(0, from-400)
		all = append(all, function{
			file: name, name: f.Name.Name, before: string(text[start:from]), text: string(text[from:to]), body: body - from,
		})
	}
	return all, nil
}

// WorkloadComplete is the category of functions to complete.
const WorkloadComplete = "complete"

func complete(f function) Prompt {
	return Prompt{Category: WorkloadComplete, Prompt: f.before + f.text[:f.body] + "\n", Output: strings.TrimPrefix(f.text[f.body:], "\n") + "\n"}
}

// edit asks for the function with its name changed everywhere.
func edit(f function) Prompt {
	changed := strings.ReplaceAll(f.text, f.name, "renamed"+f.name)
	return Prompt{
		Category: "edit", Prompt: fmt.Sprintf("%s\n\n// The same with %s renamed to renamed%s:\n\n", f.text, f.name, f.name),
		Prediction: f.text, Output: changed + "\n",
	}
}

// repeat asks for another copy of a block, with the numbers counted on.
func repeat(f function, r *rand.Rand) Prompt {
	lines := strings.Split(f.text, "\n")
	block := strings.Join(lines[:min(len(lines), 6)], "\n")
	start := r.IntN(90) + 10
	copyOf := func(i int) string {
		return fmt.Sprintf("// case %d\n%s // %d of %s\n\n", start+i, block, (start+i)*7, f.file)
	}
	return Prompt{Category: "repeat", Prompt: copyOf(0) + copyOf(1), Output: copyOf(2) + copyOf(3)}
}

// listing asks to continue a JSON list of the functions of a file.
func listing(all []function) Prompt {
	var b strings.Builder
	b.WriteString("[\n")
	cut := 0
	for i, f := range all {
		if i == min(3, len(all)-1) {
			cut = b.Len()
		}
		fmt.Fprintf(&b, "  {\n    \"name\": %q,\n    \"file\": %q,\n    \"lines\": %d,\n    \"exported\": %v\n  },\n", f.name, f.file, strings.Count(f.text, "\n")+1, ast.IsExported(f.name))
		if i == 12 {
			break
		}
	}
	return Prompt{Category: "json", Prompt: b.String()[:cut], Output: b.String()[cut:] + "]\n"}
}

// random asks for random text, which no method can draft.
func random(r *rand.Rand) Prompt {
	text := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(' ' + r.IntN(95))
		}
		return string(b)
	}
	return Prompt{Category: "random", Prompt: text(200), Output: text(200)}
}
