package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"grove/internal/model/synthetic"
	"grove/internal/suite/scripts"
	"grove/internal/weights/gguf"
)

func TestMain(m *testing.M) { os.Exit(scripts.Main(withGrove{m}, "lab", program.Run)) }

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
	testscript.Run(t, scripts.Params(func(env *testscript.Env) error {
		env.Setenv("GOLDEN", golden)
		return writeEncoder(filepath.Join(env.WorkDir, "bert.gguf"))
	}, map[string]func(*testscript.TestScript, bool, []string){}))
}

// writeEncoder writes an encoder of random weights.
func writeEncoder(path string) error {
	metadata, tensors, err := synthetic.Spec{Arch: "bert", Context: 128, Vocab: 300, Vocabulary: true}.Parts()
	if err != nil {
		return err
	}
	return gguf.WriteFile(path, metadata, tensors)
}
