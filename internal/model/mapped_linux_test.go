package model_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"grove/internal/model"
	"grove/internal/par"
	"grove/internal/weights/gguf"
)

// TestFileReleased holds that an open model, whose weights are copies, keeps no page of its file in memory.
func TestFileReleased(t *testing.T) {
	path, err := filepath.Abs("../suite/modeltest/testdata/llama-tied.gguf")
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	pool := par.New(1)
	defer pool.Close()
	resident := func() string {
		t.Helper()
		text, err := os.ReadFile("/proc/self/smaps")
		if err != nil {
			t.Skip("the system does not say what is in memory:", err)
		}
		found := regexp.MustCompile(regexp.QuoteMeta(path) + `\n(?:\w+: .*\n)*?Rss: +(\d+ kB)`).FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s is not mapped", path)
		}
		return string(found[1])
	}
	if got := resident(); got == "0 kB" {
		t.Fatal("the metadata was read and no page of the file is in memory")
	}
	if _, err := model.Open(f, pool, model.Options{}); err != nil {
		t.Fatal(err)
	}
	if got := resident(); got != "0 kB" {
		t.Errorf("%s of the file are in memory, want 0 kB", got)
	}
}
