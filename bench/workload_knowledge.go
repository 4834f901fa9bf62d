package bench

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	scoring "grove/score"
)

// goPackages are the packages of the standard library that questions are about.
const goPackages = "bufio bytes context encoding/json errors fmt io math net/http net/url os path path/filepath regexp slices sort strconv strings sync time unicode unicode/utf8"

const (
	knowledgeChoices = 4  // of a question
	knowledgeMost    = 12 // questions about a package at most
)

// fact is what a function of a package does.
type fact struct{ name, does string }

// KnowledgeQuestions returns questions about functions of the Go distribution's standard library below root: which of four texts says what a function does.
// The others are of functions of the same package. Closed, the prompt has the names of the package and of the function alone; else
// it has the first sentences of the documentation of all four functions, in another order (LLM-KICK, Jaiswal et al. 2023: the same questions, without and with the passage).
func KnowledgeQuestions(root string, closed bool) (all []scoring.Question, err error) {
	for i, path := range strings.Fields(goPackages) {
		facts, err := factsOf(filepath.Join(root, "src", filepath.FromSlash(path)), path)
		if err != nil || len(facts) < knowledgeChoices {
			continue // another version of Go
		}
		r := rand.New(rand.NewPCG(goSeed, uint64(100+i))) // the same choices with and without the passage
		for _, of := range r.Perm(len(facts))[:min(len(facts), knowledgeMost)] {
			all = append(all, workloadQuestion(path, facts, of, closed, r))
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("workload: %s holds no sources of the Go distribution", root)
	}
	return all, nil
}

// workloadQuestion asks what a function does.
func workloadQuestion(path string, facts []fact, of int, closed bool, r *rand.Rand) scoring.Question {
	picked := []fact{facts[of]}
	for _, other := range r.Perm(len(facts)) {
		if len(picked) < knowledgeChoices && other != of {
			picked = append(picked, facts[other])
		}
	}
	var passage strings.Builder
	for _, at := range r.Perm(len(picked)) {
		fmt.Fprintf(&passage, "// %s%s\n\n", picked[at].name, picked[at].does)
	}
	q := scoring.Question{Prompt: fmt.Sprintf("package %s\n\n// %s", path[strings.LastIndexByte(path, '/')+1:], facts[of].name), Answer: new(int)}
	if !closed {
		q.Prompt = passage.String() + q.Prompt
	}
	for _, at := range r.Perm(len(picked)) {
		if at == 0 {
			*q.Answer = len(q.Choices)
		}
		q.Choices = append(q.Choices, picked[at].does)
	}
	return q
}

// factsOf returns the functions of a package whose documentation begins with a sentence of usual length about them, in the order of their
// names. Functions that make a value of one of the package's types, and those that not every system has, are left out.
func factsOf(dir, path string) (facts []fact, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	docs, makes := map[string]string{}, map[string]*ast.FuncType{} // of functions
	types := map[string]bool{}
	for _, name := range names {
		if otherSystem.MatchString(name) {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if !onLinux(f) {
			continue
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.IsExported() {
					docs[d.Name.Name], makes[d.Name.Name] = d.Doc.Text(), d.Type
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok {
						types[s.Name.Name] = true
					}
				}
			}
		}
	}
	maps.DeleteFunc(docs, func(name, _ string) bool { return constructor(makes[name], types) })
	said := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(docs)) {
		does, found := strings.CutPrefix(firstSentence(docs[name]), name)
		if !found || !strings.HasPrefix(does, " ") || len(does) < 25 || len(does) > 140 || said[does] {
			continue
		}
		said[does] = true
		facts = append(facts, fact{name, does})
	}
	return facts, nil
}

// otherSystem is the names of tests and of files that Linux on amd64 has no use for.
var otherSystem = regexp.MustCompile(`_(test|plan9|windows|darwin|js|wasip1|wasm|solaris|aix|android|ios|illumos|dragonfly|(free|net|open)bsd|386|arm|arm64|loong64|mips\w*|ppc64\w*|riscv64|s390x)\.go$`)

// onLinux says whether a file is part of its package on Linux on amd64, without cgo and experiments.
func onLinux(f *ast.File) bool {
	for _, group := range f.Comments {
		for _, line := range group.List {
			if group.Pos() > f.Package || !constraint.IsGoBuild(line.Text) {
				continue
			}
			x, err := constraint.Parse(line.Text)
			if err == nil && !x.Eval(func(tag string) bool {
				return slices.Contains([]string{"linux", "unix", "amd64", "gc"}, tag) || strings.HasPrefix(tag, "go1.")
			}) {
				return false
			}
		}
	}
	return true
}

// constructor says whether one result of a function, and no other, is an exported type of its package, or a pointer to one, or a slice of these.
func constructor(f *ast.FuncType, types map[string]bool) bool {
	if f.Results == nil {
		return false
	}
	n := 0
	for _, r := range f.Results.List {
		of := r.Type
		if list, ok := of.(*ast.ArrayType); ok {
			of = list.Elt
		}
		if to, ok := of.(*ast.StarExpr); ok {
			of = to.X
		}
		if name, ok := of.(*ast.Ident); ok && name.IsExported() && types[name.Name] {
			n++
		}
	}
	return n == 1
}

// link is a link to a name in a comment.
var link = regexp.MustCompile(`(^|[^\w])\[(\*?[A-Za-z_][\w./]*)\]`)

// firstSentence returns the first sentence of a comment, in one line and without the brackets of links: it ends at a period before a space that no single capital
// letter precedes, or with its paragraph.
func firstSentence(text string) string {
	text, _, _ = strings.Cut(text, "\n\n")
	text = link.ReplaceAllString(strings.Join(strings.Fields(text), " "), "$1$2")
	for i := 2; i+1 < len(text); i++ {
		initial := text[i-1] >= 'A' && text[i-1] <= 'Z' && !(text[i-2] >= 'A' && text[i-2] <= 'Z')
		if text[i:i+2] == ". " && !initial {
			return text[:i+1]
		}
	}
	return text
}
