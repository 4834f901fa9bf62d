package bench

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// names are what lists are made of.
var names = strings.Fields("alice bob carol dave erin frank grace heidi ivan judy mallory niaj olivia peggy rupert sybil trent victor walter wendy")

// lists are the operations on lists of ParallelBench (2025): those with one right answer, and those with several, of which the places depend on each other.
var lists = []struct {
	name  string
	does  func(list []string, extra string, r *rand.Rand) []string // an example
	right func(list []string, extra string, got []string) bool
}{
	{"copy", func(l []string, _ string, _ *rand.Rand) []string { return l }, func(l []string, _ string, got []string) bool { return slices.Equal(l, got) }},
	{"reverse", func(l []string, _ string, _ *rand.Rand) []string { return reversed(l) }, func(l []string, _ string, got []string) bool { return slices.Equal(reversed(l), got) }},
	{"sort", func(l []string, _ string, _ *rand.Rand) []string { return sorted(l) }, func(l []string, _ string, got []string) bool { return slices.Equal(sorted(l), got) }},
	{"shuffle", func(l []string, _ string, r *rand.Rand) []string {
		at := 1 + r.IntN(len(l)-1)
		return append(slices.Clone(l[at:]), l[:at]...) // another order than that of the list
	}, func(l []string, _ string, got []string) bool {
		return slices.Equal(sorted(l), sorted(got)) && !slices.Equal(l, got)
	}},
	{"replace", func(l []string, extra string, r *rand.Rand) []string {
		l = slices.Clone(l)
		l[r.IntN(len(l))] = extra
		return l
	}, func(l []string, extra string, got []string) bool {
		return len(got) == len(l) && differences(l, got) == 1 && slices.Contains(got, extra)
	}},
	{"insert", func(l []string, extra string, r *rand.Rand) []string {
		return slices.Insert(slices.Clone(l), r.IntN(len(l)+1), extra)
	}, func(l []string, extra string, got []string) bool {
		at := slices.Index(got, extra)
		return at >= 0 && slices.Equal(l, slices.Delete(slices.Clone(got), at, at+1))
	}},
	{"remove", func(l []string, _ string, r *rand.Rand) []string {
		at := r.IntN(len(l))
		return slices.Delete(slices.Clone(l), at, at+1)
	}, func(l []string, _ string, got []string) bool {
		for at := range l {
			if slices.Equal(got, slices.Delete(slices.Clone(l), at, at+1)) {
				return true
			}
		}
		return false
	}},
}

func sorted(l []string) []string { return slices.Sorted(slices.Values(l)) }

func reversed(l []string) []string {
	l = slices.Clone(l)
	slices.Reverse(l)
	return l
}

// differences returns at how many places lists of one length differ.
func differences(a, b []string) (n int) {
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

// CanvasLists returns n tasks of each operation on lists of 3 to 6 names, each with an example. They are the same for the same seed.
func CanvasLists(n int, seed uint64) (tasks []CanvasTask) {
	r := rand.New(rand.NewPCG(seed, 0))
	for _, op := range lists {
		for i := range n {
			size := 3 + r.IntN(4)
			draw := func() ([]string, string) {
				l := slices.Clone(names)
				r.Shuffle(len(l), func(a, b int) { l[a], l[b] = l[b], l[a] })
				return l[:size], l[size]
			}
			shown, shownExtra := draw()
			list, extra := draw()
			prompt := canvasQuestion(op.name, shown, shownExtra) + canvasQuoted(op.does(shown, shownExtra, r)) + "}\n\n" + canvasQuestion(op.name, list, extra)
			tasks = append(tasks, CanvasTask{ID: fmt.Sprintf("%s-%d", op.name, i), Prompt: prompt, Right: func(answer string) bool {
				got, ok := read(answer)
				return ok && op.right(list, extra, got)
			}})
		}
	}
	return tasks
}

// canvasQuestion is the code before the answer's names.
func canvasQuestion(op string, list []string, extra string) string {
	if op == "replace" || op == "insert" {
		op += " with " + extra
	}
	return fmt.Sprintf("// %s\nin := []string{%s}\nout := []string{", op, canvasQuoted(list))
}

// canvasQuoted writes names with commas between.
func canvasQuoted(list []string) string { return `"` + strings.Join(list, `", "`) + `"` }

// read returns the names of an answer, which ends at the first brace.
func read(answer string) (list []string, ok bool) {
	answer, _, ok = strings.Cut(answer, "}")
	for part := range strings.SplitSeq(answer, ",") {
		list = append(list, strings.Trim(strings.TrimSpace(part), `"`))
	}
	return list, ok
}
