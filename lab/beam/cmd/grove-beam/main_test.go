package main

import (
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"

	"grove/lab/beam"
)

// TestMain begins as the program does.
func TestMain(m *testing.M) {
	flag.Parse()
	sdk.Init()
	os.Exit(m.Run())
}

// TestRun runs both tasks by the flags of the program.
func TestRun(t *testing.T) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // in which the runner logs
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir) // the runner leaves a file there
	in, out := filepath.Join(dir, "in.jsonl"), filepath.Join(dir, "out.jsonl")
	set := func(name, value string) {
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{"model": "gopher-nano", "threads": "1", "input": in, "output": out} {
		set(name, value)
	}
	for _, c := range []struct{ task, format, line, answer string }{
		{"batch", "text", `{"custom_id":"a","method":"POST","url":"/v1/completions","body":{"prompt":"func main","max_tokens":2}}`, `"custom_id":"a"`},
		{"embed", "text", "func main", `{"custom_id":"1","embedding":[`},
		{"embed", "jsonl", `{"custom_id":"b","text":"func main"}`, `{"custom_id":"b","embedding":[`},
	} {
		if err := os.WriteFile(in, []byte(c.line+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		set("task", c.task)
		set("format", c.format)
		if err := run(t.Context()); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(out)
		if err != nil || !strings.Contains(string(text), c.answer) {
			t.Errorf("%s, %v; want %s", text, err, c.answer)
		}
	}
	set("task", "other")
	if err := run(t.Context()); err == nil || err.Error() != `--task is "other"; it must be batch or embed` {
		t.Error(err)
	}
	if err := beam.Close(); err != nil {
		t.Error(err)
	}
}
