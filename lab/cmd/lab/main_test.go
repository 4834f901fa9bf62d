package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
)

func TestMain(m *testing.M) {
	testscript.Main(withGrove{m}, map[string]func(){"lab": main})
}

// withGrove builds grove for the scripts, and runs tests out of the user's cache directory.
type withGrove struct{ m *testing.M }

func (w withGrove) Run() int {
	dir, err := os.MkdirTemp("", "lab")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "bin", "grove"), "./cmd/grove")
	build.Dir = "../../.."
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build grove: %v\n%s", err, out)
		return 1
	}
	os.Setenv("PATH", filepath.Join(dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	os.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	return w.m.Run()
}

// goldens is the folder of modeltest's models.
const goldens = "../../../internal/suite/modeltest/testdata"

// TestScripts runs testdata/script. $GOLDEN is the folder goldens.
func TestScripts(t *testing.T) {
	golden, err := filepath.Abs(goldens)
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Deadline:            time.Now().Add(3 * time.Minute),
		Setup: func(env *testscript.Env) error {
			env.Setenv("GOLDEN", golden)
			if err := writeEncoder(filepath.Join(env.WorkDir, "bert.gguf")); err != nil {
				return err
			}
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, "cache"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"fails": fails},
	})
}

// fails CODE MESSAGE COMMAND... runs a command that must end with the code and a line "grove: MESSAGE",
// and nothing else, on standard error.
func fails(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: fails code message command...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	var failed *exec.ExitError
	if err := ts.Exec(args[2], args[3:]...); errors.As(err, &failed) {
		code = failed.ExitCode()
	} else {
		ts.Check(err)
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
	if got, want := ts.ReadFile("stderr"), "grove: "+args[1]+"\n"; got != want {
		ts.Fatalf("standard error is\n%swant\n%s", got, want)
	}
}

// writeEncoder writes an encoder of random weights.
func writeEncoder(path string) error {
	metadata, tensors, err := synthetic.Spec{Arch: "bert", Context: 128, Vocab: 300, Vocabulary: true}.Parts()
	if err != nil {
		return err
	}
	return gguf.WriteFile(path, metadata, tensors)
}
