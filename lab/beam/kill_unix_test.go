//go:build unix

package beam

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestKilled: a process that is killed at any time leaves an output that is complete or that of before; the pipeline that is run again has the answers of a batch.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	in := put(t, filepath.Join(dir, "in.jsonl"), mixed(600)...)
	want := reference(t, nano, in)
	out, faults := put(t, filepath.Join(dir, "out.jsonl"), "old"), put(t, filepath.Join(dir, "out.errors.jsonl"), "old")
	start := func() *exec.Cmd {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), "GROVE_BEAM_INPUT="+in, "GROVE_BEAM_OUTPUT="+out, "TMPDIR="+dir)
		c.Stderr = os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	began := time.Now()
	if err := start().Wait(); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	same(t, want.Output, out)
	killed := 0
	for range 5 {
		put(t, out, "old")
		put(t, faults, "old")
		c := start()
		time.Sleep(time.Duration(rand.Int64N(int64(took))))
		if err := c.Process.Kill(); err != nil && err != os.ErrProcessDone {
			t.Fatal(err)
		}
		if err := c.Wait(); err != nil {
			killed++
		}
		for path, complete := range map[string]string{out: want.Output, faults: want.Errors} {
			if got := read(t, path); strings.Join(got, "") != "old" && !slices.Equal(got, read(t, complete)) {
				t.Errorf("%s is neither complete nor that of before: %d lines", path, len(got))
			}
		}
	}
	if killed == 0 {
		t.Error("no process was killed before its end")
	}
	if err := start().Wait(); err != nil {
		t.Fatal(err)
	}
	same(t, want.Output, out)
	same(t, want.Errors, faults)
}
