package bench

import (
	"bytes"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"

	scoring "grove/score"
)

// root returns the Go distribution that runs the tests.
func root(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skipf("go env GOROOT: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// TestKinds makes each workload twice, and reads it as the commands do.
func TestKinds(t *testing.T) {
	for _, kind := range WorkloadKinds() {
		t.Run(kind, func(t *testing.T) {
			var one, two bytes.Buffer
			n, err := WriteWorkload(&one, kind, root(t))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := WriteWorkload(&two, kind, root(t)); err != nil || one.String() != two.String() {
				t.Fatalf("it differs the second time: %v", err)
			}
			if !strings.HasPrefix(kind, "knowledge") {
				if tasks, err := ReadWorkload(&one); err != nil || len(tasks) != n || n < 40 {
					t.Fatalf("%d of %d tasks: %v", len(tasks), n, err)
				}
				return
			}
			questions, err := scoring.ParseQuestions(one.String())
			if err != nil || len(questions) != n || n < 100 {
				t.Fatalf("%d of %d questions: %v", len(questions), n, err)
			}
			for _, q := range questions {
				right := q.Choices[*q.Answer]
				if len(q.Choices) != 4 || slices.Index(q.Choices, right) != *q.Answer {
					t.Errorf("%q: %q", q.Prompt, q.Choices)
				}
				line := "// " + q.Prompt[strings.LastIndex(q.Prompt, "// ")+3:] + right + "\n"
				if strings.Contains(q.Prompt, line) != (kind == "knowledge-open") {
					t.Errorf("%q: is the answer in the passage?", q.Prompt)
				}
			}
		})
	}
	if _, err := WriteWorkload(new(bytes.Buffer), "go", t.TempDir()); err == nil {
		t.Error("an empty folder is a Go distribution")
	}
	if _, err := WriteWorkload(new(bytes.Buffer), "none", ""); err == nil || !strings.Contains(err.Error(), "there are go, typos") {
		t.Errorf("an unknown kind: %v", err)
	}
}

// TestOpenBook asks the same questions, with the same choices, with and without the passage.
func TestOpenBook(t *testing.T) {
	closed, err := KnowledgeQuestions(root(t), true)
	if err != nil {
		t.Fatal(err)
	}
	open, err := KnowledgeQuestions(root(t), false)
	if err != nil {
		t.Fatal(err)
	}
	for i := range closed {
		if !strings.HasSuffix(open[i].Prompt, closed[i].Prompt) || !slices.Equal(open[i].Choices, closed[i].Choices) || *open[i].Answer != *closed[i].Answer {
			t.Fatalf("question %d: %+v with the passage, %+v without", i, open[i], closed[i])
		}
	}
}

// TestMistype changes some letters of a text and nothing else.
func TestMistype(t *testing.T) {
	if got := neighbours('g'); got != "fhtyvb" {
		t.Errorf("around g lie %q", got)
	}
	if got := neighbours('{'); got != "" {
		t.Errorf("around { lie %q", got)
	}
	const text = "func (f *File) Close() error {\n\treturn f.close(17)\n}\n"
	letters := func(c rune) rune {
		if c|' ' >= 'a' && c|' ' <= 'z' {
			return -1
		}
		return c
	}
	for seed := range uint64(50) {
		got := mistype(text, rand.New(rand.NewPCG(seed, 0)))
		if got == text || strings.Map(letters, got) != strings.Map(letters, text) || len(got) < len(text)-8 || len(got) > len(text)+8 {
			t.Errorf("seed %d: %q", seed, got)
		}
	}
}
