package benchmarks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"grove/internal/command/flags"
	"grove/internal/gopher"
)

// TestAgainst has what --against needs missing: the error says what.
func TestAgainst(t *testing.T) {
	dir := t.TempDir()
	file, vocabulary := filepath.Join(dir, "schemas.jsonl"), filepath.Join(dir, "v.gguf")
	if err := os.WriteFile(file, []byte(`{"schema":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(vocabulary, gopher.Model(), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NODE_PATH", filepath.Join(dir, "none"))
	t.Chdir(dir)
	for name, c := range map[string]struct {
		command masksCommand
		want    string
	}{
		"a package for nobody":   {masksCommand{Package: dir}, "need --against"},
		"a converter for nobody": {masksCommand{Converter: "x"}, "need --against"},
		"no file":                {masksCommand{Against: "llama.cpp"}, "needs a GGUF file"},
		"no package":             {masksCommand{Against: "llama.cpp", Model: flags.Model{Path: vocabulary}}, "npm install"},
		"no package there":       {masksCommand{Against: "llama.cpp", Package: dir, Model: flags.Model{Path: vocabulary}}, dir},
	} {
		t.Run(name, func(t *testing.T) {
			c.command.File = file
			if err := c.command.Run(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
