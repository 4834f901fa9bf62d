package hf

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"grove/internal/weights/gguf"
)

// TurnRow returns the row of a folder that is row i of GGUF; see [FolderTurnRow].
func TurnRow(i, size int) int { return FolderTurnRow(i, size) }

// Sources returns where the matrices of a model come from: of a folder, where it has them; of a file of GGUF, where a folder of its
// family would. An architecture without a family is refused by name.
func Sources(base *gguf.File) ([]Source, error) {
	if paths := base.Paths(); len(paths) == 1 && Is(paths[0]) {
		return sourcesOf(paths[0])
	}
	arch, _, err := base.String("general.architecture")
	if err != nil {
		return nil, err
	}
	families, ok := byArch[arch]
	if !ok {
		return nil, fmt.Errorf("hf: the names that folders of architecture %q use are not known of a GGUF file; they are for %s", arch, strings.Join(slices.Sorted(maps.Keys(byArch)), ", "))
	}
	count := func(key string) int { n, _, _ := base.Uint(arch + "." + key); return n }
	if arch == "llama" && count("expert_count") > 0 {
		families = []func(*builder){mixtral}
	}
	if n := count("expert_count") * count("block_count"); n < 0 || n > maxSources {
		return nil, fmt.Errorf("hf: architecture %q has %d experts in all layers; at most %d are supported", arch, n, maxSources)
	}
	var all []Source
	seen := map[[2]string]bool{} // families of one architecture share matrices
	for _, family := range families {
		b := &builder{&DecoderBuilder{FolderBuilder: Dry(base, arch)}}
		family(b)
		if err := b.FirstError(); err != nil {
			return nil, err
		}
		for _, s := range *b.Sources {
			if key := [2]string{s.To, s.From}; !seen[key] && fits(s, base) {
				seen[key] = true
				all = append(all, s)
			}
		}
	}
	return all, nil
}

// fits reports whether a file has the matrix, of as many rows and columns.
func fits(s Source, base *gguf.File) bool {
	t, ok := base.Tensor(s.To)
	if !ok || s.Problem != "" {
		return ok
	}
	n := len(t.Shape)
	return n >= 2 && n == 3 == s.Stack && t.Shape[n-2] == s.Rows && t.Shape[n-1] == s.Shape[1] || s.To == "token_embd.weight" || s.To == "output.weight"
}

// sourcesOf reads a folder's settings anew.
func sourcesOf(dir string) ([]Source, error) {
	b := &builder{&DecoderBuilder{FolderBuilder: NewFolder(dir)}}
	b.Sources = &[]Source{}
	family, err := b.family()
	if err != nil {
		return nil, err
	}
	if b.Weights, err = OpenWeights(dir); err != nil {
		return nil, err
	}
	family(b)
	defer b.Storage().Close()
	return *b.Sources, b.FirstError()
}

// maxSources bounds the experts of all layers.
const maxSources = 1 << 17
