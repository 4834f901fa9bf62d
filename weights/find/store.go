// Package find finds the models that are on a machine: in the directories that GROVE_MODELS lists, and in the
// caches of Hugging Face, llama.cpp and ollama. It reads directories, small manifests and the headers of model
// files, and changes nothing.
//
// What it reads is taken for hostile: manifests are bounded and lead to blobs of their own cache only, directories
// are read to a bounded depth and number of entries, and nothing but regular files is opened.
package find

import (
	"os"
	"path/filepath"
	"runtime"
)

// Model is a model that was found.
type Model struct {
	Name   string // what Find takes; unique within a source
	Path   string // a file, the first of a split one, or a folder of Hugging Face
	Source string // GROVE_MODELS, Hugging Face, llama.cpp or ollama
}

// The sources.
const (
	sourceDirs   = "GROVE_MODELS"
	sourceHub    = "Hugging Face"
	sourceLlama  = "llama.cpp"
	sourceOllama = "ollama"
)

// place is a directory in which models of a source lie.
type place struct {
	source, dir string
	optional    bool // a cache, which need not exist
}

// Store is the places to search. Its methods search them anew each time.
type Store struct{ places []place }

// System returns the store of this process's environment.
func System() *Store {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // then only what variables name is searched
	}
	return New(os.Getenv, home, runtime.GOOS)
}

// New returns the store of an environment: its variables, the home directory ("" for none), and the system as
// [runtime.GOOS] names it. A directory that several sources share counts for the first.
func New(env func(string) string, home, system string) *Store {
	s := &Store{}
	for _, dir := range filepath.SplitList(env("GROVE_MODELS")) {
		s.add(place{sourceDirs, dir, false})
	}
	at := func(base string, names ...string) string {
		if base == "" {
			return ""
		}
		return filepath.Join(append([]string{base}, names...)...)
	}
	cache := first(env("XDG_CACHE_HOME"), at(home, ".cache"))
	s.add(place{sourceHub, first(env("HF_HUB_CACHE"), env("HUGGINGFACE_HUB_CACHE"), at(env("HF_HOME"), "hub"), at(cache, "huggingface", "hub")), true})
	switch system { // llama.cpp follows each system's custom
	case "darwin":
		cache = at(home, "Library", "Caches")
	case "windows":
		cache = env("LOCALAPPDATA")
	}
	s.add(place{sourceLlama, first(env("LLAMA_CACHE"), at(cache, "llama.cpp")), true})
	s.add(place{sourceOllama, first(env("OLLAMA_MODELS"), at(home, ".ollama", "models")), true})
	if system == "linux" && env("OLLAMA_MODELS") == "" {
		s.add(place{sourceOllama, "/usr/share/ollama/.ollama/models", true}) // where its service keeps them
	}
	return s
}

func first(choices ...string) string {
	for _, c := range choices {
		if c != "" {
			return c
		}
	}
	return ""
}

func (s *Store) add(p place) {
	if p.dir == "" {
		return
	}
	p.dir = filepath.Clean(p.dir)
	for _, other := range s.places {
		if other.dir == p.dir {
			return
		}
	}
	s.places = append(s.places, p)
}

// List returns the models of all places, place by place and by name, and what was wrong with others.
func (s *Store) List() (models []Model, faults []error) {
	for _, p := range s.places {
		if _, err := os.Stat(p.dir); err != nil {
			if !p.optional {
				faults = append(faults, err)
			}
			continue
		}
		c := newScan(p.source)
		if p.source == sourceOllama {
			c.ollama(p.dir)
		} else {
			c.tree(p.dir, "", maxDepth)
		}
		models, faults = append(models, c.sorted()...), append(faults, c.faults...)
	}
	return models, faults
}
