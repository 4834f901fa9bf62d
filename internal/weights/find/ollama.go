package find

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"grove/internal/weights/ollama"
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
			path, err := modelPath(file)
			if err != nil {
				s.fail(err)
				continue
			}
			s.models = append(s.models, Model{ollamaName(names), path, s.source, s.cache})
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

// modelPath returns the path of the model of a manifest: its file of weights, or the manifest where other layers change the answers.
func modelPath(manifest string) (string, error) {
	m, err := ollama.Read(manifest)
	switch {
	case err != nil:
		return "", err
	case m.Plain():
		return m.Model, nil
	}
	return manifest, nil
}
