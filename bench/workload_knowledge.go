package bench

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"path/filepath"
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

// factsOf returns the functions of a package whose documentation begins with a sentence of usual length about them, as the files for one
// system have it.
func factsOf(dir, path string) (facts []fact, err error) {
	context := build.Default
	context.GOOS, context.GOARCH, context.CgoEnabled = "linux", "amd64", false
	p, err := context.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(set, filepath.Join(dir, name), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	d, err := doc.NewFromFiles(set, files, path)
	if err != nil {
		return nil, err
	}
	said := map[string]bool{}
	for _, f := range d.Funcs {
		does, found := strings.CutPrefix(d.Synopsis(f.Doc), f.Name)
		if !found || !strings.HasPrefix(does, " ") || len(does) < 25 || len(does) > 140 || said[does] {
			continue
		}
		said[does] = true
		facts = append(facts, fact{f.Name, does})
	}
	return facts, nil
}
