package main

import (
	"crypto/sha256"
	"encoding/binary"
	"io/fs"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"os"
)

// source is a file of the Go distribution.
type source struct{ path, text string }

// corpus returns the files that corpus.py takes: those that the models were trained on or, with held, those held out; in an order that depends on
// the seed alone.
func corpus(held bool, seed uint64) (files []source, err error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	root := filepath.Join(strings.TrimSpace(string(out)), "src")
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{"testdata", "vendor", "_asm"}, d.Name()):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || generated(d.Name()):
			return nil
		}
		name, err := filepath.Rel(root, path)
		if hash := sha256.Sum256([]byte(filepath.ToSlash(name))); err != nil || (binary.BigEndian.Uint32(hash[:])%50 == 0) != held {
			return err
		}
		text, err := os.ReadFile(path)
		if i := strings.Index(string(text), "\n\n"); i >= 0 && strings.HasPrefix(string(text), "// Copyright") {
			text = text[i+2:]
		}
		if len(text) <= 200_000 {
			files = append(files, source{name, string(text)})
		}
		return err
	})
	rng := rand.New(rand.NewPCG(seed, 1))
	rng.Shuffle(len(files), func(i, k int) { files[i], files[k] = files[k], files[i] })
	return files, err
}

// generated reports whether the name is one of those of generated tables.
func generated(name string) bool {
	return slices.ContainsFunc([]string{"z", "op_", "rewrite", "tables", "opGen"}, func(p string) bool { return strings.HasPrefix(name, p) })
}
