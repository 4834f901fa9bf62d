package pull

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"grove/internal/weights/find"
)

// Removed is a model that was removed.
type Removed struct {
	Name   string   `json:"name"`   // of the model
	Source string   `json:"source"` // of its cache, as package find names it
	Files  []string `json:"files"`  // paths that were removed; a directory stands for all in it
	Freed  int64    `json:"freed"`  // bytes
}

// ErrNotFound reports a name that no model has.
var ErrNotFound = errors.New("no such model")

// Remove removes the model of a name, as package find lists it, from the cache in which it lies: of Hugging Face, llama.cpp or
// ollama. Contents that another model needs stay. A name that fits several models, a file outside the caches, and one in a
// directory of GROVE_MODELS are refused. Errors: ErrNotFound, among others.
func Remove(store *find.Store, name string) (r Removed, err error) {
	m, err := removable(store, name)
	if err == nil {
		r.Name, r.Source = m.Name, m.Source
		err = r.remove(m)
	}
	if err != nil {
		return r, fmt.Errorf("rm: %q: %w", name, err)
	}
	return r, nil
}

// removable returns the one model of a name.
func removable(store *find.Store, name string) (m find.Model, err error) {
	found := store.Named(name)
	if ref, err := Parse(name); len(found) == 0 && err == nil {
		found = store.Named(ref.Local())
	}
	switch {
	case len(found) > 1:
		var names []string
		for _, m := range found[:min(len(found), 8)] {
			names = append(names, fmt.Sprintf("%q", m.Name))
		}
		return m, fmt.Errorf("the name fits %d models; name one of %s", len(found), strings.Join(names, ", "))
	case len(found) == 1 && found[0].Source == find.Directories:
		return m, fmt.Errorf("%s lies in a directory of GROVE_MODELS, which is yours: remove the file yourself", found[0].Path)
	case len(found) == 1 && found[0].Source == find.LMStudio:
		return m, fmt.Errorf("%s lies in the folder of LM Studio, which keeps a list of it: remove it there", found[0].Path)
	case len(found) == 1:
		return found[0], nil
	}
	if _, err := os.Lstat(name); err == nil {
		return m, errors.New("it is a file outside the caches of Hugging Face, llama.cpp and ollama: remove it yourself")
	}
	return m, fmt.Errorf("%w in the caches of Hugging Face, llama.cpp and ollama; grove list shows the models", ErrNotFound)
}

// remove removes a model from its cache.
func (r *Removed) remove(m find.Model) (err error) {
	cache, err := OpenCache(m.Cache)
	if err != nil {
		return err
	}
	defer cache.Close()
	var files []string
	if m.Source == find.Ollama {
		n, err := ParseRegistry(m.Name)
		if err != nil {
			return err
		}
		gone, err := RemoveRegistry(cache, n)
		r.add(cache, gone)
		return err
	}
	relative, err := filepath.Rel(m.Cache, m.Path)
	if err != nil {
		return err
	}
	name := filepath.ToSlash(relative)
	if files, err = parts(cache, name); err != nil {
		return err
	}
	if repository, _, ok := Split(name); ok {
		for i := range files {
			_, files[i], _ = Split(files[i])
		}
		gone, err := RemoveHub(cache, repository, files)
		r.add(cache, gone)
		return err
	}
	return r.plain(cache, files)
}

func (r *Removed) add(c *Cache, gone TransferRemoved) {
	r.Freed += gone.Freed
	for _, name := range gone.Files {
		r.Files = append(r.Files, c.Path(name))
	}
}

// parts returns the files of a model by its first: all parts of a split file; none for a folder.
func parts(c *Cache, name string) (all []string, err error) {
	if info, err := c.Root.Stat(name); err == nil && info.IsDir() {
		return nil, nil
	}
	all = []string{name}
	m := splitFile.FindStringSubmatch(name)
	if m == nil {
		return all, nil
	}
	entries, err := fs.ReadDir(c.Root.FS(), dirOf(name))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		other := strings.TrimPrefix(dirOf(name)+"/"+e.Name(), "./")
		rest, ok := strings.CutPrefix(other, m[1]+"-")
		if ok && other != name && len(rest) == len("00001-of-00002.gguf") && strings.HasSuffix(rest, "-of-"+m[2]+".gguf") {
			all = append(all, other)
		}
	}
	return all, nil
}

func dirOf(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i]
	}
	return "."
}

// plain removes files, with what llama.cpp and grove keep beside them.
func (r *Removed) plain(c *Cache, files []string) error {
	if len(files) == 0 {
		return errors.New("it is a folder that no program made in the cache: remove it yourself")
	}
	var gone TransferRemoved
	defer func() { r.add(c, gone) }()
	for _, f := range files {
		if _, err := c.Root.Lstat(f); err != nil {
			return err
		}
		for _, suffix := range []string{"", ".json", ".etag", Suffix, Suffix + ".etag"} {
			if err := gone.Remove(c, f+suffix); err != nil {
				return err
			}
		}
	}
	return nil
}
