// Command probe names the concepts in the states that `lab states` writes, by vector-symbolic keys (Hyperdimensional Probe, 2025). It is an example of a program
// beside grove; its README says how to run it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

const usage = `probe texts DIR
    writes texts and their labels, to try the other commands with
probe test [-dims N] [-ridge R] [-every N] STATES LABELS
    trains a probe on the states of texts, but for every N-th, and names the concepts of those
probe name [-dims N] [-ridge R] STATES LABELS OTHER
    trains a probe on the states of all texts, and names the concepts of other states`

// run runs a command line.
func run(args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("no command is given; these are there:\n" + usage)
	}
	f := flag.NewFlagSet(args[0], flag.ContinueOnError)
	o := fitOptions{}
	f.IntVar(&o.dims, "dims", 2048, "numbers of a key")
	f.Float64Var(&o.ridge, "ridge", 0.01, "penalty of large weights, as a part of the mean square of the states")
	every := f.Int("every", 5, "each text with such a number is left out of the training")
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	files := f.Args()
	switch {
	case args[0] == "texts" && len(files) == 1:
		return writeTexts(files[0])
	case args[0] == "test" && len(files) == 2:
		return test(out, o, *every, files[0], files[1])
	case args[0] == "name" && len(files) == 3:
		return name(out, o, files[0], files[1], files[2])
	}
	return errors.New("the command line is none of these:\n" + usage)
}

// test trains a probe on some texts and writes how often it is right on the others, for each role, beside how often the commonest concept would be.
func test(out io.Writer, o fitOptions, every int, states, labels string) error {
	all, known, err := read(states, labels)
	if err != nil {
		return err
	}
	if every < 2 {
		return fmt.Errorf("-every is %d; it must be 2 or more", every)
	}
	var s split
	for i := range all {
		if (i+1)%every == 0 {
			s.testStates, s.testLabels = append(s.testStates, all[i]), append(s.testLabels, known[i])
		} else {
			s.states, s.labels = append(s.states, all[i]), append(s.labels, known[i])
		}
	}
	if len(s.testStates) == 0 {
		return fmt.Errorf("-every is %d and there are %d texts: none is left to test with", every, len(all))
	}
	p, err := fit(s.states, s.labels, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d texts to train with, %d to test with, states of %d numbers, keys of %d\n", len(s.states), len(s.testStates), len(all[0]), o.dims)
	for _, role := range p.book.roles() {
		right, of, most := s.score(p, role)
		fmt.Fprintf(out, "%s: %d of %d right (%.1f %%); the commonest concept is right for %d\n", role, right, of, 100*float64(right)/float64(max(of, 1)), most)
	}
	return nil
}

// name trains a probe and names the concepts of other states.
func name(out io.Writer, o fitOptions, states, labels, other string) error {
	all, known, err := read(states, labels)
	if err != nil {
		return err
	}
	p, err := fit(all, known, o)
	if err != nil {
		return err
	}
	others, err := lastStates(other)
	if err != nil {
		return err
	}
	for i, x := range others {
		if len(x) != len(all[0]) {
			return fmt.Errorf("%s: states of %d numbers, where those of %s have %d; write both with the same model and layers", other, len(x), states, len(all[0]))
		}
		key := p.key(x)
		var said []string
		for _, role := range p.book.roles() {
			n := p.book.unbind(key, role)
			said = append(said, fmt.Sprintf("%s %s (%.2f, then %.2f)", role, n.concept, n.cosine, n.next))
		}
		fmt.Fprintf(out, "text %d: %s\n", i, strings.Join(said, ", "))
	}
	return nil
}

// split is states and labels to train with, and others to test with.
type split struct {
	states, testStates [][]float64
	labels, testLabels []map[string]string
}

// score counts the tests of a role, those for which a probe is right, and those for which the commonest concept of the training would be.
func (s *split) score(p *probe, role string) (right, of, most int) {
	counts := map[string]int{}
	commonest := ""
	for _, l := range s.labels {
		c := l[role]
		if c == "" {
			continue
		}
		if counts[c]++; counts[c] > counts[commonest] || counts[c] == counts[commonest] && c < commonest {
			commonest = c
		}
	}
	for i, l := range s.testLabels {
		if l[role] == "" {
			continue
		}
		of++
		if p.book.unbind(p.key(s.testStates[i]), role).concept == l[role] {
			right++
		}
		if commonest == l[role] {
			most++
		}
	}
	return right, of, most
}

// The parts of the texts that writeTexts makes.
var (
	functions  = strings.Fields("Read Write Close Open Parse Find Copy Seek Merge Split Count Reset")
	parameters = strings.Fields("string int bool error float64")
	results    = strings.Fields("string int bool error float64")
)

// writeTexts writes beginnings of Go functions, one a file, and labels.jsonl with the types that each has.
func writeTexts(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var labels strings.Builder
	var numbers []int
	for i := range len(functions) * len(parameters) * len(results) {
		numbers = append(numbers, i)
	}
	slices.SortFunc(numbers, func(a, b int) int { return a*7919%len(numbers) - b*7919%len(numbers) }) // so that every N-th is of all kinds
	for i, n := range numbers {
		function, parameter, result := functions[n%len(functions)], parameters[n/len(functions)%len(parameters)], results[n/len(functions)/len(parameters)]
		text := fmt.Sprintf("package main\n\nfunc %s(x %s) %s {\n\treturn", function, parameter, result)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d.txt", i)), []byte(text), 0o644); err != nil {
			return err
		}
		fmt.Fprintf(&labels, "{\"parameter\": %q, \"result\": %q, \"function\": %q}\n", parameter, result, function)
	}
	return os.WriteFile(filepath.Join(dir, "labels.jsonl"), []byte(labels.String()), 0o644)
}
