//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// TestKill kills a command that writes a model: the old file stays as it was, a temporary one is left, and
// the next run takes that away. An interrupt takes its own away.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.gguf"), filepath.Join(dir, "out.gguf")
	large := synthetic.Spec{Type: tensor.Q8_0, Layers: 60, Width: 256, FFN: 768, Vocab: 4096}
	metadata, tensors, err := large.Parts()
	if err == nil {
		err = gguf.WriteFile(in, metadata, tensors)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(out, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	temporary := func() []string {
		names, err := filepath.Glob(out + ".tmp-*")
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	// stop ends a run once it has written something.
	stop := func(signal syscall.Signal) int {
		cmd := exec.Command("grove", "quantize", "--allow-requantize", "-t", "1", in, out, "Q6_K")
		var stderr strings.Builder
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			if names := temporary(); len(names) > 0 {
				if info, err := os.Stat(names[0]); err == nil && info.Size() > 1<<20 {
					break
				}
			}
			if time.Now().After(deadline) {
				_ = cmd.Process.Kill()
				t.Fatalf("nothing is written: %s", stderr.String())
			}
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // the exit code tells
		return cmd.ProcessState.ExitCode()
	}
	old := func() {
		t.Helper()
		if b, err := os.ReadFile(out); err != nil || string(b) != "old" {
			t.Fatalf("the old file holds %d bytes, %v", len(b), err)
		}
	}

	if code := stop(syscall.SIGINT); code != 130 || len(temporary()) != 0 {
		t.Errorf("interrupted: exit code %d, left %v", code, temporary())
	}
	old()
	stop(syscall.SIGKILL)
	old()
	if left := temporary(); len(left) != 1 {
		t.Fatalf("killed: left %v", left)
	}
	small := filepath.Join(dir, "small.gguf")
	if err := craftFile("good", small); err != nil {
		t.Fatal(err)
	}
	if b, err := exec.Command("grove", "quantize", small, out, "Q8_0").CombinedOutput(); err != nil {
		t.Fatalf("%s, %v", b, err)
	}
	if left := temporary(); len(left) != 0 {
		t.Errorf("the next run: left %v", left)
	}
	if b, err := exec.Command("grove", "inspect", out).CombinedOutput(); err != nil || !strings.Contains(string(b), "Q8_0") {
		t.Errorf("the new file: %s, %v", b, err)
	}
}
