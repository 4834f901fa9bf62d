package heads

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"grove/internal/fileio"
	"grove/internal/weights/safetensors"
)

// form is what a path turned out to be.
type form struct {
	path   string
	gguf   bool
	files  string // of safetensors: the file, or its index
	config string // the file of settings, which may be missing
}

const (
	index  = "model.safetensors.index.json"
	single = "model.safetensors"

	adapter       = "adapter_model.safetensors" // of PPD
	adapterConfig = "adapter_config.json"
)

// formOf finds the files of a head.
func formOf(path string) (form, error) {
	info, err := os.Stat(path)
	if err != nil {
		return form{}, fmt.Errorf("heads: %w", err)
	}
	if info.IsDir() {
		return formOfFolder(path)
	}
	first, err := beginning(path)
	switch {
	case err != nil:
		return form{}, fmt.Errorf("heads: %w", err)
	case string(first) == "GGUF":
		return form{path: path, gguf: true}, nil
	case pickled(path) || string(first) == "PK\x03\x04" || len(first) > 1 && first[0] == 0x80 && first[1] < 6:
		return form{}, pickle(path)
	}
	return form{path: path, files: path, config: settings(path)}, nil
}

// settings returns the file of settings beside one of safetensors.
func settings(path string) string {
	name := "config.json"
	if filepath.Base(path) == adapter {
		name = adapterConfig
	}
	return filepath.Join(filepath.Dir(path), name)
}

// beginning returns the first four bytes of a file, fewer of a shorter one.
func beginning(path string) ([]byte, error) {
	f, err := fileio.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	first := make([]byte, 4)
	n, err := io.ReadFull(f, first)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return first[:n], err
}

// pickled reports whether files of PyTorch's serialisation have such a name.
func pickled(name string) bool {
	return slices.Contains([]string{".pt", ".pth", ".bin", ".pkl", ".ckpt"}, strings.ToLower(filepath.Ext(name)))
}

// pickle refuses a pickle, or several of one head: to load one is to run a program that its author wrote.
func pickle(paths ...string) error {
	out := filepath.Join(filepath.Dir(paths[0]), single)
	return fmt.Errorf("heads: %s is a pickle of PyTorch, which can run programs and is never loaded; 'python3 lab/train/unpickle.py %s %s' takes its tensors out of it",
		paths[0], strings.Join(paths, " "), out)
}

// formOfFolder finds the files of a folder: the model's, or the only file of safetensors.
func formOfFolder(dir string) (form, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return form{}, fmt.Errorf("heads: %w", err)
	}
	f := form{path: dir, config: filepath.Join(dir, "config.json")}
	var shards, pickles []string
	for _, e := range entries {
		switch name := e.Name(); {
		case e.IsDir() || strings.HasPrefix(name, "."):
		case strings.HasSuffix(name, ".safetensors") || name == index:
			shards = append(shards, name)
		case pickled(name) && !strings.HasPrefix(name, "training_args") && !strings.HasPrefix(name, "optimizer"):
			pickles = append(pickles, name)
		}
	}
	switch {
	case slices.Contains(shards, index):
		f.files = filepath.Join(dir, index)
	case slices.Contains(shards, single):
		f.files = filepath.Join(dir, single)
	case len(shards) == 1:
		f.files = filepath.Join(dir, shards[0])
		f.config = settings(f.files)
	case len(shards) > 1:
		return f, fmt.Errorf("heads: %s: %d files of safetensors (%s and others) and no %s, which lists them; name the file of the head", dir, len(shards), shards[0], index)
	case len(pickles) > 0:
		n := 1
		if slices.Contains(pickles, "fast_layer1.pt") { // Chimera's, of which one is no head
			n = len(pickles)
		}
		for i, name := range pickles {
			pickles[i] = filepath.Join(dir, name)
		}
		return f, pickle(pickles[:n]...)
	default:
		return f, fmt.Errorf("heads: %s: %w: the folder has no safetensors file; a head is one beside config.json", dir, fs.ErrNotExist)
	}
	return f, nil
}

// open opens the tensors.
func (f form) open() (*safetensors.File, error) { return safetensors.Open(f.files) }
