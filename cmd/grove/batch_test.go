//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// batchFile writes requests for gopher-nano, of which a few are none.
func batchFile(t *testing.T, dir string, n int) {
	t.Helper()
	var all strings.Builder
	for i := range n {
		switch {
		case i%50 == 49:
			all.WriteString("no request\n")
		case i%10 == 9:
			fmt.Fprintf(&all, `{"custom_id":"%d","method":"POST","url":"/v1/embeddings","body":{"input":"func %d"}}`+"\n", i, i)
		default:
			fmt.Fprintf(&all, `{"custom_id":"%d","method":"POST","url":"/v1/completions","body":{"prompt":"func Name%d(","max_tokens":%d}}`+"\n", i, i%25, 4+i%13)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "in.jsonl"), []byte(all.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// sorted returns the lines of a file, sorted.
func sorted(t *testing.T, dir, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	slices.Sort(lines)
	return lines
}

// batchCommand returns a run of grove batch in a directory, in a shell that runs what before says first.
func batchCommand(dir, before, out string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", before+"exec grove batch -m gopher-nano --forget --parallel 4 in.jsonl "+out)
	cmd.Dir = dir
	return cmd
}

// TestBatchKilled kills a batch again and again, by kill -9 and by interrupts: in the end each line has exactly one answer, that of an undisturbed run.
func TestBatchKilled(t *testing.T) {
	dir := t.TempDir()
	batchFile(t, dir, 800)
	start := time.Now()
	if out, err := batchCommand(dir, "", "whole.jsonl").CombinedOutput(); err == nil || !strings.Contains(string(out), "16 of 800 lines have no answer (16 invalid_json)") {
		t.Fatalf("%v\n%s", err, out)
	}
	whole := time.Since(start)
	kills := 0
	for i := 0; ; i++ {
		cmd := batchCommand(dir, "", "out.jsonl")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			_ = cmd.Wait() // the exit code tells
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(whole/6 + time.Duration(i)*whole/30):
			signal := os.Kill
			if i%4 == 3 {
				signal = os.Interrupt
			}
			_ = cmd.Process.Signal(signal) // it may have ended
			<-ended
		}
		if code := cmd.ProcessState.ExitCode(); code == 1 {
			break
		} else if code != -1 && code != 130 {
			t.Fatalf("exit code %d", code)
		}
		if kills++; kills > 200 {
			t.Fatal("the batch does not end")
		}
	}
	t.Logf("%d kills", kills)
	if kills < 3 {
		t.Errorf("%d kills: the batch is too short to test them", kills)
	}
	for _, name := range []string{".jsonl", ".errors.jsonl"} {
		if diff := cmp.Diff(sorted(t, dir, "whole"+name), sorted(t, dir, "out"+name)); diff != "" {
			t.Error(diff)
		}
	}
}

// TestBatchFull: a file system that takes no more ends a batch with exit code 73 and what is written; it goes on where there is room.
func TestBatchFull(t *testing.T) {
	dir := t.TempDir()
	batchFile(t, dir, 200)
	out, err := batchCommand(dir, "ulimit -f 60; ", "out.jsonl").CombinedOutput()
	if code := err.(*exec.ExitError).ExitCode(); code != 73 || !strings.Contains(string(out), "all lines before are kept: run the same command again once it can be written") {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	kept := len(sorted(t, dir, "out.jsonl")) - 1
	if out, err = batchCommand(dir, "", "out.jsonl").CombinedOutput(); !strings.Contains(string(out), "200 of 200 lines are done, ") {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := batchCommand(dir, "", "whole.jsonl").CombinedOutput(); err == nil {
		t.Error("lines that are no requests make no exit code")
	}
	if diff := cmp.Diff(sorted(t, dir, "whole.jsonl"), sorted(t, dir, "out.jsonl")); diff != "" || kept == 0 {
		t.Errorf("%d lines were kept\n%s", kept, diff)
	}
}
