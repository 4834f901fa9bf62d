package find

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"grove/internal/fileio"
)

// ollama adds the models of ollama's directory, whose files manifests/HOST/NAMESPACE/MODEL/TAG name blobs.
func (s *scan) ollama(dir string) {
	manifests := filepath.Join(dir, "manifests")
	if _, err := os.Stat(manifests); err == nil {
		s.manifests(dir, manifests, nil)
	}
}

// manifests adds the models whose manifests lie below a directory. levels are the names of the directories above it.
func (s *scan) manifests(dir, at string, levels []string) {
	const tag = 3
	for _, e := range s.entries(at) {
		file := filepath.Join(at, e.Name())
		info, err := os.Stat(file)
		if err != nil || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		names := append(levels[:len(levels):len(levels)], e.Name())
		switch {
		case info.IsDir() && len(levels) < tag:
			s.manifests(dir, file, names)
		case info.Mode().IsRegular() && len(levels) == tag:
			blob, err := modelBlob(dir, file)
			if err != nil {
				s.fail(err)
				continue
			}
			s.models = append(s.models, Model{ollamaName(names), blob, s.source, s.cache})
		}
	}
}

// ollamaName returns a model's name as ollama writes it: without the host and the namespace of its own library.
func ollamaName(names []string) string {
	shown := names[:len(names)-1]
	if shown[0] == "registry.ollama.ai" {
		if shown = shown[1:]; shown[0] == "library" {
			shown = shown[1:]
		}
	}
	return path.Join(shown...) + ":" + names[len(names)-1]
}

// digest is the form of the names of blobs. Any other name could lead out of their directory.
var digest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// modelBlob returns the file of weights that a manifest names.
func modelBlob(dir, manifest string) (string, error) {
	b, err := fileio.ReadRegular(manifest, maxSmall)
	if err != nil {
		return "", err
	}
	var m struct {
		Layers []struct {
			MediaType string `json:"mediaType"`
			Digest    string `json:"digest"`
		} `json:"layers"`
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return "", fmt.Errorf("%s: %w; the manifest is broken: pull the model again", manifest, err)
	}
	for _, l := range m.Layers {
		if l.MediaType != "application/vnd.ollama.image.model" {
			continue
		}
		if !digest.MatchString(l.Digest) {
			return "", fmt.Errorf("%s: %.80q is not a digest", manifest, l.Digest)
		}
		for _, separator := range []string{"-", ":"} { // as of 2024, and before
			blob := filepath.Join(dir, "blobs", strings.Replace(l.Digest, ":", separator, 1))
			if info, err := os.Stat(blob); err == nil && info.Mode().IsRegular() {
				return blob, nil
			}
		}
		return "", fmt.Errorf("%s: blob %s is missing", manifest, l.Digest)
	}
	return "", fmt.Errorf("%s: no layer holds a model", manifest)
}
