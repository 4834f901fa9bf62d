package safetensors

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"grove/internal/fileio"
	"grove/internal/weights/tensor"
)

// maxShards is more files than any model has.
const maxShards = 4096

// shard is a file of an index and the tensors that the index places in it.
type shard struct {
	file  string
	names []string
}

// readIndex reads an index file: its shards by name.
func readIndex(path string) ([]shard, error) {
	text, err := fileio.ReadRegular(path, maxHeader)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	shards, err := parseIndex(text)
	var bad *FormatError
	if errors.As(err, &bad) {
		bad.Path = path
	}
	return shards, err
}

// parseIndex reads the text of an index.
func parseIndex(text []byte) ([]shard, error) {
	switch {
	case len(text) > maxHeader:
		return nil, &FormatError{Msg: fmt.Sprintf("index is longer than %d bytes", maxHeader)}
	case !utf8.Valid(text):
		return nil, &FormatError{Msg: "index is not UTF-8"}
	}
	r := newReader(text, 0)
	files := map[string][]string{}
	seen := map[string]bool{}
	r.object(func(key string) {
		if seen[key] {
			r.fail("duplicate key %.40q", key)
		}
		seen[key] = true
		if key == "weight_map" {
			r.weightMap(files)
		} else {
			r.skip()
		}
	})
	r.end()
	switch {
	case r.err != nil:
	case len(files) == 0:
		r.fail("weight_map is missing or empty")
	case len(files) > maxShards:
		r.fail("%d shards are more than %d", len(files), maxShards)
	}
	if r.err != nil {
		return nil, r.err
	}
	shards := make([]shard, 0, len(files))
	for file, names := range files {
		shards = append(shards, shard{file, names})
	}
	slices.SortFunc(shards, func(a, b shard) int { return strings.Compare(a.file, b.file) })
	return shards, nil
}

// weightMap reads which file holds each tensor.
func (r *reader) weightMap(files map[string][]string) {
	seen := map[string]bool{}
	r.object(func(name string) {
		file := r.string(tensor.Label(name))
		switch {
		case r.err != nil:
		case seen[name]:
			r.fail("%s: two tensors have this name", tensor.Label(name))
		case !plainName(file):
			r.fail("%s: %.80q is not the name of a file beside the index", tensor.Label(name), file)
		}
		seen[name] = true
		files[file] = append(files[file], name)
	})
}

// plainName reports whether a name stays in its folder on every system.
func plainName(s string) bool {
	return s != "." && fs.ValidPath(s) && filepath.IsLocal(s) && !strings.ContainsAny(s, `/\:`) && !strings.ContainsRune(s, 0)
}

// skip reads a value of any form; the decoder bounds its depth.
func (r *reader) skip() {
	var v any
	if r.err == nil {
		r.broken(r.dec.Decode(&v))
	}
}
