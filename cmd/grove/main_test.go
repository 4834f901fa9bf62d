package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"grove"
	"grove/internal/fileio"
	"grove/internal/model"
	"grove/internal/suite/scripts"
	"grove/internal/weights/hf"
)

func TestMain(m *testing.M) { os.Exit(scripts.Main(outside{m}, "grove", program.Run)) }

// outside runs tests out of the user's cache directory.
type outside struct{ m *testing.M }

func (o outside) Run() int { return fileio.RunApart(o.m) }

// TestScripts runs testdata/script. The condition [all] holds in the long run. $GOLDEN is the folder goldens, $METHODS the names of the methods, $SEARCHES those of the searches,
// $ARCHITECTURES those of the architectures, $CLASSES those of the classes of folders.
func TestScripts(t *testing.T) {
	golden, err := filepath.Abs(goldens)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range grove.Methods() {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	var searches []string
	for _, s := range grove.Searches() {
		searches = append(searches, s.Name)
	}
	p := scripts.Params(func(env *testscript.Env) error {
		env.Setenv("GOLDEN", golden)
		env.Setenv("METHODS", strings.Join(names, ", "))
		env.Setenv("SEARCHES", strings.Join(searches, ", "))
		env.Setenv("ARCHITECTURES", strings.Join(model.Names(), ", "))
		env.Setenv("CLASSES", strings.Join(hf.Classes(), ", "))
		return nil
	}, map[string]func(*testscript.TestScript, bool, []string){
		"craft": craft, "adapter": makeAdapter, "folder": makeFolder, "head": makeHead, "near": near, "answer": checkAnswer, "openai": startOpenAI, "registry": startRegistry,
	})
	p.Condition = func(name string) (bool, error) { // in addition to the conditions of testscript
		if name != "all" {
			return false, fmt.Errorf("the condition %q is not known", name)
		}
		return scripts.Long, nil
	}
	testscript.Run(t, p)
}

// near GOT WANT compares files of float32: within 1e-4 of the largest value.
func near(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: near got want")
	}
	got, want := floats(ts, args[0]), floats(ts, args[1])
	if len(got) != len(want) {
		ts.Fatalf("%d values, want %d", len(got), len(want))
	}
	var worst, scale float64
	for i := range want {
		worst = max(worst, math.Abs(float64(want[i])-float64(got[i])))
		scale = max(scale, math.Abs(float64(want[i])))
	}
	if !(worst <= 1e-4*scale) {
		ts.Fatalf("values differ by %g; the largest is %g", worst, scale)
	}
}

func floats(ts *testscript.TestScript, file string) []float32 {
	b := []byte(ts.ReadFile(file))
	x := make([]float32, len(b)/4)
	_, err := binary.Decode(b, binary.LittleEndian, x)
	ts.Check(err)
	return x
}

// checkAnswer FILE checks the output of --json: one object, whose tokens put together are its text.
func checkAnswer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: answer file")
	}
	var a answer
	d := json.NewDecoder(bytes.NewReader([]byte(ts.ReadFile(args[0]))))
	d.DisallowUnknownFields()
	ts.Check(d.Decode(&a))
	if d.More() {
		ts.Fatalf("more than one object")
	}
	var text strings.Builder
	for _, t := range a.Tokens {
		text.WriteString(t.Text)
		if !(t.Logprob <= 0) {
			ts.Fatalf("token %d has log-probability %v", t.ID, t.Logprob)
		}
	}
	if text.String() != a.Text {
		ts.Fatalf("the tokens make %q and the text is %q", text.String(), a.Text)
	}
	s := a.Stats
	if s.PromptTokens < 1 || s.Tokens < len(a.Tokens) || s.FirstToken <= 0 || s.Memory <= 0 || s.Finish == "" || a.Model == "" {
		ts.Fatalf("figures are missing: %+v", s)
	}
}

// stories is the path of a small trained model that is not ours to distribute.
func stories(t *testing.T) string {
	t.Helper()
	const model = "../../../shared/models/stories260K.gguf"
	if _, err := os.Stat(model); err != nil {
		if _, err := os.Stat("../../../shared"); err == nil && os.Getenv("CI") != "" {
			t.Fatal("../shared is here and models/stories260K.gguf is not")
		}
		t.Skip("needs ../shared/models/stories260K.gguf: no such file")
	}
	return model
}

// TestStories compares the first lines of a small trained model with the output of its authors' program.
func TestStories(t *testing.T) {
	model := stories(t)
	out, err := exec.Command("grove", "run", "-m", model, "--temp", "0", "-n", "60", "Once upon a time").Output()
	if err != nil {
		t.Fatal(err)
	}
	const want = "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. One day, she saw a big, red ball."
	if !strings.HasPrefix(string(out), want) {
		t.Errorf("got %q, want it to begin with %q", out, want)
	}
}

// TestStoriesPerplexity compares the perplexity of a story with that of llama.cpp's probabilities of its tokens,
// over chunks cut as ours.
func TestStoriesPerplexity(t *testing.T) {
	cmd := exec.Command("grove", "perplexity", "-m", stories(t), "-c", "64", "--json")
	cmd.Stdin = strings.NewReader(`Once upon a time, there was a little boy named Tim. Tim had a red ball and he liked to play with it in the park. One day, the ball
rolled under a big tree. Tim was sad because he could not reach it. A friendly bird saw Tim and wanted to help. The bird flew
down and pushed the ball out with its wing. Tim was so happy! He said, "Thank you, bird!" They played together all day and became
good friends. When the sun went down, Tim went home and told his mom about the bird. His mom smiled and gave him a big hug.
`)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Tokens     int
		Perplexity float64
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	if r.Tokens != 93 || math.Abs(r.Perplexity-8.3293) > 0.01 {
		t.Errorf("perplexity %v of %d tokens, want 8.3293 of 93", r.Perplexity, r.Tokens)
	}
}
