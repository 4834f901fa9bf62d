package find

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"grove/internal/options"
)

// Find returns the path of the model that a name stands for: a GGUF file, or a folder of Hugging Face. The name is a path, a
// directory that holds one model, or the name of a model of the store. Of a model's name, a part is enough that fits
// no other model as well. Case and a ".gguf" at the end do not count. org/name:TAG is the file of a repository that
// has TAG in its name; a name of ollama without a tag has the tag latest. A path that does not exist is returned
// as it is, so that opening it gives the system's error.
func (s *Store) Find(name string) (string, error) {
	if info, err := os.Stat(name); err == nil {
		if info.IsDir() {
			return inDirectory(name)
		}
		return name, nil
	}
	if filepath.IsAbs(name) || strings.HasPrefix(name, ".") {
		return name, nil
	}
	models, _ := s.search()
	found := best(models, name)
	switch {
	case len(found) == 1:
		return found[0].Path, nil
	case len(found) > 1:
		return "", fmt.Errorf("find: %q fits several models; name one of %s", name, list(found))
	case strings.HasSuffix(name, ".gguf"):
		return name, nil
	}
	return "", s.unknown(name, models)
}

// Named returns the models whose names fit a name best, as [Store.Find] ranks them, or that have it as their path. Unlike Find,
// it returns several names of one file, and paths stand for nothing but models of the store.
func (s *Store) Named(name string) (found []Model) {
	models, _ := s.search()
	path, err := filepath.EvalSymlinks(name)
	isPath := err == nil
	rank := worst
	for _, m := range models {
		if real, err := filepath.EvalSymlinks(m.Path); isPath && err == nil && real == path {
			found = append(found, m)
		}
		if r := fit(fold(m.Name), fold(name)); !isPath && r <= rank {
			if r < rank {
				found = nil
			}
			rank, found = r, append(found, m)
		}
	}
	return found
}

// inDirectory returns the path of the model in a directory, which may be a model itself.
func inDirectory(dir string) (string, error) {
	s := newScan("", "")
	if base := filepath.Base(dir); strings.HasPrefix(base, hubPrefix) {
		s.hub(dir, maxDepth)
	} else {
		s.tree(dir, "", 0)
	}
	for _, m := range s.models {
		if info, err := os.Stat(m.Path); err == nil && info.IsDir() {
			return m.Path, nil // its own GGUF files can be named
		}
	}
	switch files := s.sorted(); len(files) {
	case 1:
		return files[0].Path, nil
	case 0:
		if len(s.faults) > 0 {
			return "", fmt.Errorf("find: %w", s.faults[0])
		}
		return "", fmt.Errorf("find: %s holds neither a GGUF file nor a config.json with safetensors files", dir)
	default:
		return "", fmt.Errorf("find: %s holds several GGUF files; name one of %s", dir, list(files))
	}
}

// best returns the models whose names fit best, each file once.
func best(models []Model, name string) (found []Model) {
	query := fold(name)
	rank := worst + 1
	for _, m := range models {
		switch r := fit(fold(m.Name), query); {
		case r < rank:
			rank, found = r, []Model{m}
		case r == rank && r <= worst && !slices.ContainsFunc(found, m.same):
			found = append(found, m)
		}
	}
	return found
}

func fold(name string) string {
	return strings.TrimSuffix(strings.ToLower(filepath.ToSlash(name)), ".gguf")
}

// same reports whether two models are the same file.
func (m Model) same(other Model) bool {
	a, err1 := os.Stat(m.Path)
	b, err2 := os.Stat(other.Path)
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}

// worst is the rank of the worst fit that counts.
const worst = 3

// fit ranks how well a model's name fits a query, 0 best.
func fit(name, query string) int {
	whole, tail := "/"+name, "/"+query
	repository, tag, tagged := strings.Cut(tail, ":")
	switch {
	case name == query, name == query+":latest":
		return 0
	case strings.HasSuffix(whole, tail), strings.HasSuffix(whole, tail+":latest"):
		return 1
	case tagged && tag != "" && strings.Contains(whole, repository+"/") && strings.Contains(path.Base(name), tag):
		return 2
	case strings.Contains(whole, tail+"/"), strings.Contains(whole, tail+":"), strings.HasSuffix(name, "_"+query):
		return worst // a repository, a model of several tags, the last part of llama.cpp's flat names
	}
	return worst + 1
}

// UnknownError reports a name that no model on the machine has.
type UnknownError struct{ text string }

// Error names the places that were searched, and similar names.
func (e *UnknownError) Error() string { return e.text }

// unknown returns the error for a name that no model has. It lists the places that were searched and similar names.
func (s *Store) unknown(name string, models []Model) error {
	var searched []string
	for _, p := range s.places {
		if _, err := os.Stat(p.dir); err == nil {
			searched = append(searched, fmt.Sprintf("%s (%s)", p.source, p.dir))
		}
	}
	if len(searched) == 0 {
		return unknownf("find: %q is not a file, and there is no place to search: no directory in GROVE_MODELS, and no cache of Hugging Face, llama.cpp, ollama or LM Studio", name)
	}
	like := ""
	if alike := nearModels(models, name); len(alike) > 0 {
		like = "; similar names: " + list(alike)
	}
	return unknownf("find: %q is neither a file nor one of %d models in %s%s", name, len(models), strings.Join(searched, ", "), like)
}

func unknownf(format string, args ...any) error { return &UnknownError{fmt.Sprintf(format, args...)} }

// list returns the names and paths of the first few models.
func list(models []Model) string {
	const most = 8
	var items []string
	for _, m := range models[:min(len(models), most)] {
		items = append(items, fmt.Sprintf("%q (%s)", m.Name, m.Path))
	}
	if more := len(models) - most; more > 0 {
		items = append(items, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(items, ", ")
}

// nearModels returns the models whose names contain the query, or differ from it by a few letters.
func nearModels(models []Model, name string) (alike []Model) {
	query := fold(name)
	last := path.Base(query)
	for _, m := range models {
		n := fold(m.Name)
		if strings.Contains(n, last) || options.NearDistance(path.Base(n), last) <= 1+len(last)/4 || options.NearDistance(n, query) <= 1+len(query)/4 {
			alike = append(alike, m)
		}
	}
	return alike
}
