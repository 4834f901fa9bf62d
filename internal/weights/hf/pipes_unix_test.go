//go:build unix

package hf

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"grove/internal/hftest"
)

// TestPipes puts a named pipe without a writer in the place of each file of a folder: the folder is refused by the
// file's name, and nothing waits.
func TestPipes(t *testing.T) {
	sharded := func(f *hftest.Folder) { f.Shards = 2 }
	whole := func(*hftest.Folder) {}
	for _, c := range []struct {
		file   string
		change func(*hftest.Folder)
	}{
		{"config.json", whole},
		{"tokenizer.json", whole},
		{"tokenizer_config.json", whole},
		{"generation_config.json", whole},
		{"chat_template.jinja", whole},
		{"model.safetensors", whole},
		{"model.safetensors.index.json", whole},
		{"model.safetensors.index.json", sharded},
		{"model-00002-of-00002.safetensors", sharded},
	} {
		t.Run(c.file, func(t *testing.T) {
			dir := folderOf(t, golden(t, "llama-tied"), c.change)
			path := filepath.Join(dir, c.file)
			if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Skip(err)
			}
			f, err := OpenModel(dir)
			if want := path + ": it is a named pipe; a regular file is needed"; f != nil || err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}
