// Package find finds the models that are on a machine: in the directories that GROVE_MODELS lists, and in the
// caches of Hugging Face, llama.cpp, ollama and LM Studio. It reads directories, small manifests and the headers of model
// files, and changes nothing.
//
// Directories and manifests may be hostile: manifests have a bounded size and lead only to blobs of their own cache, directories
// are read to a bounded depth and number of entries, and only regular files are opened.
package find

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"grove/internal/fileio"
)

// Model is a model that was found.
type Model struct {
	Name   string // for [Store.Find]
	Path   string // a file, the first of a split one, or a folder of Hugging Face
	Source string // Directories, HuggingFace, LlamaCpp, Ollama or LMStudio
	Cache  string // the directory of the source in which it was found
}

// The sources of models.
const (
	Directories = "GROVE_MODELS"
	HuggingFace = "Hugging Face"
	LlamaCpp    = "llama.cpp"
	Ollama      = "ollama"
	LMStudio    = "LM Studio"
)

// place is a directory with models of a source.
type place struct {
	source, dir string
	optional    bool // a cache, which need not exist
}

// Store is the places to search. Every call of a method searches them again. It may be used by several goroutines.
type Store struct {
	places []place
	own    map[string]string // the directory into which each cache's models are written, by source
}

// System returns the store of this process's environment.
func System() *Store {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // only directories that variables name are searched
	}
	return New(os.Getenv, home, runtime.GOOS)
}

// New returns the store of an environment: its variables, the home directory ("" for none), and the system as
// [runtime.GOOS] names it. A directory of several sources belongs to the first.
func New(env func(string) string, home, system string) *Store {
	s := &Store{own: map[string]string{}}
	for _, dir := range filepath.SplitList(env("GROVE_MODELS")) {
		s.add(place{Directories, dir, false})
	}
	at := func(base string, names ...string) string {
		if base == "" {
			return ""
		}
		return filepath.Join(append([]string{base}, names...)...)
	}
	cache := first(env("XDG_CACHE_HOME"), at(home, ".cache"))
	s.add(place{HuggingFace, first(env("HF_HUB_CACHE"), env("HUGGINGFACE_HUB_CACHE"), at(env("HF_HOME"), "hub"), at(cache, "huggingface", "hub")), true})
	switch system { // llama.cpp follows each system's custom
	case "darwin":
		cache = at(home, "Library", "Caches")
	case "windows":
		cache = env("LOCALAPPDATA")
	}
	s.add(place{LlamaCpp, first(env("LLAMA_CACHE"), at(cache, "llama.cpp")), true})
	s.add(place{Ollama, first(env("OLLAMA_MODELS"), at(home, ".ollama", "models")), true})
	if system == "linux" && env("OLLAMA_MODELS") == "" {
		own := s.own[Ollama]
		s.add(place{Ollama, "/usr/share/ollama/.ollama/models", true}) // the directory of its system service, into which no other program writes
		s.own[Ollama] = own
	}
	lmStudio := at(home, ".lmstudio")
	if pointer, err := fileio.ReadRegular(at(home, ".lmstudio-home-pointer"), maxSmall); err == nil {
		lmStudio = first(strings.TrimSpace(string(pointer)), lmStudio) // where its user has moved it
	}
	s.add(place{LMStudio, at(lmStudio, "models"), true})
	s.add(place{LMStudio, at(home, ".cache", "lm-studio", "models"), true}) // before 2025
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

// Cache returns the directory into which programs write the models of a source: HuggingFace, LlamaCpp or Ollama. It need not
// exist. It is "" where neither a variable nor a home directory names one.
func (s *Store) Cache(source string) string { return s.own[source] }

func (s *Store) add(p place) {
	if p.dir == "" {
		return
	}
	p.dir = filepath.Clean(p.dir)
	if s.own[p.source] == "" {
		s.own[p.source] = p.dir
	}
	for _, other := range s.places {
		if other.dir == p.dir {
			return
		}
	}
	s.places = append(s.places, p)
}

// List returns the models of all places, ordered by place and name, and the faults of what could not be read. A file is
// listed once, under its name in the first place that has it; of ollama all tags are listed.
func (s *Store) List() (models []Model, faults []error) {
	found, faults := s.search()
	sources := map[string]string{} // of files, by their path without symbolic links
	for _, m := range found {
		file, err := filepath.EvalSymlinks(m.Path)
		if err != nil {
			file = m.Path
		}
		if source, twice := sources[file]; twice && (source != m.Source || source != Ollama) {
			continue
		}
		sources[file] = m.Source
		models = append(models, m)
	}
	return models, once(faults)
}

// once returns the faults without those that say the same as an earlier one.
func once(faults []error) (out []error) {
	said := map[string]bool{}
	for _, err := range faults {
		if !said[err.Error()] {
			said[err.Error()] = true
			out = append(out, err)
		}
	}
	return out
}

// search returns the models of all places under all their names.
func (s *Store) search() (models []Model, faults []error) {
	for _, p := range s.places {
		if _, err := os.Stat(p.dir); err != nil {
			if !p.optional {
				faults = append(faults, err)
			}
			continue
		}
		c := newScan(p.source, p.dir)
		if p.source == Ollama {
			c.ollama(p.dir)
		} else {
			c.tree(p.dir, "", maxDepth)
		}
		models, faults = append(models, c.sorted()...), append(faults, c.faults...)
	}
	return models, faults
}
