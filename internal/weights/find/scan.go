package find

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"grove/internal/fileio"
)

const (
	maxDepth   = 5       // directories below the first
	maxEntries = 100_000 // of all directories of a place
	maxSmall   = 1 << 20 // bytes of a manifest or reference
)

// scan searches one place.
type scan struct {
	source string
	cache  string // the place's directory
	models []Model
	faults []error
	left   int             // entries that may still be read
	seen   map[string]bool // directories that were searched, without symbolic links
}

func newScan(source, cache string) *scan {
	return &scan{source: source, cache: cache, left: maxEntries, seen: map[string]bool{}}
}

func (s *scan) sorted() []Model {
	slices.SortFunc(s.models, func(a, b Model) int { return strings.Compare(a.Name, b.Name) })
	return s.models
}

func (s *scan) fail(err error) { s.faults = append(s.faults, err) }

// entries reads a directory. It returns nothing for one that was read before.
func (s *scan) entries(dir string) []os.DirEntry {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		s.fail(err)
		return nil
	}
	if s.seen[real] || s.left < 0 {
		return nil
	}
	s.seen[real] = true
	if info, err := os.Stat(real); err == nil && !info.IsDir() { // opening a named pipe would wait for its writer
		s.fail(fmt.Errorf("%s is not a directory", dir))
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		s.fail(err)
		return nil
	}
	defer d.Close()
	entries, err := d.ReadDir(s.left + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		s.fail(err)
	}
	if s.left -= len(entries); s.left < 0 {
		s.fail(fmt.Errorf("%s: more than %d files; the rest is not searched", dir, maxEntries))
		return nil
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries
}

// tree adds the GGUF files and the folders of Hugging Face in a directory and below it. name is the beginning of their names:
// the directory, relative to the place.
func (s *scan) tree(dir, name string, depth int) {
	entries := s.entries(dir)
	if isFolder(dir, entries) {
		s.models = append(s.models, Model{first(name, filepath.Base(dir)), dir, s.source, s.cache})
	}
	for _, e := range entries {
		file := filepath.Join(dir, e.Name())
		stem, isGGUF := strings.CutSuffix(e.Name(), ".gguf")
		info, err := os.Stat(file) // follows links
		switch {
		case err != nil && isGGUF:
			s.fail(err)
		case err != nil || strings.HasPrefix(e.Name(), "."):
		case info.IsDir() && strings.HasPrefix(e.Name(), hubPrefix):
			s.hub(file, depth-1)
		case info.IsDir() && depth > 0 && !foreign(e.Name()):
			s.tree(file, path.Join(name, e.Name()), depth-1)
		case info.Mode().IsRegular() && isGGUF:
			if stem, ok := modelStem(stem); ok {
				s.models = append(s.models, Model{path.Join(name, stem), file, s.source, s.cache})
			}
		}
	}
}

// isFolder reports whether a directory is a model as Hugging Face publishes them.
func isFolder(dir string, entries []os.DirEntry) bool {
	weights := slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.HasSuffix(e.Name(), ".safetensors") })
	if !weights {
		return false
	}
	info, err := os.Stat(filepath.Join(dir, "config.json"))
	return err == nil && info.Mode().IsRegular()
}

// splitPart is the end of the stem of a part of a split file.
var splitPart = regexp.MustCompile(`-(\d{5})-of-\d{5}$`)

// modelStem returns the name of a model by the stem of its file: without the number of the part of a split file. It returns false
// for parts but the first, and for projectors of images and sound (mmproj), which are not models of their own.
func modelStem(stem string) (string, bool) {
	if strings.HasPrefix(strings.ToLower(stem), "mmproj") {
		return "", false
	}
	m := splitPart.FindStringSubmatch(stem)
	if m == nil {
		return stem, stem != ""
	}
	return strings.TrimSuffix(stem, m[0]), m[1] == "00001"
}

// hubPrefix begins the name of a model's directory in the cache of Hugging Face: models--org--name.
const hubPrefix = "models--"

// foreign reports whether a directory of the cache holds something else than models.
func foreign(name string) bool {
	return strings.HasPrefix(name, "datasets--") || strings.HasPrefix(name, "spaces--")
}

// hub adds the models of one repository in the cache of Hugging Face: those of the snapshot that its main branch
// names, or else of the newest snapshot.
func (s *scan) hub(dir string, depth int) {
	name := strings.ReplaceAll(strings.TrimPrefix(filepath.Base(dir), hubPrefix), "--", "/")
	snapshots := filepath.Join(dir, "snapshots")
	commit, err := fileio.ReadRegular(filepath.Join(dir, "refs", "main"), maxSmall)
	main := strings.TrimSpace(string(commit))
	if err == nil && filepath.IsLocal(main) && filepath.Base(main) == main {
		if info, err := os.Stat(filepath.Join(snapshots, main)); err == nil && info.IsDir() {
			s.tree(filepath.Join(snapshots, main), name, depth)
			return
		}
	}
	if info, err := os.Stat(snapshots); err != nil || !info.IsDir() {
		return // nothing was downloaded
	}
	newest := ""
	var latest int64
	for _, e := range s.entries(snapshots) {
		if info, err := e.Info(); err == nil && info.IsDir() && info.ModTime().UnixNano() > latest {
			newest, latest = e.Name(), info.ModTime().UnixNano()
		}
	}
	if newest != "" {
		s.tree(filepath.Join(snapshots, newest), name, depth)
	}
}
